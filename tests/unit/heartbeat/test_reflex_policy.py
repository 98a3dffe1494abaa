"""The reflex policy: schema, means and decisions."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.goals.values import GoalState
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.situation import Mode
from arbor.heartbeat.views import ProposalView
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.memory.values import MemoryType
from arbor.selves.proposals import ProposalKind
from tests.unit.heartbeat.builders import full_situation, goal, intent, memory, percept, reflex, situation


def actions(reply: dict[str, Any]) -> list[str]:
    return [action["action"] for action in reply["actions"]]


def test_conversation_remembers_messages_and_adds_requests_as_goals() -> None:
    reply = reflex(
        situation(
            mode=Mode.CONVERSATION,
            percepts=[percept("The ferry is late"), percept("Can you find out who built the lighthouse?")],
            relevant=[memory("lighthouse")],
        )
    )

    assert actions(reply) == ["remember", "remember", "recall"]
    assert "The ferry is late" in reply["actions"][0]["params"]["content"]
    assert "lighthouse" in reply["actions"][2]["params"]["query"]
    assert [(new["title"], new["source"]) for new in reply["new_goals"]] == [
        ("See to it: Can you find out who built the lighthouse?", "user_request")
    ]
    assert "The lighthouse was rebuilt after the storm" in reply["thinking"]


def test_conversation_without_permission_to_remember_leaves_a_note() -> None:
    reply = reflex(
        situation(
            mode=Mode.CONVERSATION, percepts=[percept("The ferry is late")], actions=ACTIONS.offers(("rest",))
        )
    )

    assert [note["text"] for note in reply["memory_notes"]] == ["User message: “The ferry is late”"]


def test_a_request_that_is_a_goal_already_is_not_added_again() -> None:
    request = percept("Can you find out who built the lighthouse?")
    known = goal(title="see to it: can you find out who built the  lighthouse?")

    assert reflex(situation(mode=Mode.CONVERSATION, percepts=[request], goals=[known]))["new_goals"] == []


def test_planning_breaks_the_most_important_goal_into_permitted_steps() -> None:
    reply = reflex(
        situation(
            mode=Mode.PLAN_EXECUTION,
            goals=[goal("market", priority=1), goal("harbour", priority=2)],
            actions=ACTIONS.offers(("recall", "reflect", "rest")),
        )
    )

    (plan,) = reply["decompositions"]
    assert plan["goal_id"] == "goal-harbour"
    assert [step["action"] for step in plan["intentions"]] == ["recall", "reflect"]
    assert all("Map the harbour" in step["description"] for step in plan["intentions"])


def test_planning_without_a_useful_action_worries_instead() -> None:
    reply = reflex(situation(mode=Mode.PLAN_EXECUTION, goals=[goal()], actions=ACTIONS.offers(("rest",))))

    assert reply["decompositions"] == []
    assert "Map the harbour" in reply["concerns"][0]


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

    assert [(action["action"], action["intent_id"]) for action in reply["actions"]] == [
        (executed, "intent-look")
    ]
    (update,) = reply["goal_updates"]
    assert (update["goal_id"], update["progress"], update["state"]) == ("goal-harbour", 0.6, None)
    assert "First, look" in update["note"]


def test_the_last_step_completes_the_goal() -> None:
    reply = reflex(situation(mode=Mode.GOAL_PURSUIT, goals=[goal(fraction=0.8)], intents=[intent("look")]))

    (update,) = reply["goal_updates"]
    assert (update["progress"], update["state"]) == (1.0, "completed")
    assert update["reason"]


def test_a_step_that_costs_too_much_waits_and_the_agent_rests() -> None:
    reply = reflex(
        situation(
            mode=Mode.GOAL_PURSUIT, energy=1, goals=[goal()], intents=[intent("think", action="reflect")]
        )
    )

    assert actions(reply) == ["rest"]
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

    assert actions(reply) == ["reflect"]


def test_consolidation_connects_memories_that_share_most_words() -> None:
    reply = reflex(
        situation(
            mode=Mode.CONSOLIDATION,
            # Of three pairs, the first has its turn at every third consolidation.
            beat_number=15,
            recent=[
                memory("a", content="Bread is baked at dawn"),
                memory("b", content="The lighthouse keeper counts ferries"),
                memory("c", content="Ferries pass the lighthouse at night"),
            ],
        )
    )

    connect, reflect = reply["actions"]
    assert connect["params"] == {"from_id": "memory-b", "to_id": "memory-c", "relation": "associated"}
    assert "lighthouse, ferries" in reflect["params"]["insight"]
    assert "“Ferries pass the lighthouse at night”" in reflect["params"]["insight"]


def test_consolidations_rotate_through_the_pairs() -> None:
    views = [memory("pier"), memory("crane"), memory("buoy")]
    tied = {
        (connect["params"]["from_id"], connect["params"]["to_id"])
        for heartbeat in (5, 10, 15)
        for connect in reflex(situation(mode=Mode.CONSOLIDATION, beat_number=heartbeat, recent=views))[
            "actions"
        ][:1]
    }

    assert len(tied) == 3


def test_memories_with_equal_texts_are_not_connected() -> None:
    twice = [memory("a", content="I value  patience."), memory("b", content="I value patience.")]

    assert actions(reflex(situation(mode=Mode.CONSOLIDATION, recent=twice))) == ["rest"]


def test_reflection_ignores_the_answers_of_the_agent() -> None:
    answered = memory("own", role="agent", content="I answer by rule.")

    for recent in ([answered], [answered, memory("pier")]):
        reply = reflex(situation(recent=recent, beat_number=2))

        assert "I answer by rule" not in reply["thinking"]


def test_consolidation_without_similar_memories_rests() -> None:
    assert actions(reflex(situation(mode=Mode.CONSOLIDATION, recent=[memory()]))) == ["rest"]


def test_reflection_without_goals_creates_one_from_curiosity() -> None:
    reply = reflex(
        situation(recent=[memory("pier")], working_memory=WorkingMemory(curiosity=["who built the pier?"]))
    )

    assert actions(reply) == ["reflect", "brainstorm_goals"]
    assert "The pier was rebuilt" in reply["actions"][0]["params"]["insight"]
    ideas = reply["actions"][1]["params"]["goals"]
    assert [(goal["title"], goal["state"]) for goal in ideas] == [
        ("Find out more about who built the pier", "queued"),
        ("Put in order what I know about who built the pier", "backburner"),
    ]
    assert reply["new_goals"] == []
    assert "The pier was rebuilt" in reply["curiosity"][0]


def test_an_empty_mind_still_creates_a_goal() -> None:
    poor = reflex(situation(energy=2))
    rich = reflex(situation())

    assert poor["new_goals"][0]["title"] == "Find out more about what being Mira is for"
    assert actions(poor) == ["rest"]
    assert actions(rich) == ["brainstorm_goals"]


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


@pytest.mark.parametrize(("state", "up"), [(GoalState.QUEUED, "active"), (GoalState.BACKBURNER, "queued")])
def test_reflection_promotes_a_queued_goal_before_a_new_one(state: GoalState, up: str) -> None:
    reply = reflex(situation(goals=[goal(state=state)]))

    assert reply["actions"][-1]["params"] == {"goal_id": "goal-harbour", "state": up}
    assert reply["new_goals"] == []


def test_a_reflection_on_a_reflection_quotes_only_its_subject() -> None:
    own = memory(
        "own",
        role="",
        content="What stays with me is this: Ada said “the pier is old”.",
        type=MemoryType.SEMANTIC,
    )

    insight = reflex(situation(recent=[own]))["actions"][0]["params"]["insight"]

    assert insight.startswith("What stays with me is this: “the pier is old”.")


def test_a_thought_about_nested_quotations_cites_the_innermost() -> None:
    own = memory("own", role="", content="I thought: “Ada said ‘the pier isn’t old’. So.” I spent 2 energy.")

    insight = reflex(situation(recent=[own]))["actions"][0]["params"]["insight"]

    assert insight.startswith("What stays with me is this: “the pier isn’t old”.")


def test_a_quotation_within_a_quotation_uses_single_marks() -> None:
    quoted = memory("said", role="Ada", content="He said “come”.")
    reply = reflex(situation(recent=[quoted]))

    assert "I think of this: Ada said “He said ‘come’.”" in reply["thinking"]
    assert reply["curiosity"] == ["What follows from “He said ‘come’.”?"]


def test_different_situations_give_different_thoughts() -> None:
    situations = [
        situation(mode=mode, beat_number=heartbeat, recent=[memory("pier"), memory("crane")], goals=goals_)
        for mode in (Mode.REFLECTION, Mode.CONSOLIDATION, Mode.PLAN_EXECUTION)
        for heartbeat, goals_ in ((1, [goal("harbour")]), (7, [goal("market")]))
    ]

    thoughts = [reflex(situation)["thinking"] for situation in situations]

    assert len(set(thoughts)) >= 5
    assert all(thoughts)


def test_a_full_situation_gets_a_reply_about_its_content() -> None:
    reply = reflex(full_situation())

    assert "Map the harbour" in reply["thinking"]
    assert reply["actions"][0]["goal_id"] == "goal-harbour"
