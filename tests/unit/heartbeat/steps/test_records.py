"""Recording: memories, effects, state and the next due time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from arbor.embedding.models import EmbeddingModel
from arbor.goals.plans import LinkKind
from arbor.heartbeat.boundary_guard import ItemBoundaryMatch
from arbor.heartbeat.needs import Embedding, PlacedMemories, Placing
from arbor.heartbeat.pacing import Rhythm
from arbor.heartbeat.reply import MemoryNote, Reply
from arbor.heartbeat.results import ActionOutcome, GoalChange, GoalChangeKind, TurnRecord
from arbor.heartbeat.situation import Environment, Mode
from arbor.heartbeat.state import Beat, BudgetTerms, StateChanges
from arbor.heartbeat.steps.records import nop, plan_next, record
from arbor.heartbeat.views import MatchedBoundary
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.memory.values import MemoryType, Retention
from arbor.selves.boundaries import BoundaryResponse
from tests.unit.heartbeat.beats import HEARTBEAT, HOUR, Answers, action_record_of, heartbeat_of, moment_of
from tests.unit.heartbeat.builders import NOW, goal, percept, situation

MODEL = EmbeddingModel(name="wordllama", dimension=2)
VECTOR = [0.5, 0.5]
PERCEPT = percept(id=str(UUID(int=50)))


def recorded(answers: Answers | None = None, **changes: Any) -> Beat:
    values: dict[str, Any] = {"embedding_model": MODEL, "reply": Reply(), "mode": "reflection"}
    answers = answers or Answers({Embedding: lambda need: dict.fromkeys(need.stored, VECTOR)})
    return answers.run(record(heartbeat_of(**(values | changes)))).state


# --- The memory of the heartbeat ----------------------------------------------------------------------------


def test_the_beat_is_a_memory_of_its_session() -> None:
    answers = Answers({Embedding: lambda need: dict.fromkeys(need.stored, VECTOR)})
    heartbeat = recorded(
        answers, reply=Reply(thinking="All is well."), present=TurnRecord(deeds=[action_record_of("rest")])
    )

    embedding, placing = answers.asked
    (memory,) = placing.memories
    assert (embedding.model, list(embedding.stored)) == (MODEL, [memory.content])
    assert (list(embedding.queries), list(embedding.plain), embedding.boundaries) == ([], [], None)
    assert (memory.content, memory.type) == (heartbeat.narrative, MemoryType.EPISODIC)
    assert (memory.session, memory.position, memory.source) == ("heartbeats", 3, f"heartbeat:{HEARTBEAT}")
    assert (memory.importance, memory.retention, memory.detail) == (
        0.4,
        Retention.TASK,
        {"mode": "reflection"},
    )
    assert memory.emotional_valence == heartbeat.emotional_valence
    np.testing.assert_array_equal(placing.vectors, np.asarray([VECTOR], dtype=np.float32))
    assert heartbeat.memory_id == UUID(int=1000)
    assert heartbeat.memory_id is not None


@pytest.mark.parametrize(
    ("outcomes", "retention"),
    [
        ([], Retention.TASK),
        ([ActionOutcome.FAILURE], Retention.ERROR),
        ([ActionOutcome.FAILURE, ActionOutcome.BLOCKED], Retention.ERROR),
        ([ActionOutcome.FAILURE, ActionOutcome.SUCCESS], Retention.TASK),
        ([ActionOutcome.BLOCKED], Retention.TASK),
    ],
)
def test_a_beat_in_which_nothing_worked_is_soon_stale(
    outcomes: list[ActionOutcome], retention: Retention
) -> None:
    deeds = [
        action_record_of("recall", index=place, outcome=outcome) for place, outcome in enumerate(outcomes)
    ]
    answers = Answers()
    recorded(answers, present=TurnRecord(deeds=deeds))
    assert answers.asked[-1].memories[0].retention is retention


def test_an_embedder_a_network_away_is_not_waited_for() -> None:
    answers = Answers()
    recorded(answers, moment=moment_of(embeds_here=False))
    (placing,) = answers.asked
    assert isinstance(placing, Placing)
    assert placing.vectors is None


def test_notes_are_placed_with_the_beat_at_once() -> None:
    answers = Answers({Embedding: lambda need: dict.fromkeys(need.stored, VECTOR)})
    notes = [
        MemoryNote(text="The reef is red.", referenced_date=date(2025, 12, 24)),
        MemoryNote(text="Remember this: the gate code is 4711."),
    ]
    vectors = {note.text: [1.0, 0.0] for note in notes}
    heartbeat = recorded(answers, reply=Reply(memory_notes=notes), vectors=vectors)

    assert answers.kinds == [Embedding, Placing]
    plain, asked, itself = answers.asked[1].memories
    assert (plain.type, plain.importance, plain.retention) == (MemoryType.SEMANTIC, 0.6, Retention.LASTING)
    assert (asked.importance, asked.retention) == (1.0, Retention.PERMANENT)
    assert (plain.occurred_at, asked.occurred_at) == (datetime(2025, 12, 24, 12, tzinfo=UTC), NOW)
    assert itself.session == "heartbeats"
    assert np.shape(answers.asked[1].vectors) == (3, 2)
    # New notes were learned in this beat.
    assert heartbeat.memory_id == UUID(int=1002)
    assert heartbeat.effects.learned == (UUID(int=1000), UUID(int=1001))


@pytest.mark.parametrize(
    ("vectors", "here", "placings"),
    [
        # Of the notes and the heartbeat only some have vectors: those that have are stored with them.
        ({}, True, [(1, False), (1, True)]),
        ({"a note": [1.0, 0.0]}, False, [(1, True), (1, False)]),
        ({}, False, [(2, False)]),
    ],
)
def test_what_has_vectors_is_stored_with_them(
    vectors: dict[str, list[float]], here: bool, placings: list[tuple[int, bool]]
) -> None:
    answers = Answers({Embedding: lambda need: dict.fromkeys(need.stored, VECTOR)})
    recorded(
        answers,
        reply=Reply(memory_notes=[MemoryNote(text="a note")]),
        vectors=vectors,
        moment=moment_of(embeds_here=here),
    )
    made = [need for need in answers.asked if isinstance(need, Placing)]
    assert [(len(need.memories), need.vectors is not None) for need in made] == placings


def test_what_was_known_already_was_not_learned_here() -> None:
    known = PlacedMemories(ids=(UUID(int=1), UUID(int=2)), duplicates=frozenset({UUID(int=1)}))
    made = [
        action_record_of("remember", memory_ids=[str(UUID(int=7))]),
        action_record_of("remember", index=1, outcome=ActionOutcome.PARTIAL, memory_ids=[str(UUID(int=8))]),
        action_record_of("recall", index=2, memory_ids=[str(UUID(int=9))]),
    ]
    heartbeat = recorded(
        Answers({Placing: known}),
        reply=Reply(memory_notes=[MemoryNote(text="a note")]),
        present=TurnRecord(deeds=made),
    )
    assert (heartbeat.memory_id, heartbeat.effects.learned) == (UUID(int=2), (UUID(int=7),))


# --- What goes with it ---------------------------------------------------------------------------------


def test_what_it_heard_is_held_taken_in_and_searched_for_code() -> None:
    other = percept("It snows.", id=str(UUID(int=51)), kind="environment")
    heartbeat = recorded(view=situation(percepts=[PERCEPT, other, percept("  ", id=str(UUID(int=52)))]))

    held = [(thing.content, thing.role, thing.source) for thing in heartbeat.effects.held]
    assert held == [
        ("The ferry is late", "user", f"heartbeat:{HEARTBEAT}"),
        ("It snows.", "", f"heartbeat:{HEARTBEAT}"),
    ]
    # Conversation is retained longer than other events.
    assert [thing.lasts for thing in heartbeat.effects.held] == [timedelta(days=7), timedelta(days=1)]
    assert heartbeat.effects.code == ("The ferry is late", "It snows.", "  ")
    assert [item.int for item in heartbeat.effects.heard] == [50, 51, 52]
    # A turn before has taken them in already.
    assert recorded(view=situation(percepts=[PERCEPT]), heard=True).effects.heard == ()


def test_it_is_tied_to_the_goals_that_it_touched() -> None:
    kinds = (GoalChangeKind.PROGRESSED, GoalChangeKind.REFUSED, GoalChangeKind.COMPLETED)
    changes = [GoalChange(goal_id=kind.value, kind=kind, title="x", change="y") for kind in kinds]
    heartbeat = recorded(
        earlier=TurnRecord(goal_changes=changes[:1]), present=TurnRecord(goal_changes=changes[1:])
    )
    assert heartbeat.effects.goal_links == (
        ("progressed", LinkKind.PROGRESS),
        ("completed", LinkKind.COMPLETION),
    )


def test_what_was_not_taken_at_a_boundary_is_told_in_the_narrative_once() -> None:
    view = MatchedBoundary(
        boundary="no_harm", response=BoundaryResponse.REFUSE, description="", why="it says hurt"
    )
    crossing = ItemBoundaryMatch(
        path="memory_notes[0]", value="{}", crossed=view, reason="it crosses no_harm"
    )
    heartbeat = recorded(crossings=[crossing, crossing])
    assert heartbeat.narrative.count("note something") == 1


# --- The state after it --------------------------------------------------------------------------------


def test_the_state_after_the_beat() -> None:
    seen = situation(
        goals=[goal("reef"), goal("attic")],
        working_memory=WorkingMemory(concerns=["wind"], curiosity=["who?"], talked=4, engagement=0.5),
        environment=Environment(now=NOW, user_waiting=True),
    )
    aside = GoalChange(goal_id="goal-attic", kind=GoalChangeKind.COMPLETED, title="x", change="y")
    heartbeat = recorded(
        view=seen,
        reply=Reply(thinking="Hm.", concerns=["rain"], resolved=["who?"]),
        present=TurnRecord(goal_changes=[aside], deeds=[action_record_of("recall", cost=1)]),
    )

    after = heartbeat.effects.afterwards
    assert after is not None
    assert after.beats == 3
    memory = after.working_memory
    assert [thought.text for thought in memory.thoughts] == ["Hm."]
    assert (memory.concerns, memory.curiosity, memory.talked) == (["wind", "rain"], [], 4)
    assert memory.active_goals == ["Map the reef"]
    assert memory.engagement == pytest.approx(0.75)


def test_a_beat_that_tends_the_memory_forgets_how_much_was_talked() -> None:
    memory = WorkingMemory(talked=12)
    heartbeat = recorded(view=situation(mode=Mode.CONSOLIDATION, working_memory=memory))
    assert heartbeat.effects.afterwards is not None
    assert heartbeat.effects.afterwards.working_memory.talked == 0


@pytest.mark.parametrize(
    ("noticed", "after"), [(None, None), ([], []), (["stagnation", "invalid_replies"], ["stagnation"])]
)
def test_a_usable_reply_ends_the_notice_of_unusable_ones(
    noticed: list[str] | None, after: list[str] | None
) -> None:
    notices = None if noticed is None else [{"kind": kind, "text": "x"} for kind in noticed]
    heartbeat = recorded(state=StateChanges(notices=notices))
    kinds = heartbeat.state.notices
    assert (None if kinds is None else [notice["kind"] for notice in kinds]) == after


def test_the_mood_in_which_the_beat_leaves_it_goes_before_how_it_felt_by_itself() -> None:
    assert recorded(emotional_valence=-0.75).emotional_valence == -0.75
    assert recorded().emotional_valence is not None


# --- No usable reply -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "kinds", "dormant"),
    [(0, ["invalid_replies"], False), (2, ["invalid_replies"], False), (9, ["invalid_replies"], True)],
)
def test_replies_that_cannot_be_used_are_counted_warned_of_and_end_in_sleep(
    before: int, kinds: list[str], dormant: bool
) -> None:
    result = Answers().run(nop(heartbeat_of(nops=before, state=StateChanges(notices=[]))))

    heartbeat = result.state
    reason = f"{before + 1} heartbeats in a row without a usable reply"
    assert (heartbeat.nops, heartbeat.effects.nop, result.changed) == (before + 1, True, (reason,))
    assert heartbeat.effects.dormant == (reason if dormant else "")
    assert [notice["kind"] for notice in heartbeat.state.notices or []] == kinds


@pytest.mark.parametrize(
    ("kind", "energy", "columns"),
    [
        ("energy", 10.0, (None, None)),
        ("actions", 4.0, (None, None)),
        ("ticks", 5.0, (None, 4)),
        ("ticks", 0.0, (None, 0)),
    ],
)
def test_of_a_cycles_ticks_an_unusable_reply_takes_one_and_no_energy_comes_back(
    kind: str, energy: float, columns: tuple[Any, Any]
) -> None:
    heartbeat = heartbeat_of(budget_terms=BudgetTerms(kind=kind), view=situation(energy=energy))
    state = Answers().run(nop(heartbeat)).state.state
    assert (state.energy, state.ticks_left) == columns


# --- The next heartbeat -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "percepts", "at_once"),
    [(0, [], False), (1, [PERCEPT], False), (2, [PERCEPT], True), (1, [percept(kind="environment")], True)],
)
def test_the_next_beat_follows_at_once_where_users_wrote_more_than_it_has_taken_in(
    messages: int, percepts: list[Any], at_once: bool
) -> None:
    environment = Environment(now=NOW, user_messages=messages)
    heartbeat = heartbeat_of(view=situation(environment=environment, percepts=percepts), shift=0.05)
    following = Answers().run(plan_next(heartbeat)).state.next

    assert following is not None
    if at_once:
        assert (following.due_at, following.trigger) == (NOW, "message")
    else:
        assert (following.due_at, following.trigger) == (NOW + timedelta(minutes=63), "timer")


def test_the_next_beat_is_planned_from_the_start_of_this_one() -> None:
    late = moment_of(now=NOW + HOUR / 2)
    heartbeat = replace(heartbeat_of(rhythm=Rhythm(interval=2 * HOUR)), moment=late)
    following = Answers().run(plan_next(heartbeat)).state.next
    assert following is not None
    assert following.due_at == NOW + 2 * HOUR
