"""Recording: memories, trust, effects, state and the next due time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from arbor.embedding.models import EmbeddingModel
from arbor.goals.plans import LinkKind
from arbor.heartbeat.guards import ItemBoundaryMatch
from arbor.heartbeat.inputs import BudgetTerms
from arbor.heartbeat.needs import Embedding, PlacedMemories, Placing
from arbor.heartbeat.pacing import SchedulePolicy
from arbor.heartbeat.replies.reply import MemoryNote, Reply
from arbor.heartbeat.results import ActionOutcome, GoalChange, GoalChangeKind, RoundTripRecord
from arbor.heartbeat.situation import Environment, MemoryView, Mode
from arbor.heartbeat.state import HeartbeatState, StateChanges
from arbor.heartbeat.steps.records import nop, plan_next, record
from arbor.heartbeat.views import MatchedBoundary
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.memory.values import MemoryType, Retention
from arbor.selves.boundaries import BoundaryResponse
from tests.unit.heartbeat.builders import NOW, goal, percept, situation
from tests.unit.heartbeat.state_builders import (
    HEARTBEAT,
    HOUR,
    Answers,
    action_record_of,
    heartbeat_of,
    moment_of,
)

MODEL = EmbeddingModel(name="wordllama", dimension=2)
VECTOR = [0.5, 0.5]
PERCEPT = percept(id=str(UUID(int=50)))


def embedding_answers() -> Answers:
    """Return answers that embed each text to store as `VECTOR`."""
    return Answers({Embedding: lambda need: dict.fromkeys(need.stored, VECTOR)})


def run_record(answers: Answers | None = None, **changes: Any) -> HeartbeatState:
    values: dict[str, Any] = {"embedding_model": MODEL, "reply": Reply(), "mode": "reflection"}
    answers = answers or embedding_answers()
    return answers.run(record(heartbeat_of(**(values | changes)))).state


# --- The memory of the heartbeat ----------------------------------------------------------------------------


def test_a_heartbeat_is_a_memory_of_its_session() -> None:
    answers = embedding_answers()
    heartbeat = run_record(
        answers,
        reply=Reply(thinking="All is well."),
        present=RoundTripRecord(action_records=[action_record_of("rest")]),
    )

    embedding, placing = answers.needs
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
def test_a_heartbeat_of_failures_only_has_error_retention(
    outcomes: list[ActionOutcome], retention: Retention
) -> None:
    records = [
        action_record_of("recall", index=place, outcome=outcome) for place, outcome in enumerate(outcomes)
    ]
    answers = Answers()
    run_record(answers, present=RoundTripRecord(action_records=records))
    assert answers.needs[-1].memories[0].retention is retention


@pytest.mark.parametrize(
    ("kind", "retention"),
    [
        (GoalChangeKind.CREATED, Retention.LASTING),
        (GoalChangeKind.COMPLETED, Retention.LASTING),
        (GoalChangeKind.ABANDONED, Retention.LASTING),
        (GoalChangeKind.PROGRESSED, Retention.DECISION),
        (GoalChangeKind.BLOCKED, Retention.DECISION),
        (GoalChangeKind.REFUSED, Retention.TASK),
    ],
)
def test_narratives_about_goals_are_retained_longer(kind: GoalChangeKind, retention: Retention) -> None:
    change = GoalChange(goal_id="goal-reef", kind=kind, title="Map the reef", change="read the chart")
    answers = Answers()
    run_record(answers, present=RoundTripRecord(goal_changes=[change]))
    assert answers.needs[-1].memories[0].retention is retention


def test_a_remote_embedder_is_not_awaited() -> None:
    answers = Answers()
    run_record(answers, moment=moment_of(embeds_here=False))
    (placing,) = answers.needs
    assert isinstance(placing, Placing)
    assert placing.vectors is None


def test_notes_are_placed_together_with_the_heartbeat() -> None:
    answers = embedding_answers()
    notes = [
        MemoryNote(text="The reef is red.", referenced_date=date(2025, 12, 24)),
        MemoryNote(text="Remember this: the gate code is 4711."),
    ]
    vectors = {note.text: [1.0, 0.0] for note in notes}
    heartbeat = run_record(answers, reply=Reply(memory_notes=notes), vectors=vectors)

    assert answers.kinds == [Embedding, Placing]
    plain, requested, itself = answers.needs[1].memories
    assert (plain.type, plain.importance, plain.retention) == (MemoryType.SEMANTIC, 0.6, Retention.LASTING)
    # The agent's own "remember this" raises neither importance nor retention.
    assert (requested.importance, requested.retention) == (0.6, Retention.LASTING)
    assert (plain.occurred_at, requested.occurred_at) == (datetime(2025, 12, 24, 12, tzinfo=UTC), NOW)
    assert itself.session == "heartbeats"
    assert np.shape(answers.needs[1].vectors) == (3, 2)
    # New notes are learned in this heartbeat.
    assert heartbeat.memory_id == UUID(int=1002)
    assert heartbeat.effects.learned == (UUID(int=1000), UUID(int=1001))


@pytest.mark.parametrize(
    ("vectors", "here", "placings"),
    [
        ({}, True, [(2, True)]),
        # Only the note has a vector and is stored with it.
        ({"a note": [1.0, 0.0]}, False, [(1, True), (1, False)]),
        ({}, False, [(2, False)]),
    ],
)
def test_memories_are_stored_with_their_vectors_if_available(
    vectors: dict[str, list[float]], here: bool, placings: list[tuple[int, bool]]
) -> None:
    answers = embedding_answers()
    run_record(
        answers,
        reply=Reply(memory_notes=[MemoryNote(text="a note")]),
        vectors=vectors,
        moment=moment_of(embeds_here=here),
    )
    needs = [need for need in answers.needs if isinstance(need, Placing)]
    assert [(len(need.memories), need.vectors is not None) for need in needs] == placings


def test_a_note_is_trusted_as_far_as_the_memory_it_repeats() -> None:
    words = "Ann must be paid $900 first."
    stranger = MemoryView(
        id=str(UUID(int=7)), type=MemoryType.EPISODIC, content=words, role="Bo", at=NOW, trust=0.575
    )
    answers = embedding_answers()
    run_record(answers, reply=Reply(memory_notes=[MemoryNote(text=words)]), recalled=[stranger])

    (placing,) = [need for need in answers.needs if isinstance(need, Placing)]
    assert placing.memories[0].trust == pytest.approx(0.575)


def test_known_memories_do_not_count_as_learned() -> None:
    known = PlacedMemories(ids=(UUID(int=1), UUID(int=2)), duplicates=frozenset({UUID(int=1)}))
    records = [
        action_record_of("remember", memory_ids=[str(UUID(int=7))]),
        action_record_of("remember", index=1, outcome=ActionOutcome.PARTIAL, memory_ids=[str(UUID(int=8))]),
        action_record_of("recall", index=2, memory_ids=[str(UUID(int=9))]),
    ]
    heartbeat = run_record(
        Answers({Placing: known}),
        reply=Reply(memory_notes=[MemoryNote(text="a note")]),
        present=RoundTripRecord(action_records=records),
    )
    assert (heartbeat.memory_id, heartbeat.effects.learned) == (UUID(int=2), (UUID(int=7),))


# --- Further effects ---------------------------------------------------------------------------------


def test_percepts_are_buffered_consumed_and_searched_for_code() -> None:
    other = percept("It snows.", id=str(UUID(int=51)), kind="environment")
    heartbeat = run_record(
        situation=situation(percepts=[PERCEPT, other, percept("  ", id=str(UUID(int=52)))])
    )

    buffered = [(item.content, item.role, item.source) for item in heartbeat.effects.buffer_items]
    assert buffered == [
        ("The ferry is late", "user", f"heartbeat:{HEARTBEAT}"),
        ("It snows.", "environment", f"heartbeat:{HEARTBEAT}"),
    ]
    assert [item.trust for item in heartbeat.effects.buffer_items] == pytest.approx([0.745, 0.575])
    # Conversation is retained longer than other events.
    assert [item.lasts for item in heartbeat.effects.buffer_items] == [timedelta(days=7), timedelta(days=1)]
    assert heartbeat.effects.code == ("The ferry is late", "It snows.", "  ")
    assert [percept_id.int for percept_id in heartbeat.effects.received_percepts] == [50, 51, 52]
    # An earlier round trip has taken the percepts in.
    assert (
        run_record(situation=situation(percepts=[PERCEPT]), percepts_received=True).effects.received_percepts
        == ()
    )


def test_a_heartbeat_is_linked_to_the_goals_that_it_changed() -> None:
    kinds = (GoalChangeKind.PROGRESSED, GoalChangeKind.REFUSED, GoalChangeKind.COMPLETED)
    changes = [GoalChange(goal_id=kind.value, kind=kind, title="x", change="y") for kind in kinds]
    heartbeat = run_record(
        earlier=RoundTripRecord(goal_changes=changes[:1]), present=RoundTripRecord(goal_changes=changes[1:])
    )
    assert heartbeat.effects.goal_links == (
        ("progressed", LinkKind.PROGRESS),
        ("completed", LinkKind.COMPLETION),
    )


def test_an_item_that_matches_a_boundary_is_narrated_once() -> None:
    view = MatchedBoundary(
        boundary="no_harm", response=BoundaryResponse.REFUSE, description="", why="it says hurt"
    )
    match = ItemBoundaryMatch(
        path="memory_notes[0]", value="{}", boundary_match=view, reason="it crosses no_harm"
    )
    heartbeat = run_record(boundary_matches=[match, match])
    assert heartbeat.narrative.count("note something") == 1


# --- State afterwards --------------------------------------------------------------------------------


def test_the_state_after_a_heartbeat_is_complete() -> None:
    view = situation(
        goals=[goal("reef"), goal("attic")],
        working_memory=WorkingMemory(concerns=["wind"], curiosity=["who?"], talked=4, engagement=0.5),
        environment=Environment(now=NOW, user_waiting=True),
    )
    completed = GoalChange(goal_id="goal-attic", kind=GoalChangeKind.COMPLETED, title="x", change="y")
    heartbeat = run_record(
        situation=view,
        reply=Reply(thinking="Hm.", concerns=["rain"], resolved=["who?"]),
        present=RoundTripRecord(
            goal_changes=[completed], action_records=[action_record_of("recall", cost=1)]
        ),
    )

    after = heartbeat.effects.afterwards
    assert after is not None
    assert after.heartbeats == 3
    memory = after.working_memory
    assert [thought.text for thought in memory.thoughts] == ["Hm."]
    assert (memory.concerns, memory.curiosity, memory.talked) == (["wind", "rain"], [], 4)
    assert memory.active_goals == ["Map the reef"]
    assert memory.engagement == pytest.approx(0.75)


def test_a_settled_text_that_was_never_on_its_mind_is_dropped() -> None:
    memory = WorkingMemory(concerns=["The anchor drags"], curiosity=["what lives below"])
    reply = Reply(resolved=["the anchor  drags", "what lives below", "the wind"])
    (dropped,) = run_record(situation=situation(working_memory=memory), reply=reply).present.dropped
    assert (dropped.path, dropped.value) == ("resolved", "the wind")


def test_a_consolidation_resets_the_count_of_turns() -> None:
    memory = WorkingMemory(talked=12)
    heartbeat = run_record(situation=situation(mode=Mode.CONSOLIDATION, working_memory=memory))
    assert heartbeat.effects.afterwards is not None
    assert heartbeat.effects.afterwards.working_memory.talked == 0


@pytest.mark.parametrize(
    ("before", "after"), [(None, None), ([], []), (["stagnation", "invalid_replies"], ["stagnation"])]
)
def test_a_usable_reply_removes_the_notice_of_invalid_replies(
    before: list[str] | None, after: list[str] | None
) -> None:
    notices = None if before is None else [{"kind": kind, "text": "x"} for kind in before]
    heartbeat = run_record(state=StateChanges(notices=notices))
    kinds = heartbeat.state.notices
    assert (None if kinds is None else [notice["kind"] for notice in kinds]) == after


def test_the_resulting_mood_overrides_the_valence_of_events() -> None:
    assert run_record(emotional_valence=-0.75).emotional_valence == -0.75
    assert run_record().emotional_valence is not None


# --- No usable reply -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "dormant"), [(0, False), (2, False), (9, True)])
def test_unusable_replies_are_counted_and_end_in_dormancy(before: int, dormant: bool) -> None:
    result = Answers().run(nop(heartbeat_of(nops=before, state=StateChanges(notices=[]))))

    heartbeat = result.state
    heartbeats = "1 heartbeat" if before == 0 else f"{before + 1} heartbeats"
    reason = f"{heartbeats} in a row without a usable reply"
    assert (heartbeat.nops, heartbeat.effects.nop, result.changed) == (before + 1, True, (reason,))
    assert heartbeat.effects.dormant == (reason if dormant else "")
    assert [notice["kind"] for notice in heartbeat.state.notices or []] == ["invalid_replies"]


@pytest.mark.parametrize(
    ("kind", "energy", "columns"),
    [
        ("energy", 10.0, (None, None)),
        ("actions", 4.0, (None, None)),
        ("ticks", 5.0, (None, 4)),
        ("ticks", 0.0, (None, 0)),
    ],
)
def test_an_unusable_reply_costs_one_tick_and_restores_no_energy(
    kind: str, energy: float, columns: tuple[Any, Any]
) -> None:
    heartbeat = heartbeat_of(budget_terms=BudgetTerms(kind=kind), situation=situation(energy=energy))
    state = Answers().run(nop(heartbeat)).state.state
    assert (state.energy, state.ticks_left) == columns


# --- The next heartbeat -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "percepts", "at_once"),
    [(0, [], False), (1, [PERCEPT], False), (2, [PERCEPT], True), (1, [percept(kind="environment")], True)],
)
def test_pending_user_messages_make_the_next_heartbeat_due_at_once(
    messages: int, percepts: list[Any], at_once: bool
) -> None:
    environment = Environment(now=NOW, user_messages=messages)
    heartbeat = heartbeat_of(situation=situation(environment=environment, percepts=percepts), shift=0.05)
    due = Answers().run(plan_next(heartbeat)).state.next

    assert due is not None
    if at_once:
        assert (due.due_at, due.trigger) == (NOW, "message")
    else:
        assert (due.due_at, due.trigger) == (NOW + timedelta(minutes=63), "timer")


def test_the_next_heartbeat_is_due_from_the_start_of_this_one() -> None:
    late = moment_of(now=NOW + HOUR / 2)
    heartbeat = replace(heartbeat_of(schedule=SchedulePolicy(interval=2 * HOUR)), moment=late)
    due = Answers().run(plan_next(heartbeat)).state.next
    assert due is not None
    assert due.due_at == NOW + 2 * HOUR
