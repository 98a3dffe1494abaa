"""Messages of agents, from the decision to the receiver and into the next prompt."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from apps.agents.models import Agent, AgentState, HeartbeatSchedule, Percept, Trigger
from apps.agents.services.state import make_dormant
from apps.audit.models import AuditAction, AuditEvent
from apps.contacts.models import OutboxMessage
from apps.contacts.services.channels import add_channel
from apps.fleet.contact import message_agent
from apps.fleet.identities import suspend_identity
from apps.fleet.lifecycle import stop_agent
from apps.heartbeats.actions import reach_out
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.schedule import claim_now
from apps.memories.models import Memory
from apps.selves.models import PeerModel
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.agents.lifecycle import AgentStatus
from arbor.contacts.values import Audience, ChannelKind, DeliveryStatus
from arbor.heartbeat.steps import decisions, records
from arbor.memory.values import MemoryType
from tests.factories.authority import allow
from tests.factories.goals import GoalFactory, IntentFactory
from tests.integration.heartbeats.conftest import REST, first_action, heartbeats_of, schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of, text_of


def reply_reaching_out(
    content: str = "The reef is charted.", action: str = "reach_out_user", **params: Any
) -> str:
    """Return a reply that reaches out."""
    if action != "reach_out_agent":
        params["intent"] = "they asked for it"
    params["content"] = content
    return reply_of(action_of(action, **params), thinking="They should know.")


@pytest.fixture
def run_replies(fleet: Fleet, agent: Agent, scripted: Script) -> Callable[..., str]:
    """Return a function that runs one heartbeat with these replies, and returns the prompt of its first question."""

    def run(*replies: str) -> str:
        model = scripted(*replies, REST, repeat=True)
        with tenant_transaction(agent.tenant_id):
            # Enough energy for any action: other tests cover the limits.
            AgentState.objects.filter(agent_id=agent.id).update(energy=20)
            claim_now(agent_id=agent.id)
        fleet.run()
        return text_of(model.requests[0])

    return run


def latest_action(agent: Agent, name: str) -> dict[str, Any]:
    """Return the only action of this name of the agent's latest heartbeat."""
    (action,) = (action for action in heartbeats_of(agent)[-1].actions if action["action"] == name)
    return dict(action)


def outbox(agent: Agent) -> list[OutboxMessage]:
    """Return the messages of the agent, oldest first."""
    with tenant_transaction(agent.tenant_id):
        return list(OutboxMessage.objects.filter(agent_id=agent.id).order_by("id"))


def allow_public_messages(agent: Agent) -> None:
    """Allow the agent to write in public, and add a public channel."""
    with tenant_transaction(agent.tenant_id):
        allow(agent, "reach_out_user", "reach_out_public", "rest")
        add_channel(name="board", kind=ChannelKind.INBOX, audience=Audience.PUBLIC, target="", actor="test")


def add_mail_channel(agent: Agent) -> None:
    """Add a channel that delivers messages to users by email."""
    with tenant_transaction(agent.tenant_id):
        add_channel(
            name="mail",
            kind=ChannelKind.EMAIL,
            audience=Audience.USER,
            target="ann@example.org",
            actor="test",
        )


def age_messages(agent: Agent, hours: float) -> None:
    """Move the agent's messages, and the time of its latest one to users, some hours into the past."""
    with connections["ops"].cursor() as cursor:
        cursor.execute(
            "UPDATE contacts_outboxmessage SET created_at = created_at - %s * interval '1 hour' WHERE agent_id = %s",
            [hours, agent.id],
        )
    with tenant_transaction(agent.tenant_id):
        state = AgentState.objects.get(agent_id=agent.id)
        if state.last_reach_out_at:
            state.last_reach_out_at -= timedelta(hours=hours)
            state.save(update_fields=["last_reach_out_at"])


def test_a_decision_to_write_is_sent_remembered_and_shown(
    run_replies: Callable[..., str], agent: Agent
) -> None:
    before = timezone.now()
    assert "You last wrote" not in run_replies(reply_reaching_out("The reef is charted."))
    (message,) = outbox(agent)
    (heartbeat, *_) = heartbeats_of(agent)
    assert (message.kind, message.status, message.audience) == ("inbox", DeliveryStatus.SENT, "user")
    assert (message.content, message.subject) == ("The reef is charted.", "The reef is charted.")
    assert message.heartbeat_id == heartbeat.id
    (action,) = [action for action in heartbeat.actions if action["action"] == "reach_out_user"]
    assert (action["outcome"], action["cost"]) == ("success", 5)
    assert action["summary"].startswith("decided to write to my user (by inbox): The reef")
    with tenant_transaction(agent.tenant_id):
        memory = Memory.objects.get(agent_id=agent.id, content__startswith="I decided to write to my user")
        assert memory.type == MemoryType.EPISODIC
        assert memory.detail["messages"] == [str(message.id)]
        reached = AgentState.objects.get(agent_id=agent.id).last_reach_out_at
    assert reached is not None
    assert before < reached
    assert "You last wrote to your user 1 minute ago." in run_replies(REST)


def test_five_heartbeats_that_reach_out_produce_one_message(
    run_replies: Callable[..., str], agent: Agent
) -> None:
    for day in range(5):
        run_replies(reply_reaching_out(f"Have you seen it? ({day})"))
    assert [message.content for message in outbox(agent)] == ["Have you seen it? (0)"]
    refused = [
        action
        for heartbeat in heartbeats_of(agent)[1:]
        for action in heartbeat.actions
        if action["action"] == "reach_out_user"
    ]
    assert len(refused) == 4
    for action in refused:
        assert (action["verdict"], action["outcome"], action["cost"]) == ("too_soon", "blocked", 0)
        assert "it is possible again in 4.0 hours" in action["reason"]


def test_an_agent_may_write_again_after_four_hours_or_a_message(
    run_replies: Callable[..., str], agent: Agent
) -> None:
    run_replies(reply_reaching_out("one"))
    age_messages(agent, 4.1)
    run_replies(reply_reaching_out("two"))
    run_replies(reply_reaching_out("too soon"))
    with tenant_transaction(agent.tenant_id):
        message_agent(agent_id=agent.id, text="Tell me more.", actor="test")
    run_replies(reply_reaching_out("three"))
    assert [message.content for message in outbox(agent)] == ["one", "two", "three"]


def test_an_unanswered_message_is_not_repeated(run_replies: Callable[..., str], agent: Agent) -> None:
    run_replies(reply_reaching_out("Have you seen it?"))
    age_messages(agent, 5)
    run_replies(reply_reaching_out("Have you seen it?"))
    assert "say something else" in first_action(agent)["summary"]
    with tenant_transaction(agent.tenant_id):
        message_agent(agent_id=agent.id, text="Not yet.", actor="test")
    run_replies(reply_reaching_out("Have you seen it?"))
    assert [message.content for message in outbox(agent)] == ["Have you seen it?"] * 2


def test_of_two_messages_in_one_reply_only_the_first_is_sent(
    run_replies: Callable[..., str], agent: Agent
) -> None:
    reply = json.loads(reply_reaching_out("first"))
    reply["actions"] += json.loads(reply_reaching_out("second"))["actions"]
    run_replies(json.dumps(reply))
    assert [message.content for message in outbox(agent)] == ["first"]


def test_a_step_blocked_by_the_cool_down_counts_no_attempt(
    run_replies: Callable[..., str], agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_replies(reply_reaching_out("first"))
    with tenant_transaction(agent.tenant_id):
        goal = GoalFactory.create(agent=agent, state="active")
        step = IntentFactory.create(agent=agent, goal=goal, action="reach_out_user")
    # The situation may be stale when the heartbeat acts, and then lists no refusal.
    monkeypatch.setattr(decisions, "refusals", lambda **_: {})
    second = json.loads(reply_reaching_out("second"))
    second["actions"][0]["intent_id"] = str(step.id)
    for _ in range(3):
        run_replies(json.dumps(second))
        blocked = latest_action(agent, "reach_out_user")
        assert (blocked["verdict"], blocked["outcome"], blocked["cost"]) == ("run", "blocked", 0)
    assert [message.content for message in outbox(agent)] == ["first"]
    with tenant_transaction(agent.tenant_id):
        step.refresh_from_db()
    assert (step.status, step.attempts, step.ticks_used, step.last_error) == ("pending", 0, 0, "")
    assert step.locked_by is None


def test_public_messages_are_bounded_in_a_day(run_replies: Callable[..., str], agent: Agent) -> None:
    allow_public_messages(agent)
    for number in range(6):
        run_replies(reply_reaching_out(f"post {number}", action="reach_out_public"))
    assert len(outbox(agent)) == 4
    assert "In public you wrote 4 times in the last 24 hours." in run_replies(REST)
    age_messages(agent, 24.1)
    run_replies(reply_reaching_out("the next day", action="reach_out_public"))
    assert len(outbox(agent)) == 5


def test_a_rolled_back_heartbeat_sends_no_message(
    run_replies: Callable[..., str], agent: Agent, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_mail_channel(agent)

    def break_down(*_: Any, **__: Any) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(records, "narrate", break_down)
    run_replies(reply_reaching_out())
    assert outbox(agent) == []
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.FAILED
    assert fleet.messages == []
    with tenant_transaction(agent.tenant_id):
        assert AgentState.objects.get(agent_id=agent.id).last_reach_out_at is None


def test_an_undeliverable_message_is_reported_at_the_next_heartbeat(
    run_replies: Callable[..., str], agent: Agent, settings: Any
) -> None:
    settings.MAILERS = {}
    add_mail_channel(agent)
    run_replies(reply_reaching_out("The reef is charted."))
    assert [message.status for message in outbox(agent)] == [DeliveryStatus.FAILED]
    assert "was not delivered by email: no mail server is configured" in run_replies(REST)


def test_an_agent_named_in_public_receives_a_percept(
    run_replies: Callable[..., str], agent: Agent, new_agent: Callable[..., Agent], tenant: Tenant
) -> None:
    allow_public_messages(agent)
    peer = new_agent(tenant, "Old Tom")
    run_replies(reply_reaching_out("@Old Tom, have you seen the reef?", action="reach_out_public"))
    with tenant_transaction(tenant.id):
        percept = Percept.objects.get(agent_id=peer.id)
    assert percept.peer_id == agent.id
    assert schedule_of(peer).next_trigger == Trigger.EVENT
    assert schedule_of(peer).next_due_at <= timezone.now()


def test_a_message_wakes_a_dormant_agent(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        HeartbeatSchedule.objects.filter(agent_id=agent.id).update(state="off")
        make_dormant(agent_id=agent.id, reason="test")
        AgentState.objects.filter(agent_id=agent.id).update(nops=10)
        message_agent(agent_id=agent.id, text="Wake up!", actor="user:ann")
        assert Agent.objects.get(id=agent.id).status == AgentStatus.ACTIVE
        assert AgentState.objects.get(agent_id=agent.id).nops == 0
        event = AuditEvent.objects.get(agent_id=agent.id, action=AuditAction.AGENT_RESUMED)
    assert (event.actor, event.message) == ("user:ann", f"woke {agent.name}")
    schedule = schedule_of(agent)
    assert (schedule.state, schedule.next_trigger) == ("idle", Trigger.MESSAGE)
    assert schedule.next_due_at <= timezone.now()


@pytest.mark.parametrize("status", [AgentStatus.PAUSED, AgentStatus.STOPPED])
def test_a_message_resumes_no_paused_or_stopped_agent(status: AgentStatus, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        Agent.objects.filter(id=agent.id).update(status=status)
        HeartbeatSchedule.objects.filter(agent_id=agent.id).update(state="off")
        message_agent(agent_id=agent.id, text="Later.", actor="test")
        assert Agent.objects.get(id=agent.id).status == status
    assert schedule_of(agent).state == "off"


# --- Other agents ------------------------------------------------------------------------------------


def test_two_agents_reach_each_other_by_default(
    run_replies: Callable[..., str],
    agent: Agent,
    tenant: Tenant,
    new_agent: Callable[..., Agent],
    fleet: Fleet,
) -> None:
    assert "reach_out_agent" not in run_replies(REST)
    bo = new_agent(tenant, name="Bo")
    due_at = schedule_of(bo).next_due_at
    prompt = run_replies(reply_reaching_out("Have the eels left?", action="reach_out_agent", to="bo"))
    assert "reach_out_agent (3)" in prompt
    assert "Bo" in prompt.split("Other agents that you can write to:")[1].split("##")[0]
    record = latest_action(agent, "reach_out_agent")
    assert (record["outcome"], record["cost"]) == ("success", 3)
    with tenant_transaction(tenant.id):
        percept = Percept.objects.get(agent_id=bo.id)
        assert Memory.objects.get(content="I wrote to the agent Bo: Have the eels left?").agent_id == agent.id
    assert (percept.kind, percept.peer_id, percept.content) == ("peer_message", agent.id, "")
    # Bo reads the message at its next due heartbeat: otherwise two agents that answer each other would never rest.
    assert schedule_of(bo).next_due_at == due_at
    fleet.claim(bo)
    fleet.run()
    with tenant_transaction(tenant.id):
        assert Percept.objects.get(agent_id=bo.id).content == "Have the eels left?"
        assert PeerModel.objects.get(agent_id=bo.id).peer_id == agent.id


def test_only_other_agents_of_the_tenant_can_be_written_to(
    run_replies: Callable[..., str],
    agent: Agent,
    tenant: Tenant,
    other_tenant: Tenant,
    new_agent: Callable[..., Agent],
) -> None:
    new_agent(tenant, name="Bo")
    foreign = new_agent(other_tenant, name="Cy")
    for to in ("Cy", str(foreign.id), agent.name, str(agent.id), "Zoe"):
        run_replies(reply_reaching_out("Hello.", action="reach_out_agent", to=to))
        record = latest_action(agent, "reach_out_agent")
        assert record["outcome"] == "failure"
        assert "you can write to: Bo" in record["summary"]
    with tenant_transaction(tenant.id):
        assert not Percept.objects.filter(kind="peer_message").exists()


def test_an_agent_that_reads_nothing_gets_few_messages(
    run_replies: Callable[..., str],
    agent: Agent,
    tenant: Tenant,
    new_agent: Callable[..., Agent],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reach_out, "MAX_UNREAD", 1)
    bo = new_agent(tenant, name="Bo")
    for _ in range(2):
        run_replies(reply_reaching_out("Hello.", action="reach_out_agent", to="Bo"))
    record = latest_action(agent, "reach_out_agent")
    assert (record["outcome"], record["cost"]) == ("blocked", 0)
    assert record["summary"] == "not done: Bo has not read your last 1 messages yet"
    with tenant_transaction(tenant.id):
        assert Percept.objects.filter(agent_id=bo.id).count() == 1


def test_a_suspended_agent_is_not_said_to_be_missing(
    run_replies: Callable[..., str], agent: Agent, tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    bo = new_agent(tenant, name="Bo")
    with tenant_transaction(tenant.id):
        suspend_identity(agent_id=bo.id, reason="a test", actor="test")
    run_replies(reply_reaching_out("Hello.", action="reach_out_agent", to="Bo"))
    summary = latest_action(agent, "reach_out_agent")["summary"]
    assert summary == "did not work: no agent 'Bo' can be written to now; you can write to: nobody"


def test_a_stopped_agent_is_neither_offered_nor_written_to(
    run_replies: Callable[..., str], agent: Agent, tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    new_agent(tenant, name="Cy")
    bo = new_agent(tenant, name="Bo")
    with tenant_transaction(tenant.id):
        stop_agent(agent_id=bo.id, actor="test")
    run_replies(reply_reaching_out("Hello.", action="reach_out_agent", to="Bo"))
    record = latest_action(agent, "reach_out_agent")
    assert record["summary"] == "did not work: no agent 'Bo' can be written to now; you can write to: Cy"
    with tenant_transaction(tenant.id):
        assert not Percept.objects.filter(agent_id=bo.id).exists()


def test_an_agent_may_write_to_agents_only_if_allowed(
    run_replies: Callable[..., str], agent: Agent, tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    new_agent(tenant, name="Bo")
    with tenant_transaction(tenant.id):
        allow(agent, "rest")
    prompt = run_replies(REST)
    assert "reach_out_agent" not in prompt
    assert "Other agents" not in prompt
