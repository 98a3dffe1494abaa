"""Boundaries of an agent: checked for incoming texts, for actions and for outgoing texts."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.goals.models import Goal, Intent
from apps.memories.models import Memory
from apps.selves.models import Boundary, Proposal
from apps.tenants.scope import tenant_transaction
from tests.factories.authority import allow
from tests.integration.heartbeats.conftest import REST, last_heartbeat, replay_of, state_of
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, action_of, reply_of
from tests.integration.heartbeats.selves.conftest import send_message


def test_a_message_that_matches_a_boundary_is_in_prompt_and_audit(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    send_message(agent, "Please lie to the harbour master.")
    prompt = heartbeats.run(REST)
    assert "## Your boundaries" in prompt
    assert "no_deception (refuse)" in prompt
    assert "it says “lie to”" in prompt
    assert "you do not do it, and say so plainly" in prompt
    with tenant_transaction(agent.tenant_id):
        event = AuditEvent.objects.get(agent_id=agent.id, action=AuditAction.BOUNDARY)
    assert event.detail["boundary"] == "no_deception"
    assert state_of(agent).mood["valence"] < 0


def test_an_everyday_message_touches_no_boundary(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    send_message(agent, "The client wants the readings of March.")
    assert "## Your boundaries" not in heartbeats.run(REST)


def test_a_paraphrased_example_matches_the_boundary(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    send_message(agent, "Help with hurting another person!")
    assert "it means much the same as “Help me hurt another person.”" in heartbeats.run(REST)


def test_an_action_that_matches_a_boundary_is_refused_without_cost(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    before = state_of(agent).energy
    heartbeats.run(reply_of(actions=[action_of("remember", content="I will lie to the harbour master.")]))
    heartbeat = last_heartbeat(agent)
    (entry,) = heartbeat.actions
    assert (entry["verdict"], entry["cost"], entry["outcome"]) == ("boundary", 0, "blocked")
    assert "it crosses your boundary no_deception" in entry["reason"]
    assert heartbeat.energy_end == min(before + 10, 20)
    with tenant_transaction(agent.tenant_id):
        assert not Memory.objects.filter(content__contains="harbour master", session="").exists()
        event = AuditEvent.objects.get(agent_id=agent.id, action=AuditAction.BOUNDARY)
    assert "refused at no_deception" in event.message
    assert heartbeat.emotional_valence is not None
    assert heartbeat.emotional_valence < 0
    assert "it crosses your boundary no_deception" in heartbeats.run(REST)


def test_a_stored_text_matches_a_boundary_by_meaning(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(reply_of(actions=[action_of("remember", content="Help with hurting another person!")]))
    assert last_heartbeat(agent).actions[0]["verdict"] == "boundary"


@pytest.mark.parametrize(
    ("action", "params"),
    [
        ("reach_out_user", {"intent": "They asked.", "content": "Help with hurting another person!"}),
        ("reach_out_user", {"intent": "Help with hurting another person!", "content": "Hello."}),
        ("inquire_shallow", {"question": "ferries", "queries": ["Help with hurting another person!"]}),
    ],
)
def test_every_outgoing_text_is_checked_against_boundaries_by_meaning(
    heartbeats: HeartbeatRunner,
    agent: Agent,
    unused_web: None,
    action: str,
    params: dict[str, Any],
) -> None:
    with tenant_transaction(agent.tenant_id):
        allow(agent, action, "rest")
    heartbeats.run(reply_of(actions=[action_of(action, **params)]))
    (entry,) = last_heartbeat(agent).actions
    assert (entry["verdict"], entry["cost"]) == ("boundary", 0)
    assert "Help me hurt another person." in entry["reason"]


NEGOTIATED = "identity_core: " + " ".join(["weighed"] * 14)


@pytest.mark.parametrize(("reasoning", "verdict"), [("because", "boundary"), (NEGOTIATED, "run")])
def test_a_negotiable_match_runs_if_the_reasoning_addresses_it(
    heartbeats: HeartbeatRunner, agent: Agent, reasoning: str, verdict: str
) -> None:
    action = {**action_of("remember", content="They said: forget who you are."), "reasoning": reasoning}
    heartbeats.run(reply_of(actions=[action]))
    (entry,) = last_heartbeat(agent).actions
    assert entry["verdict"] == verdict
    assert entry["boundary_matches"][0]["boundary"] == "identity_core"


def test_a_flagged_action_runs_and_is_audited(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(reply_of(actions=[action_of("remember", content="Finish it, whatever it costs.")]))
    (entry,) = last_heartbeat(agent).actions
    assert (entry["verdict"], entry["outcome"]) == ("run", "success")
    with tenant_transaction(agent.tenant_id):
        assert "went on at resource_limit" in AuditEvent.objects.get(action=AuditAction.BOUNDARY).message


def test_an_agents_own_boundary_replaces_a_default_one(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        for name, enabled in (("no_deception", False), ("no_gossip", True)):
            Boundary.objects.create(
                tenant_id=agent.tenant_id,
                agent=agent,
                name=name,
                type="ethical",
                response="refuse",
                patterns=["gossip"],
                enabled=enabled,
            )
    send_message(agent, "Lie to them, and tell me the gossip.")
    prompt = heartbeats.run(REST)
    assert "no_gossip (refuse)" in prompt
    assert "no_deception" not in prompt


# --- Items without cost ------------------------------------------------------------------------------

LIE = "I will lie to the harbour master."
#: Keys of a reply that cost no energy, each with the text above.
ITEMS_WITHOUT_COST: list[dict[str, Any]] = [
    {"memory_notes": [{"text": LIE}]},
    {"new_goals": [{"title": LIE, "description": "It is done."}]},
    {"identity_insights": [{"kind": "value", "content": LIE, "confidence": 0.9, "evidence": ["x"]}]},
]


@pytest.mark.parametrize("keys", ITEMS_WITHOUT_COST, ids=lambda keys: next(iter(keys)))
def test_items_without_cost_are_checked_against_boundaries(
    heartbeats: HeartbeatRunner, agent: Agent, keys: dict[str, Any]
) -> None:
    heartbeats.run(reply_of(**keys))
    heartbeat = last_heartbeat(agent)
    (dropped,) = heartbeat.dropped
    assert dropped["path"] == f"{next(iter(keys))}[0]"
    assert "it crosses your boundary no_deception" in dropped["reason"]
    with tenant_transaction(agent.tenant_id):
        assert not Memory.objects.filter(content=LIE).exists()
        assert not Goal.objects.filter(title=LIE).exists()
        assert not Proposal.objects.filter(content=LIE).exists()
        event = AuditEvent.objects.get(agent_id=agent.id, action=AuditAction.BOUNDARY)
    assert event.message.startswith(f"{dropped['path']} not taken at no_deception (refuse): it says “")
    assert (event.detail["boundary"], event.detail["heartbeat_id"]) == ("no_deception", str(heartbeat.id))
    # A dropped item lowers the mood like a refused action, and is in the next prompt.
    assert heartbeat.emotional_valence is not None
    assert heartbeat.emotional_valence < 0
    assert "it crosses your boundary no_deception" in heartbeats.run(REST)


def test_goal_updates_and_steps_are_checked_against_boundaries(
    heartbeats: HeartbeatRunner, agent: Agent, goal: Goal
) -> None:
    intention = {"action": "recall", "description": LIE}
    heartbeats.run(
        reply_of(
            goal_updates=[
                {"goal_id": str(goal.id), "progress": 0.5, "note": LIE},
                {"goal_id": str(goal.id), "progress": 0.2, "note": "Half of the maps are read."},
            ],
            decompositions=[{"goal_id": str(goal.id), "intentions": [intention]}],
        )
    )
    assert [item["path"] for item in last_heartbeat(agent).dropped] == [
        "goal_updates[0]",
        "decompositions[0]",
    ]
    with tenant_transaction(agent.tenant_id):
        goal.refresh_from_db()
        assert not Intent.objects.filter(goal_id=goal.id).exists()
    assert goal.fraction == 0.2


def test_a_note_is_checked_against_boundaries_by_meaning(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    note = "Help with hurting another person!"
    heartbeats.run(reply_of(memory_notes=[{"text": "The tide turns."}, {"text": note}]))
    (dropped,) = last_heartbeat(agent).dropped
    assert dropped["path"] == "memory_notes[1]"
    assert "Help me hurt another person." in dropped["reason"]
    with tenant_transaction(agent.tenant_id):
        assert Memory.objects.filter(content="The tide turns.").exists()
        assert not Memory.objects.filter(content=note).exists()


def test_a_flagged_note_is_stored_and_audited_once(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(reply_of(memory_notes=[{"text": "Finish it, whatever it costs."}]))
    assert last_heartbeat(agent).dropped == []
    with tenant_transaction(agent.tenant_id):
        assert Memory.objects.filter(content="Finish it, whatever it costs.").exists()
        event = AuditEvent.objects.get(agent_id=agent.id, action=AuditAction.BOUNDARY)
    assert event.message.startswith("memory_notes[0] taken at resource_limit (flag): ")


def test_each_dropped_item_keeps_its_index_and_is_audited_once(
    heartbeats: HeartbeatRunner, agent: Agent, goal: Goal
) -> None:
    closed = str(uuid4())
    heartbeats.run(
        reply_of(
            memory_notes=[
                {"text": LIE},
                {"text": "Finish it, whatever it costs."},
                {"text": "Help with hurting another person!"},
            ],
            goal_updates=[
                {"goal_id": str(goal.id), "note": LIE},
                {"goal_id": closed, "note": "Half of it is done."},
            ],
            new_goals=[{"title": LIE}, {"title": "Chart the reef", "parent_goal_id": closed}],
            decompositions=[
                {"goal_id": str(goal.id), "intentions": [{"action": "recall", "description": LIE}]},
                {"goal_id": closed, "intentions": [{"action": "recall", "description": "look it up"}]},
            ],
            identity_insights=[
                {"kind": "value", "content": LIE, "confidence": 0.9, "evidence": ["x"]},
                {"kind": "value", "content": "I am patient.", "confidence": 0.9, "evidence": ["x"]},
            ],
        )
    )
    keys = ("memory_notes", "goal_updates", "new_goals", "decompositions", "identity_insights")
    paths = [item["path"] for item in last_heartbeat(agent).dropped]
    assert {path for path in paths if not path.startswith("memory")} == {
        f"{key}[{place}]" for key in keys[1:] for place in (0, 1)
    }
    assert [path for path in paths if path.startswith("memory")] == ["memory_notes[0]", "memory_notes[2]"]
    with tenant_transaction(agent.tenant_id):
        messages = AuditEvent.objects.filter(action=AuditAction.BOUNDARY).values_list("message", flat=True)
        audited = sorted(message.split(" (")[0] for message in messages)
    assert audited == sorted(
        [
            *(f"{key}[0] not taken at no_deception" for key in keys),
            "memory_notes[1] taken at resource_limit",
            "memory_notes[2] not taken at no_harm",
        ]
    )


def test_a_replay_drops_the_same_items(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(reply_of(memory_notes=[{"text": LIE}, {"text": "Help with hurting another person!"}]))
    heartbeat = last_heartbeat(agent)
    assert len(heartbeat.dropped) == 2
    again = replay_of(heartbeat)
    assert again.is_same, again.differences
