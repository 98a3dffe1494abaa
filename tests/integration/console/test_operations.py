"""The operations page: dead workers, backlogs, retries of failures, and pauses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.agents.models import Agent, HeartbeatSchedule
from apps.audit.models import AuditEvent, PlatformEvent
from apps.calls.models import ExternalCall
from apps.console.pages import operations
from apps.console.templatetags.console import commands
from apps.contacts.models import OutboxMessage
from apps.fleet.lifecycle import pause_agent, resume_agent
from apps.heartbeats.models import Process
from apps.memories.models import Memory
from apps.memories.services.jobs.job_runs import expect_runs, record_job_run
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from tests.factories.agents import AgentFactory
from tests.factories.heartbeats import ProcessFactory, ScheduleFactory
from tests.factories.memories import EpisodeFactory, MemoryFactory, UpkeepFactory
from tests.support.console import World

PAGE = "admin:operations"


def act(client: Client, name: str, **data: Any) -> Any:
    return client.post(reverse("admin:operations-act"), {"act": name, **data}, follow=True)


def text_of(client: Client) -> str:
    response = client.get(reverse(PAGE))
    assert response.status_code == 200
    return str(response.content.decode())


def states(world: World) -> dict[str, str]:
    with tenant_transaction(world.tenant.id):
        return dict(Agent.objects.values_list("name", "status"))


def test_a_silent_worker_and_an_unserved_queue_are_shown(viewer: Client, world: World) -> None:
    Process.objects.all().delete()
    ProcessFactory(name="host:1", queues="heartbeat,llm", seen_at=timezone.now())
    ProcessFactory(name="host:2", queues="outbox", seen_at=timezone.now() - timedelta(minutes=2))
    text = text_of(viewer)
    assert "1 process stopped reporting" in text
    unserved = text.partition('id="unserved"')[2].partition("</div>")[0]
    assert "outbox" in unserved
    assert "heartbeat" not in unserved
    line = text.partition('data-process="host:2"')[2].partition("</tr>")[0]
    assert "silent" in line


def test_figures_are_of_all_processes_and_rows_of_the_first(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Process.objects.all().delete()
    ProcessFactory(name="host:1", queues="heartbeat", seen_at=timezone.now())
    assert 'id="more-processes"' not in text_of(viewer)
    ProcessFactory(name="host:2", queues="llm", seen_at=timezone.now() - timedelta(minutes=2))
    ProcessFactory(name="host:3", queues="outbox", seen_at=timezone.now())
    monkeypatch.setattr(operations, "PROCESSES_SHOWN", 1)

    text = text_of(viewer)

    assert "1 process stopped reporting" in text
    unserved = text.partition('id="unserved"')[2].partition("</div>")[0]
    assert "llm" in unserved
    assert "outbox" not in unserved
    assert 'data-process="host:1"' in text
    assert 'data-process="host:2"' not in text
    assert "The first 1 of 3 by kind and name" in text


def counted(client: Client, key: str) -> int:
    """Return the count of a backlog on the page."""
    backlogs = client.get(reverse(PAGE)).context["page"].backlogs
    return int(next(backlog.count for backlog in backlogs if backlog.key == key))


def test_figures_say_where_their_counting_ended(
    root: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "0+</dd>" not in text_of(root)
    monkeypatch.setattr(operations.OperationsPage, "health_counted", 0)
    text = text_of(root)
    assert "0+</dd>" in text
    assert 'agents whose daily forgetting is late</dt><dd class="ar-num">0</dd>' in text


def test_commands_of_remedies_are_written_as_code() -> None:
    assert commands("run `arbor doctor` & <look>") == "run <code>arbor doctor</code> &amp; &lt;look&gt;"


def test_backlogs_are_counted(viewer: Client, world: World) -> None:
    before = counted(viewer, "unembedded")
    with tenant_transaction(world.tenant.id):
        for _ in range(2):
            memory = MemoryFactory(agent=world.agent)
            Memory.objects.filter(id=memory.id).update(embedding=None)
            refused = MemoryFactory(agent=world.agent)
            Memory.objects.filter(id=refused.id).update(embedding=None, embedding_model="refused: openai/m")
    assert counted(viewer, "unembedded") == before + 2


def test_memories_that_their_embedder_refuses_are_no_backlog(viewer: Client, world: World) -> None:
    before = {key: counted(viewer, key) for key in ("unembedded", "unclustered")}
    waiting = {}
    for model in ("refused: wordllama", ""):
        with tenant_transaction(world.tenant.id):
            memory = MemoryFactory(agent=world.agent, embedding=None, embedding_model=model)
            UpkeepFactory(agent=world.agent, memory=memory, unclustered=True)
        row = viewer.get(reverse("admin:memories_upkeep_change", args=[memory.pk])).content.decode()
        waiting[model] = "neighborhood, clusters, concepts" in row, "neighborhood, concepts" in row
    assert waiting == {"refused: wordllama": (False, True), "": (True, False)}
    assert {key: counted(viewer, key) - count for key, count in before.items()} == {
        "unembedded": 1,
        "unclustered": 1,
    }


def test_episodes_are_counted_until_they_are_summarized(viewer: Client, world: World) -> None:
    before = counted(viewer, "unsummarized")
    with tenant_transaction(world.tenant.id):
        EpisodeFactory(agent=world.agent, summary="")
    assert counted(viewer, "unsummarized") == before
    with tenant_transaction(world.tenant.id):
        # More memories came after the summary.
        EpisodeFactory(agent=world.agent, summarized_at=None)
    assert counted(viewer, "unsummarized") == before + 1


def test_tenants_beyond_the_shown_ones_are_mentioned(
    root: Client, world: World, other_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 'id="more-tenants"' not in text_of(root)
    monkeypatch.setattr(operations, "TENANTS_SHOWN", 1)
    assert 'id="more-tenants"' in text_of(root)


def test_a_job_that_never_ran_is_not_shown_as_done(root: Client, world: World) -> None:
    expect_runs({"arbor.decay.fade": 60})
    assert "<td>never</td>" in text_of(root)
    jobs = root.get(reverse("admin:memories_jobrun_changelist")).content.decode()
    assert "not yet" in jobs
    record_job_run(name="arbor.decay.fade", period_s=60, seconds=0.1, result=0)
    assert "<td>never</td>" not in text_of(root)
    assert "not yet" not in root.get(reverse("admin:memories_jobrun_changelist")).content.decode()


def test_agents_beyond_the_counted_ones_are_named_as_more(
    operator: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "ROWS_COUNTED", 1)
    with tenant_transaction(world.tenant.id):
        AgentFactory.create_batch(3, status="active")
    assert "1 or more active and" in operator.get(reverse(PAGE)).content.decode()


def test_an_agent_in_a_conversation_is_not_counted_as_due(viewer: Client, world: World) -> None:
    now = timezone.now()
    with tenant_transaction(world.tenant.id):
        HeartbeatSchedule.objects.update(state="idle", next_due_at=now - timedelta(minutes=1))
        HeartbeatSchedule.objects.update(paused_until=now + timedelta(minutes=5))
    assert counted(viewer, "due") == 0
    with tenant_transaction(world.tenant.id):
        due = HeartbeatSchedule.objects.update(paused_until=None)
    assert counted(viewer, "due") == due


def test_failed_maintenance_calls_are_retried(operator: Client, viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        call = ExternalCall.objects.create(
            tenant_id=world.tenant.id,
            agent=world.agent,
            subject={"memories": ["a"]},
            subject_key="memories:a",
            purpose="extract",
            status="failed",
            error="no answer",
            error_kind="ModelTimeout",
            model="openai/gpt-5-mini",
            request={},
            requested_at=timezone.now(),
            ended_at=timezone.now(),
        )
    assert f'data-failed-call="{call.id}"' in text_of(viewer)
    assert act(viewer, "retry-calls").status_code == 403
    assert "will be retried by the next job run." in act(operator, "retry-calls").content.decode()
    assert f'data-failed-call="{call.id}"' not in text_of(operator)


def test_failed_messages_are_retried(operator: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        OutboxMessage.objects.all().update(status="failed", last_error="refused", kind="webhook")
        message = OutboxMessage.objects.first()
    assert message is not None
    assert f'data-failed-message="{message.id}"' in text_of(operator)
    assert "choose at least one message" in act(operator, "retry-messages").content.decode()
    done = act(operator, "retry-messages", message=[str(message.id)]).content.decode()
    assert "1 message will be retried." in done
    with tenant_transaction(world.tenant.id):
        assert OutboxMessage.objects.get(id=message.id).status == "pending"


@pytest.fixture
def agents(world: World) -> list[Agent]:
    with tenant_transaction(world.tenant.id):
        made = [AgentFactory(name=name, status="active") for name in ("Ada", "Bo")]
        for agent in made:
            ScheduleFactory(agent=agent, state="idle")
        AgentFactory(name="Cy", status="paused")
    return made


def test_all_agents_are_paused_and_resumed(operator: Client, world: World, agents: list[Agent]) -> None:
    assert "type &#x27;acme&#x27; to confirm" in act(operator, "pause-all", confirm="no").content.decode()
    assert states(world)["Ada"] == "active"
    assert "paused. Running" in act(operator, "pause-all", confirm="acme", reason="a loop").content.decode()
    assert {states(world)[name] for name in ("Ada", "Bo", "Cy")} == {"paused"}
    with tenant_transaction(world.tenant.id):
        assert HeartbeatSchedule.objects.get(agent=agents[0]).state == "off"
        event = AuditEvent.objects.order_by("-id").first()
    assert event is not None
    assert event.message.endswith("paused all active agents (3): a loop")
    assert "resumed." in act(operator, "resume-all", confirm="acme").content.decode()
    assert [states(world)[name] for name in ("Ada", "Bo", "Cy")] == ["active", "active", "paused"]
    with tenant_transaction(world.tenant.id):
        schedule = HeartbeatSchedule.objects.get(agent=agents[0])
    assert schedule.state == "idle"
    assert schedule.next_due_at <= timezone.now() + timedelta(seconds=schedule.interval_s)


@pytest.mark.parametrize("pauses_after", [0, 1])
def test_agents_that_were_paused_one_by_one_stay_paused(
    operator: Client, world: World, agents: list[Agent], pauses_after: int
) -> None:
    act(operator, "pause-all", confirm="acme")
    with tenant_transaction(world.tenant.id):
        resume_agent(agent_id=agents[1].id, actor="user:ann")
        pause_agent(agent_id=agents[1].id, actor="user:ann")
    for _ in range(pauses_after):
        act(operator, "pause-all", confirm="acme")
    act(operator, "resume-all", confirm="acme")
    assert [states(world)[name] for name in ("Ada", "Bo", "Cy")] == ["active", "paused", "paused"]


def test_a_pause_leaves_other_tenants_alone(operator: Client, world: World, other_world: World) -> None:
    before = states(other_world)
    act(operator, "pause-all", confirm="acme")
    assert states(other_world) == before


def test_viewers_pause_nothing(viewer: Client, world: World, agents: list[Agent]) -> None:
    assert "pause-all" not in text_of(viewer)
    assert act(viewer, "pause-all", confirm="acme").status_code == 403
    assert states(world)["Ada"] == "active"


def test_a_superuser_suspends_and_resumes_a_tenant(root: Client, owner: Client, world: World) -> None:
    assert 'data-tenant="acme"' in text_of(root)
    assert 'data-tenant="acme"' not in text_of(owner)
    refused = act(owner, "suspend-tenant", tenant="acme", confirm="acme")
    assert refused.status_code == 403
    assert "Only superusers suspend and resume tenants." in refused.content.decode()
    assert "to confirm" in act(root, "suspend-tenant", tenant="acme").content.decode()
    assert "acme is suspended" in act(root, "suspend-tenant", tenant="acme", confirm="acme").content.decode()
    assert Tenant.objects.using(OPS).get(slug="acme").status == "suspended"
    assert "acme is resumed" in act(root, "resume-tenant", tenant="acme").content.decode()
    assert Tenant.objects.using(OPS).get(slug="acme").status == "active"


def test_all_tenants_are_suspended_and_resumed_together(
    root: Client, world: World, other_world: World
) -> None:
    act(root, "suspend-tenant", tenant="globex", confirm="globex")
    assert "needs a reason" in act(root, "suspend-all", confirm="installation").content.decode()
    done = act(root, "suspend-all", confirm="installation", reason="an incident").content.decode()
    assert "1 tenant suspended." in done
    event = PlatformEvent.objects.using(OPS).order_by("-id").first()
    assert event is not None
    assert event.message == "suspended all active tenants (1): an incident"
    act(root, "resume-all-tenants", confirm="installation")
    assert statuses() == {"acme": "active", "globex": "suspended"}


def statuses() -> dict[str, str]:
    return dict(Tenant.objects.using(OPS).values_list("slug", "status"))


def test_a_second_suspension_of_all_is_undone_with_the_first(
    root: Client, world: World, other_world: World
) -> None:
    for _ in range(2):
        act(root, "suspend-all", confirm="installation", reason="an incident")
    act(root, "resume-all-tenants", confirm="installation")
    assert statuses() == {"acme": "active", "globex": "active"}


def test_a_second_resumption_resumes_no_tenant(root: Client, world: World, other_world: World) -> None:
    act(root, "suspend-all", confirm="installation", reason="an incident")
    act(root, "resume-all-tenants", confirm="installation")
    act(root, "suspend-tenant", tenant="globex", confirm="globex")
    act(root, "resume-all-tenants", confirm="installation")
    assert statuses() == {"acme": "active", "globex": "suspended"}


def test_an_unknown_act_is_not_found(operator: Client, world: World) -> None:
    assert act(operator, "explode").status_code == 404


def test_the_page_opens_for_a_member_of_no_tenant(root: Client, world: World) -> None:
    text = text_of(root)
    assert "Maintenance of the installation" in text
    assert 'id="backlogs"' not in text
