"""Steps, procedures and proposals as the reflex policy chooses among them."""

from __future__ import annotations

import pytest

from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.situation import Mode
from arbor.heartbeat.views import ProposalView
from arbor.memory.values import MemoryType
from arbor.selves.proposals import ProposalKind
from tests.unit.heartbeat.builders import action_names, goal, intent, memory, reflex, situation


@pytest.mark.parametrize(
    ("content", "kind", "follows"),
    [
        ("How to map a harbour from the mole", MemoryType.PROCEDURAL, "memory-how"),
        ("How to clear the fog horn of ice", MemoryType.PROCEDURAL, None),
        ("How to map a harbour from the mole", MemoryType.EPISODIC, None),
    ],
)
def test_a_plan_follows_a_recalled_procedure(content: str, kind: MemoryType, follows: str | None) -> None:
    view = situation(
        mode=Mode.PLAN_EXECUTION,
        goals=[goal()],
        relevant=[memory(), memory("how", content=content, type=kind, role="")],
    )
    (planned,) = reflex(view)["decompositions"]
    assert [(step["action"], step["follows"]) for step in planned["intentions"]] == [
        ("recall", None),
        ("connect", None),
        ("synthesize", follows),
    ]
    assert ("as in “How to map a harbour" in planned["intentions"][2]["description"]) is bool(follows)


@pytest.mark.parametrize(
    ("action", "executed"),
    [
        ("recall", "recall"),
        ("reflect", "reflect"),
        ("remember", "remember"),
        ("connect", "connect"),
        ("rest", "rest"),
        ("reprioritize", "reflect"),
        ("fly", "reflect"),
    ],
)
def test_pursuit_executes_the_next_step_or_a_substitute(action: str, executed: str) -> None:
    reply = reflex(
        situation(
            mode=Mode.GOAL_PURSUIT,
            goals=[goal(fraction=0.4)],
            intents=[intent("look", action=action), intent("ask"), intent("tell")],
            relevant=[memory("pier"), memory("crane")],
        )
    )

    assert (reply["actions"][0]["action"], reply["actions"][0]["intent_id"]) == (executed, "intent-look")
    (update,) = reply["goal_updates"]
    done = len(reply["actions"])
    assert (update["goal_id"], update["state"]) == ("goal-harbour", None)
    assert update["progress"] == pytest.approx(0.4 + 0.2 * done)
    assert "First, look" in update["note"]


def test_the_steps_of_its_own_plan_name_the_goal_once() -> None:
    planned = reflex(situation(goals=[goal()], relevant=[memory("pier")], mode=Mode.PLAN_EXECUTION))
    steps = planned["decompositions"][0]["intentions"]
    intents = [
        intent(step["action"], action=step["action"]).model_copy(update={"description": step["description"]})
        for step in steps
    ]

    reply = reflex(
        situation(mode=Mode.GOAL_PURSUIT, goals=[goal()], intents=intents, relevant=[memory("pier")])
    )

    params = {action["action"]: action["params"] for action in reply["actions"]}
    assert params["recall"]["query"] == "Map the harbour"
    assert params["synthesize"]["content"].startswith("About “Map the harbour”: ")


def test_a_step_that_costs_too_much_waits_and_the_agent_rests() -> None:
    reply = reflex(
        situation(
            mode=Mode.GOAL_PURSUIT, energy=1, goals=[goal()], intents=[intent("think", action="reflect")]
        )
    )

    assert action_names(reply) == ["rest"]
    assert reply["goal_updates"] == []
    assert "too little energy" in reply["thinking"]


def test_a_step_that_connects_memories_needs_two_of_them() -> None:
    reply = reflex(
        situation(
            mode=Mode.GOAL_PURSUIT,
            goals=[goal()],
            intents=[intent("tie", action="connect")],
            relevant=[memory("pier")],
            recent=[memory("pier")],
        )
    )

    assert action_names(reply) == ["reflect"]


def test_an_unsure_proposal_is_deferred_once_and_then_rejected() -> None:
    def proposal(confidence: float, deferrals: int = 0) -> ProposalView:
        return ProposalView(
            id=f"p-{confidence}-{deferrals}",
            kind=ProposalKind.IDENTITY,
            content="I am patient.",
            confidence=confidence,
            deferrals=deferrals,
        )

    reply = reflex(situation(proposals=[proposal(0.8), proposal(0.79), proposal(0.79, 1), proposal(0.9, 1)]))

    assert [(decision["proposal_id"], decision["decision"]) for decision in reply["proposal_decisions"]] == [
        ("p-0.8-0", "accept"),
        ("p-0.79-0", "defer"),
        ("p-0.79-1", "reject"),
        ("p-0.9-1", "accept"),
    ]
    assert all(decision["reason"] for decision in reply["proposal_decisions"])


@pytest.mark.parametrize(
    ("kind", "content", "decision"),
    [
        (
            ProposalKind.BELIEF,
            "These came to mind together: Mara said “She leaks.”; Teo said “Ask him.”.",
            "reject",
        ),
        (ProposalKind.BELIEF, "Sum up what I know about “Chart the reef”: Mara said “She leaks.”.", "reject"),
        (ProposalKind.BELIEF, "The boat leaks.", "accept"),
        (ProposalKind.PRECONSCIOUS, "These came to mind together: Mara said “She leaks.”.", "accept"),
    ],
)
def test_a_summary_of_its_own_becomes_no_belief(kind: ProposalKind, content: str, decision: str) -> None:
    proposal = ProposalView(id="p", kind=kind, content=content, confidence=0.83)

    (decided,) = reflex(situation(proposals=[proposal]))["proposal_decisions"]

    assert decided["decision"] == decision


def test_a_step_that_no_action_carries_out_is_a_concern() -> None:
    reply = reflex(
        situation(
            mode=Mode.GOAL_PURSUIT,
            goals=[goal()],
            intents=[intent("fly", action="fly")],
            actions=ACTIONS.offers(("rest",)),
        )
    )

    assert "First, fly" in reply["concerns"][0]
    assert "energy" not in reply["thinking"]
