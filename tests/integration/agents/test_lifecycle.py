"""The life cycle of agents: legal transitions, schedules, and an audit record of each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.agents.models import Agent, AgentState, HeartbeatSchedule, Percept, ScheduleState
from apps.agents.services.lookup import agent_by_name
from apps.agents.services.publication import publish_agent
from apps.agents.services.state import make_dormant
from apps.audit.models import AuditAction, AuditEvent
from apps.fleet import lifecycle
from apps.fleet.contact import message_agent
from apps.fleet.identities import reinstate_identity, suspend_identity
from apps.fleet.lifecycle import (
    destroy_agent,
    pause_agent,
    resume_agent,
    start_agent,
    stop_agent,
    wake_agent,
)
from apps.fleet.pauses import pause_all_agents, resume_all_agents
from apps.tenants import names
from apps.tenants.checks import tenant_models
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import set_status
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import Invalid, NotFound, TransitionIllegal
from tests.factories.agents import AgentFactory
from tests.factories.heartbeats import (
    ExternalCallFactory,
    HeartbeatFactory,
    LedgerEntryFactory,
    PerceptFactory,
    ScheduleFactory,
)
from tests.factories.memories import EdgeFactory, MemoryAccessFactory, MemoryFactory
from tests.factories.selves import BeliefFactory, IdentityAspectFactory
from tests.integration.agents.conftest import ACTOR, MakeAgent
from tests.support.threads import start_blocked

type Verb = Callable[..., Agent]


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    """Return a stored agent that was never started."""
    with tenant_transaction(tenant.id):
        created: Agent = AgentFactory(name="Vega", status=AgentStatus.CREATED)
        AgentState.objects.create(tenant_id=tenant.id, agent=created, nops=10)
        ScheduleFactory(agent=created, state=ScheduleState.OFF)
        return created


@pytest.mark.parametrize(
    ("verb", "status"), [(start_agent, AgentStatus.CREATED), (resume_agent, AgentStatus.PAUSED)]
)
def test_in_a_suspended_tenant_nobody_is_started(
    agent: Agent, tenant: Tenant, verb: Verb, status: AgentStatus
) -> None:
    set_status(slug=tenant.slug, status=TenantStatus.SUSPENDED)
    with tenant_transaction(tenant.id):
        Agent.objects.filter(id=agent.id).update(status=status)
        with pytest.raises(TransitionIllegal, match="is suspended; resume it first"):
            verb(agent_id=agent.id, actor=ACTOR)
        assert Agent.objects.get(id=agent.id).status == status
    set_status(slug=tenant.slug, status=TenantStatus.ACTIVE)
    with tenant_transaction(tenant.id):
        assert verb(agent_id=agent.id, actor=ACTOR).status == AgentStatus.ACTIVE


def states_of(agent: Agent) -> tuple[str, str]:
    """Return the status of the agent and the state of its schedule."""
    with tenant_transaction(agent.tenant_id):
        row = Agent.objects.select_related("schedule").get(id=agent.id)
        return row.status, row.schedule.state


def apply(agent: Agent, *verbs: Verb) -> None:
    for verb in verbs:
        with tenant_transaction(agent.tenant_id):
            verb(agent_id=agent.id, actor=ACTOR)


def fall_dormant(*, agent_id: Any, actor: str) -> Agent:
    return make_dormant(agent_id=agent_id, reason="ten replies in a row could not be used")


@pytest.mark.parametrize(
    ("verbs", "status", "state"),
    [
        ([start_agent], AgentStatus.ACTIVE, ScheduleState.IDLE),
        ([start_agent, pause_agent], AgentStatus.PAUSED, ScheduleState.OFF),
        ([start_agent, pause_agent, resume_agent], AgentStatus.ACTIVE, ScheduleState.IDLE),
        ([start_agent, stop_agent], AgentStatus.STOPPED, ScheduleState.OFF),
        ([start_agent, stop_agent, start_agent], AgentStatus.ACTIVE, ScheduleState.IDLE),
        ([start_agent, fall_dormant, wake_agent], AgentStatus.ACTIVE, ScheduleState.IDLE),
    ],
)
def test_the_schedule_follows_the_status(agent: Agent, verbs: list[Verb], status: str, state: str) -> None:
    apply(agent, *verbs)
    assert states_of(agent) == (status, state)


def test_an_illegal_transition_is_refused_with_the_legal_ones(agent: Agent) -> None:
    with pytest.raises(TransitionIllegal, match="possible now: start, destroy"):
        apply(agent, pause_agent)
    assert states_of(agent) == (AgentStatus.CREATED, ScheduleState.OFF)
    with tenant_transaction(agent.tenant_id):
        assert not AuditEvent.objects.exists()


def test_every_transition_is_audited(agent: Agent) -> None:
    apply(agent, start_agent, pause_agent, resume_agent, fall_dormant, wake_agent, stop_agent)
    with tenant_transaction(agent.tenant_id):
        events = list(AuditEvent.objects.order_by("id").values_list("action", "actor"))
    itself = f"agent:{agent.public_id}"
    assert events == [
        (AuditAction.AGENT_STARTED, ACTOR),
        (AuditAction.AGENT_PAUSED, ACTOR),
        (AuditAction.AGENT_RESUMED, ACTOR),
        (AuditAction.AGENT_DORMANT, itself),
        (AuditAction.AGENT_RESUMED, ACTOR),
        (AuditAction.AGENT_STOPPED, ACTOR),
    ]


def test_waking_an_agent_resets_its_count_of_nops(agent: Agent) -> None:
    apply(agent, start_agent, fall_dormant, wake_agent)
    with tenant_transaction(agent.tenant_id):
        assert AgentState.objects.get(agent=agent).nops == 0


def test_a_failed_record_rolls_back_the_status(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(lifecycle, "record", fail)
    with pytest.raises(RuntimeError):
        apply(agent, start_agent)
    assert states_of(agent) == (AgentStatus.CREATED, ScheduleState.OFF)


def test_another_tenant_cannot_start_an_agent(agent: Agent, other_tenant: Tenant) -> None:
    with tenant_transaction(other_tenant.id), pytest.raises(NotFound):
        start_agent(agent_id=agent.id, actor=ACTOR)
    assert states_of(agent)[0] == AgentStatus.CREATED


def test_destroying_needs_the_name(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id), pytest.raises(Invalid, match="'Vega'"):
        destroy_agent(agent_id=agent.id, confirm="vega", actor=ACTOR)
    assert states_of(agent)[0] == AgentStatus.CREATED


def test_destroying_leaves_only_the_record(make: MakeAgent, tenant: Tenant) -> None:
    destroyed, other = make(name="Vega"), make(name="Rigel")
    with tenant_transaction(tenant.id):
        call = ExternalCallFactory(heartbeat=HeartbeatFactory(agent=destroyed))
        LedgerEntryFactory(call=call)
        PerceptFactory(agent=destroyed)
        memory = MemoryFactory(agent=destroyed)
        MemoryAccessFactory(memory=memory)
        EdgeFactory(agent=destroyed, source_id=memory.id)
        BeliefFactory(agent=destroyed)
        IdentityAspectFactory(agent=destroyed)
        before = {
            model: model._default_manager.count() for model in tenant_models() if hasattr(model, "agent")
        }
        counts = destroy_agent(agent_id=destroyed.id, confirm="Vega", actor=ACTOR)
        event = AuditEvent.objects.get(action=AuditAction.AGENT_DESTROYED)
    assert counts["heartbeats"] == 1
    assert counts["memories"] > 2
    # The agent names no relation to these rows.
    assert (counts["model calls"], counts["ledger entries"]) == (1, 1)
    assert event.detail["deleted"] == counts
    assert event.agent_id == destroyed.id
    with tenant_transaction(tenant.id):
        assert before
        for model in before:
            assert set(model._default_manager.values_list("agent_id", flat=True)) <= {other.id}, model
        assert [agent.name for agent in Agent.objects.all()] == ["Rigel"]


def test_a_message_brings_the_next_heartbeat_forward(agent: Agent) -> None:
    apply(agent, start_agent)
    with tenant_transaction(agent.tenant_id):
        HeartbeatSchedule.objects.update(next_due_at=timezone.now() + timedelta(hours=1))
        message_agent(agent_id=agent.id, text="  Is the river frozen? ", actor=ACTOR)
        assert Percept.objects.get().content == "Is the river frozen?"
        assert AgentState.objects.get().last_user_contact_at is not None
        assert HeartbeatSchedule.objects.get().next_due_at <= timezone.now()


def test_a_message_does_not_start_a_created_agent(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        due = HeartbeatSchedule.objects.get().next_due_at
        message_agent(agent_id=agent.id, text="Hello", actor=ACTOR)
        assert HeartbeatSchedule.objects.get().next_due_at == due


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "1 to 8,000 characters"),
        (" \n", "1 to 8,000 characters"),
        ("x" * 8001, "1 to 8,000 characters"),
        ("nul\0", "NUL"),
        ("half \ud800", "half a surrogate pair"),
    ],
)
def test_an_invalid_message_is_refused(agent: Agent, text: str, reason: str) -> None:
    with tenant_transaction(agent.tenant_id), pytest.raises(Invalid, match=reason):
        message_agent(agent_id=agent.id, text=text, actor=ACTOR)


def test_an_agent_is_found_by_its_name(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentFactory(name="VEGA")
        assert agent_by_name(" Vega ").id == agent.id
        with pytest.raises(NotFound, match="there is: VEGA, Vega"):
            agent_by_name("vega")
        with pytest.raises(NotFound, match="there is: VEGA, Vega"):
            agent_by_name("Sirius")
        with pytest.raises(NotFound, match=r"there is no agent 'x{200}'; there is"):
            agent_by_name("x" * 1_000)


def test_an_unknown_name_is_answered_with_the_first_names(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "_LISTED", 1)
    with tenant_transaction(agent.tenant_id):
        with pytest.raises(NotFound, match=r"there is: Vega$"):
            agent_by_name("Sirius")
        AgentFactory(name="Wren")
        with pytest.raises(NotFound, match=r"there is: Vega, and others$"):
            agent_by_name("Sirius")


def test_a_new_public_description_is_no_new_publication(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        for description in ("Knows the tides.", "Knows the tides.", "Knows the reefs."):
            publish_agent(agent_id=agent.id, description=description, actor=ACTOR)
        messages = AuditEvent.objects.filter(message__contains=agent.name, actor=ACTOR).order_by("id")
        assert list(messages.values_list("message", flat=True)) == [
            "published Vega to agents elsewhere",
            "changed the public description of Vega",
        ]
        with pytest.raises(Invalid, match="printable characters only"):
            publish_agent(agent_id=agent.id, description="nul\0", actor=ACTOR)
        with pytest.raises(Invalid, match="got 9,000"):
            publish_agent(agent_id=agent.id, description="x" * 9_000, actor=ACTOR)


def test_a_pause_waits_for_an_ending_heartbeat_and_prevails(agent: Agent) -> None:
    apply(agent, start_agent)
    with tenant_transaction(agent.tenant_id):
        HeartbeatSchedule.objects.update(state=ScheduleState.RUNNING)
    with tenant_transaction(agent.tenant_id):
        # As the end of a heartbeat does: it has locked the schedule, and still sees an active agent.
        HeartbeatSchedule.objects.select_for_update().get(agent=agent)
        start_blocked(lambda: apply(agent, pause_agent))
        HeartbeatSchedule.objects.update(state=ScheduleState.IDLE)
    assert states_of(agent) == (AgentStatus.PAUSED, ScheduleState.OFF)


def test_a_resumption_of_all_starts_no_suspended_identity(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        start_agent(agent_id=agent.id, actor=ACTOR)
        suspend_identity(agent_id=agent.id, reason="its key leaked", actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        pause_all_agents(actor=ACTOR)
        resume_all_agents(actor=ACTOR)
        schedule = HeartbeatSchedule.objects.get(agent_id=agent.id)
        assert (agent_by_name("Vega").status, schedule.state) == (AgentStatus.ACTIVE, ScheduleState.OFF)
        reinstate_identity(agent_id=agent.id, actor=ACTOR)
        assert HeartbeatSchedule.objects.get(agent_id=agent.id).state == ScheduleState.IDLE


def test_a_second_resumption_of_all_resumes_no_agent_paused_alone(agent: Agent) -> None:
    apply(agent, start_agent)
    with tenant_transaction(agent.tenant_id):
        pause_all_agents(actor=ACTOR, reason="prices " * 100)
        assert resume_all_agents(actor=ACTOR) == 1
        paused, resumed = AuditEvent.objects.filter(agent_id__isnull=True).order_by("id")
        assert paused.message.startswith("paused all active agents (1): prices prices")
        assert paused.message.endswith("…")
        assert resumed.message == "resumed 1 paused agent"
        pause_agent(agent_id=agent.id, actor=ACTOR)
        assert resume_all_agents(actor=ACTOR) == 0
    assert states_of(agent) == (AgentStatus.PAUSED, ScheduleState.OFF)
