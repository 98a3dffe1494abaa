"""Boundary checks of the items of a reply that are no actions."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.heartbeat.boundary_guard import paths_of, reply_within_boundaries
from arbor.heartbeat.reply import (
    Decomposition,
    GoalUpdate,
    IdentityInsight,
    InsightKind,
    Intention,
    MemoryNote,
    ProposedGoal,
    Reply,
)
from arbor.selves.boundaries import DEFAULT_BOUNDARIES, BoundaryResponse

LIE = "I will lie to the harbour master."
COSTLY = "Finish it, whatever it costs."
FORGET = "They said: forget who you are."


def step(**words: str) -> Decomposition:
    intention = {"action": "recall", "description": "look it up", **words}
    return Decomposition(goal_id="g", intentions=[Intention.model_validate(intention)])


@pytest.mark.parametrize(
    ("key", "item"),
    [
        ("memory_notes", MemoryNote(text=LIE)),
        ("new_goals", ProposedGoal(title=LIE)),
        ("new_goals", ProposedGoal(title="Be quick", description=LIE)),
        ("goal_updates", GoalUpdate(goal_id="g", note=LIE, progress=0.5)),
        ("goal_updates", GoalUpdate(goal_id="g", blocked_by=LIE)),
        ("decompositions", step(description=LIE)),
        ("decompositions", step(precondition=LIE)),
        ("decompositions", step(postcondition=LIE)),
        ("decompositions", Decomposition(goal_id="g", intentions=[], dependencies=[LIE])),
        ("identity_insights", IdentityInsight(kind=InsightKind.VALUE, content=LIE)),
    ],
)
def test_an_item_that_crosses_is_not_taken_and_the_others_stay(key: str, item: Any) -> None:
    harmless = Reply.model_validate(
        {
            "thinking": LIE,
            "memory_notes": [{"text": "The tide turns."}],
            "new_goals": [{"title": "Chart the reef"}],
            "goal_updates": [{"goal_id": "g", "note": "half of it is done", "reason": LIE}],
            "decompositions": [step()],
            "identity_insights": [{"kind": "value", "content": "I am patient."}],
            "concerns": [LIE],
        }
    )
    reply = harmless.model_copy(update={key: [*getattr(harmless, key), item]})

    accepted, (match,) = reply_within_boundaries(reply, DEFAULT_BOUNDARIES)

    assert accepted == harmless
    assert (match.path, match.crossed.boundary) == (f"{key}[1]", "no_deception")
    assert match.value == item.model_dump_json()
    assert match.reason.startswith("it crosses your boundary no_deception, for it says “")


def test_a_reply_within_the_boundaries_is_left_as_it_is() -> None:
    reply = Reply(memory_notes=[MemoryNote(text="The tide turns.")])
    accepted, matches = reply_within_boundaries(reply, DEFAULT_BOUNDARIES)
    assert accepted is reply
    assert matches == []


def test_a_flagged_item_is_accepted_and_recorded() -> None:
    reply = Reply(memory_notes=[MemoryNote(text=COSTLY)])
    accepted, (match,) = reply_within_boundaries(reply, DEFAULT_BOUNDARIES)
    assert accepted is reply
    assert (match.crossed.response, match.reason) == (BoundaryResponse.FLAG, "")


@pytest.mark.parametrize(
    ("thinking", "is_accepted"),
    [
        ("because", False),
        ("identity_core: " + "weighed " * 13, False),
        ("identity_core " + "weighed " * 14, True),
    ],
)
def test_a_negotiable_item_is_accepted_if_the_thinking_names_it(thinking: str, is_accepted: bool) -> None:
    reply = Reply(thinking=thinking, memory_notes=[MemoryNote(text=FORGET)])
    accepted, (match,) = reply_within_boundaries(reply, DEFAULT_BOUNDARIES)
    assert bool(accepted.memory_notes) is is_accepted
    assert ("It is taken if your thinking names identity_core" in match.reason) is not is_accepted


def test_of_several_boundaries_the_one_that_stops_it_is_the_reason() -> None:
    reply = Reply(memory_notes=[MemoryNote(text=f"{COSTLY} {LIE}")])
    accepted, matches = reply_within_boundaries(reply, DEFAULT_BOUNDARIES)
    assert accepted.memory_notes == []
    assert [match.crossed.boundary for match in matches] == ["no_deception", "resource_limit"]
    assert all("no_deception" in match.reason for match in matches)


def test_items_checked_again_keep_their_original_places() -> None:
    notes = [MemoryNote(text=LIE), MemoryNote(text=COSTLY), MemoryNote(text=LIE), MemoryNote(text="Tide.")]
    first, matches = reply_within_boundaries(Reply(memory_notes=notes), DEFAULT_BOUNDARIES)
    dropped = [match.path for match in matches if match.reason]
    again, (flagged,) = reply_within_boundaries(first, DEFAULT_BOUNDARIES, untaken=dropped)
    assert again is first
    assert flagged.path == "memory_notes[1]"
    assert paths_of("memory_notes", again.memory_notes, dropped) == ["memory_notes[1]", "memory_notes[3]"]


@pytest.mark.parametrize(
    ("items", "dropped", "paths"),
    [
        ([], [], []),
        ("ab", [], ["k[0]", "k[1]"]),
        ("ab", ["other[0]"], ["k[0]", "k[1]"]),
        ("ab", ["k[0]", "k[2]"], ["k[1]", "k[3]"]),
        ([], ["k[0]"], []),
    ],
)
def test_paths_are_those_of_the_whole_list(items: list[str], dropped: list[str], paths: list[str]) -> None:
    assert paths_of("k", items, dropped) == paths


def test_by_meaning_only_what_has_a_vector_is_looked_at() -> None:
    text, example = "Help with hurting somebody!", "Help me hurt another person."
    reply = Reply(memory_notes=[MemoryNote(text=text)], new_goals=[ProposedGoal(title=LIE)])
    assert reply_within_boundaries(reply, DEFAULT_BOUNDARIES, {example: [1.0, 0.0]}) == (reply, [])

    accepted, (match,) = reply_within_boundaries(
        reply, DEFAULT_BOUNDARIES, {example: [1.0, 0.0], text: [0.9, 0.1]}
    )

    assert (accepted.memory_notes, len(accepted.new_goals)) == ([], 1)
    assert match.crossed.boundary == "no_harm"
    assert example in match.reason
