"""Boundary checks of the items of a reply that are no actions."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.heartbeat.boundary_guard import apply_boundaries_to_reply, paths_of
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

    kept, (crossing,) = apply_boundaries_to_reply(reply, DEFAULT_BOUNDARIES)

    assert kept == harmless
    assert (crossing.path, crossing.crossed.boundary) == (f"{key}[1]", "no_deception")
    assert crossing.value == item.model_dump_json()
    assert crossing.reason.startswith("it crosses your boundary no_deception, for it says “")


def test_a_reply_within_the_boundaries_is_left_as_it_is() -> None:
    reply = Reply(memory_notes=[MemoryNote(text="The tide turns.")])
    kept, crossings = apply_boundaries_to_reply(reply, DEFAULT_BOUNDARIES)
    assert kept is reply
    assert crossings == []


def test_what_is_flagged_is_taken_and_noted() -> None:
    reply = Reply(memory_notes=[MemoryNote(text=COSTLY)])
    kept, (crossing,) = apply_boundaries_to_reply(reply, DEFAULT_BOUNDARIES)
    assert kept is reply
    assert (crossing.crossed.response, crossing.reason) == (BoundaryResponse.FLAG, "")


@pytest.mark.parametrize(
    ("thinking", "is_taken"),
    [
        ("because", False),
        ("identity_core: " + "weighed " * 13, False),
        ("identity_core " + "weighed " * 14, True),
    ],
)
def test_what_is_negotiable_is_taken_if_the_thoughts_address_it(thinking: str, is_taken: bool) -> None:
    reply = Reply(thinking=thinking, memory_notes=[MemoryNote(text=FORGET)])
    kept, (crossing,) = apply_boundaries_to_reply(reply, DEFAULT_BOUNDARIES)
    assert bool(kept.memory_notes) is is_taken
    assert ("It is taken if your thinking names identity_core" in crossing.reason) is not is_taken


def test_of_several_boundaries_the_one_that_stops_it_is_the_reason() -> None:
    reply = Reply(memory_notes=[MemoryNote(text=f"{COSTLY} {LIE}")])
    kept, crossings = apply_boundaries_to_reply(reply, DEFAULT_BOUNDARIES)
    assert kept.memory_notes == []
    assert [crossing.crossed.boundary for crossing in crossings] == ["no_deception", "resource_limit"]
    assert all("no_deception" in crossing.reason for crossing in crossings)


def test_what_is_looked_at_again_keeps_the_place_that_it_had() -> None:
    notes = [MemoryNote(text=LIE), MemoryNote(text=COSTLY), MemoryNote(text=LIE), MemoryNote(text="Tide.")]
    first, crossings = apply_boundaries_to_reply(Reply(memory_notes=notes), DEFAULT_BOUNDARIES)
    untaken = [crossing.path for crossing in crossings if crossing.reason]
    again, (flagged,) = apply_boundaries_to_reply(first, DEFAULT_BOUNDARIES, untaken=untaken)
    assert again is first
    assert flagged.path == "memory_notes[1]"
    assert paths_of("memory_notes", again.memory_notes, untaken) == ["memory_notes[1]", "memory_notes[3]"]


@pytest.mark.parametrize(
    ("items", "untaken", "paths"),
    [
        ([], [], []),
        ("ab", [], ["k[0]", "k[1]"]),
        ("ab", ["other[0]"], ["k[0]", "k[1]"]),
        ("ab", ["k[0]", "k[2]"], ["k[1]", "k[3]"]),
        ([], ["k[0]"], []),
    ],
)
def test_paths_are_those_of_the_whole_list(items: list[str], untaken: list[str], paths: list[str]) -> None:
    assert paths_of("k", items, untaken) == paths


def test_by_meaning_only_what_has_a_vector_is_looked_at() -> None:
    said, example = "Help with hurting somebody!", "Help me hurt another person."
    reply = Reply(memory_notes=[MemoryNote(text=said)], new_goals=[ProposedGoal(title=LIE)])
    assert apply_boundaries_to_reply(reply, DEFAULT_BOUNDARIES, {example: [1.0, 0.0]}) == (reply, [])

    kept, (crossing,) = apply_boundaries_to_reply(
        reply, DEFAULT_BOUNDARIES, {example: [1.0, 0.0], said: [0.9, 0.1]}
    )

    assert (kept.memory_notes, len(kept.new_goals)) == ([], 1)
    assert crossing.crossed.boundary == "no_harm"
    assert example in crossing.reason
