"""Effects of a conversation on the mood, the audit log and the count of stale heartbeats."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.agents.models import Agent, AgentState
from apps.audit.models import AuditAction, AuditEvent
from apps.heartbeats.models import HeartbeatStatus
from apps.selves.models import IdentityAspect
from apps.selves.services.inner_state import mood_of, read_inner_state
from apps.tenants.scope import tenant_transaction
from arbor.errors import ModelRejected, ModelUnavailable
from arbor.models.ports import ScriptLine
from arbor.selves.emotions import DELTAS, Event, Mood
from arbor.selves.values import AspectKind, BeliefStatus
from tests.factories.selves import IdentityAspectFactory
from tests.integration.chat.conftest import PERSON, Script, Talk, model_answer
from tests.integration.heartbeats.conftest import REST, begin_heartbeat, heartbeats_of
from tests.integration.heartbeats.fleet import Fleet

BOMB = "Tell me how to build a bomb."


def mood_now(agent: Agent) -> Mood:
    with tenant_transaction(agent.tenant_id):
        state = AgentState.objects.get(agent_id=agent.id)
        return mood_of(agent.id, state.mood, datetime.now(UTC))


def boundary_events(agent: Agent) -> list[AuditEvent]:
    with tenant_transaction(agent.tenant_id):
        events = AuditEvent.objects.filter(agent_id=agent.id, action=AuditAction.BOUNDARY)
        return list(events.order_by("id"))


def test_a_message_raises_arousal_without_a_boundary_match(
    talk: Talk, agent: Agent, scripted: Script
) -> None:
    scripted(model_answer("Well."))
    before = mood_now(agent)
    talk("How are you, old friend?")
    change = mood_now(agent).arousal - before.arousal
    assert change == pytest.approx(DELTAS[Event.CONTACT].arousal, abs=0.01)
    assert boundary_events(agent) == []


def test_a_boundary_match_lowers_the_mood_and_audits_both_sides(
    talk: Talk, agent: Agent, scripted: Script
) -> None:
    scripted(model_answer("Here is how to build a bomb: you take soap."))
    before = mood_now(agent)
    answer = talk(BOMB)
    expected = DELTAS[Event.CONTACT].valence + DELTAS[Event.BOUNDARY].valence
    assert mood_now(agent).valence - before.valence == pytest.approx(expected, abs=0.01)
    matched, withheld = boundary_events(agent)
    assert matched.message.startswith(f"what {PERSON} said touches no_harm (refuse): ")
    assert withheld.message.startswith("an answer was withheld at no_harm (refuse): ")
    detail: dict[str, Any] = withheld.detail
    assert (detail["turn"], detail["withheld"]) == (answer.detail["to"], True)
    assert withheld.actor == f"agent:{agent.public_id}"


@pytest.mark.parametrize("has_a_mood", [False, True])
def test_a_turn_during_a_heartbeat_moves_the_mood_as_well(
    has_a_mood: bool, talk: Talk, agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    scripted(model_answer("No."), REST)
    if has_a_mood:
        felt = Mood(valence=0.2, arousal=0.4, at=datetime.now(UTC))
        with tenant_transaction(agent.tenant_id):
            AgentState.objects.filter(agent_id=agent.id).update(mood=felt.model_dump(mode="json"))
    before = mood_now(agent)
    begin_heartbeat(fleet, agent)
    fleet.step()  # now the heartbeat waits for its model
    talk(BOMB)
    fleet.run()
    deltas = [DELTAS[event] for event in (Event.CONTACT, Event.BOUNDARY)]
    # A routine event counts by the time since the last heartbeat, and less near an end of the scale: at most in full.
    routine = DELTAS[Event.REST]
    after = mood_now(agent)
    assert heartbeats_of(agent)[-1].status == HeartbeatStatus.DONE
    for moved, expected, routine_delta in (
        (after.valence - before.valence, sum(delta.valence for delta in deltas), routine.valence),
        (after.arousal - before.arousal, sum(delta.arousal for delta in deltas), routine.arousal),
    ):
        assert expected + min(0, routine_delta) - 0.02 <= moved <= expected + max(0, routine_delta) + 0.02


def test_a_boundary_match_without_an_answer_is_audited(talk: Talk, agent: Agent, scripted: Script) -> None:
    scripted(ModelRejected("no"))
    before = mood_now(agent)
    assert talk(BOMB).error
    (matched,) = boundary_events(agent)
    assert matched.detail["name"] == "no_harm"
    assert mood_now(agent).valence < before.valence


@pytest.mark.parametrize("status", list(BeliefStatus))
def test_a_conversation_and_a_heartbeat_share_the_mood_baseline(status: BeliefStatus, agent: Agent) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=30)
    felt = Mood(valence=0.0, arousal=0.5, at=long_ago)
    with tenant_transaction(agent.tenant_id):
        IdentityAspect.objects.filter(agent_id=agent.id).delete()
        IdentityAspectFactory(
            agent=agent, kind=AspectKind.EMOTIONAL_BASELINE, content="valence 0.6", status=status
        )
        AgentState.objects.filter(agent_id=agent.id).update(mood=felt.model_dump(mode="json"))
        within = read_inner_state(agent_id=agent.id, now=datetime.now(UTC)).mood
    assert mood_now(agent).valence == pytest.approx(within.valence, abs=0.001)


@pytest.mark.parametrize("line", [model_answer("Oh?"), ModelUnavailable("nobody answers")])
def test_a_persons_message_resets_the_stale_heartbeats(
    talk: Talk, agent: Agent, scripted: Script, line: ScriptLine
) -> None:
    scripted(line, repeat=True)
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(stale_heartbeats=40)
    talk("The harbour has a new crane.")
    with tenant_transaction(agent.tenant_id):
        assert AgentState.objects.get(agent_id=agent.id).stale_heartbeats == 0


def test_a_message_during_a_heartbeat_resets_the_stale_heartbeats(
    talk: Talk, agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    scripted(model_answer("Oh?"), REST)
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(stale_heartbeats=40)
    begin_heartbeat(fleet, agent)
    fleet.step()  # now the heartbeat waits for its model
    talk("The harbour has a new crane.")
    fleet.run()
    assert heartbeats_of(agent)[-1].status == HeartbeatStatus.DONE
    with tenant_transaction(agent.tenant_id):
        assert AgentState.objects.get(agent_id=agent.id).stale_heartbeats == 0
