"""Own heartbeats in recalls: few, and none that the prompt shows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from arbor.heartbeat.own_past import NOT_OWN_HEARTBEATS, choose_memories, own_past_filter, recall_memories
from arbor.heartbeat.situation import LastHeartbeat, Mode
from arbor.memory.recall.recall_request import EVERYTHING, SessionLimit
from arbor.memory.values import HEARTBEATS_SESSION, Recalled, ScoreComponents
from arbor.selves.memory_filters import BeliefFilter, FilterEffect, MemoryFilter
from tests.unit.heartbeat.builders import NOW, memory, percept, situation
from tests.unit.heartbeat.state_builders import heartbeat_of, recalled_memory

STORIES = (
    "I charted the northern reef with Ada.",
    "I painted the pier blue.",
    "Two gulls nested upon the tower.",
    "Bread was baked for the harbour feast.",
)


def own_heartbeat(number: int, story: str) -> Recalled:
    return recalled_memory(number, session=HEARTBEATS_SESSION, content=f"Heartbeat {number}. {story}")


def test_own_heartbeats_since_the_first_shown_event_are_excluded() -> None:
    recent = [memory("pier", at=NOW - timedelta(hours=3)), memory("reef", at=NOW)]
    only = own_past_filter(situation(recent=recent))
    assert (only.without_session, only.without_since) == (HEARTBEATS_SESSION, NOW - timedelta(hours=3))
    assert own_past_filter(situation()) == EVERYTHING


def test_the_reflex_policy_recalls_its_past_only_when_asked() -> None:
    assert own_past_filter(situation(model_is_reflex=True)) == NOT_OWN_HEARTBEATS
    assert own_past_filter(situation(model_is_reflex=True, percepts=[percept()])) == EVERYTHING


def test_at_most_half_of_a_recall_are_own_heartbeats() -> None:
    heartbeats = [own_heartbeat(number, story) for number, story in enumerate(STORIES, start=1)]
    facts = [recalled_memory(number) for number in range(10, 14)]
    assert choose_memories([*heartbeats, *facts], limit=4, situation=situation()) == [
        *heartbeats[:2],
        *facts[:2],
    ]
    assert choose_memories([*facts, *heartbeats], limit=4, situation=situation()) == facts


def test_a_recall_of_one_memory_may_be_an_own_heartbeat() -> None:
    heartbeats = [own_heartbeat(number, story) for number, story in enumerate(STORIES, start=1)]
    assert choose_memories(heartbeats, limit=1, situation=situation()) == heartbeats[:1]


def test_heartbeats_like_a_shown_one_are_left_out() -> None:
    last = LastHeartbeat(number=9, mode=Mode.REFLECTION, narrative=f"Heartbeat 9. {STORIES[0]}")
    shown = situation(last_beat=last, recent=[memory(content=f"Heartbeat 8. {STORIES[1]}")])
    heartbeats = [
        own_heartbeat(number, story) for number, story in enumerate((*STORIES[:3], STORIES[2]), start=1)
    ]
    assert choose_memories(heartbeats, limit=5, situation=shown) == [heartbeats[2]]


def test_facts_are_chosen_however_alike() -> None:
    facts = [recalled_memory(number, content=STORIES[0]) for number in range(1, 4)]
    shown = situation(recent=[memory(content=STORIES[0])])
    assert choose_memories(facts, limit=5, situation=shown) == facts


def test_memories_that_do_not_fit_the_query_come_last() -> None:
    unfit = ScoreComponents(importance=0.05, recency=0.05)
    old, new = (
        recalled_memory(number, terms=unfit, occurred_at=NOW - timedelta(days=days))
        for number, days in ((1, 9), (2, 1))
    )
    fit = recalled_memory(3, terms=ScoreComponents(words=0.01))
    assert choose_memories([old, new, fit], limit=2, situation=situation()) == [fit, new]


@pytest.mark.parametrize(
    ("limit", "asked_for", "own"), [(1, 3, 1), (5, 15, 7), (20, 60, 30), (200, 200, 100)]
)
def test_a_recall_asks_for_more_than_is_chosen(limit: int, asked_for: int, own: int) -> None:
    request = next(recall_memories(heartbeat_of(), "the ferry", limit=limit, only=EVERYTHING))
    assert request.limit == asked_for
    assert request.session_limit == SessionLimit(session=HEARTBEATS_SESSION, most=own)


def test_a_recall_without_own_heartbeats_needs_no_limit_of_them() -> None:
    request = next(recall_memories(heartbeat_of(), "the ferry", limit=5, only=NOT_OWN_HEARTBEATS))
    assert request.session_limit is None


def test_one_recall_is_enough_among_many_own_heartbeats() -> None:
    own = [own_heartbeat(number, STORIES[number % 4]) for number in range(1, 8)]
    others = [recalled_memory(number) for number in range(50, 58)]
    steps = recall_memories(heartbeat_of(), "the ferry", limit=5, only=EVERYTHING)
    next(steps)
    with pytest.raises(StopIteration) as chosen:
        steps.send([*own, *others])
    assert chosen.value.value == [*own[:2], *others[:3]]


def test_a_memory_hidden_by_a_belief_is_replaced() -> None:
    rule = MemoryFilter(effect=FilterEffect.HIDE, patterns=("gossip",))
    steps = recall_memories(
        heartbeat_of(),
        "the ferry",
        limit=2,
        only=EVERYTHING,
        filters=[BeliefFilter(rule=rule, confidence=1.0)],
    )
    next(steps)
    facts = [recalled_memory(number) for number in range(2, 7)]
    with pytest.raises(StopIteration) as chosen:
        steps.send([recalled_memory(1, content="Gossip about the ferry."), *facts])
    assert chosen.value.value == facts[:2]
