"""Memory filters of beliefs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from arbor.errors import Invalid
from arbor.memory.values import MemoryType, Recalled, ScoreComponents
from arbor.selves.memory_filters import MAX_FILTERS, apply_filters, filters_of, read_filters, read_new_filter

TIDE = {"effect": "favor", "patterns": ["tide*"]}
GOSSIP = {"effect": "dim", "patterns": ["gossip"]}


def recalled(number: int, content: str, score: float, kind: MemoryType = MemoryType.EPISODIC) -> Recalled:
    return Recalled(
        id=UUID(int=number),
        type=kind,
        content=content,
        role="",
        session="",
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
        importance=0.5,
        terms=replace(ScoreComponents(), meaning=score),
    )


FOUND = [
    recalled(1, "Gossip about the mayor.", 1.0),
    recalled(2, "The harbour is full.", 0.8),
    recalled(3, "Tides turn at noon.", 0.7, MemoryType.SEMANTIC),
]


def belief(*rules: dict[str, Any], confidence: float = 1.0, status: str = "held") -> dict[str, Any]:
    return {"confidence": confidence, "status": status, "filters": list(rules)}


@pytest.mark.parametrize(
    ("beliefs", "order"),
    [
        ([], [1, 2, 3]),
        ([belief()], [1, 2, 3]),
        ([belief(TIDE)], [3, 1, 2]),
        ([belief(TIDE, confidence=0.2)], [1, 2, 3]),
        ([belief(GOSSIP)], [2, 3, 1]),
        ([belief(TIDE), belief(GOSSIP)], [3, 2, 1]),
        ([belief({"effect": "hide", "patterns": ["gossip"]})], [2, 3]),
        ([belief({"effect": "hide", "types": ["episodic"]})], [3]),
        ([belief({"effect": "hide", "types": ["semantic"], "patterns": ["gossip"]})], [1, 2, 3]),
        ([belief(GOSSIP, status="questioned")], [1, 2, 3]),
    ],
)
def test_filters_of_beliefs_reorder_and_hide_memories(
    beliefs: list[dict[str, Any]], order: list[int]
) -> None:
    assert [memory.id.int for memory in apply_filters(FOUND, filters_of(beliefs))] == order


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"effect": "dim"}, "a memory filter needs a word or a type of memory"),
        ({"effect": "forget", "patterns": ["x"]}, "effect Input should be 'favor', 'dim' or 'hide'"),
        (
            {"effect": "dim", "patterns": ["*"]},
            "has 1 to 100 characters, not only blanks and *, as tide or gossip*",
        ),
        (
            {"effect": "hide", "patterns": ["tide", "\t*"]},
            "not only blanks and *, as tide or gossip*, got '\\t*'",
        ),
        ({"effect": "hide", "patterns": ["x" * 101]}, "a word of a memory filter has 1 to 100 characters"),
        (
            {"effect": "dim", "patterns": ["a\0"]},
            "has no NUL character or half a surrogate pair, got 'a\\x00'",
        ),
        ({"effect": "dim", "patterns": ["x"] * 21}, "a memory filter has at most 20 words, got 21"),
        ({"effect": "dim", "types": ["dream"]}, "types.0 Input should be 'episodic'"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_new_filter(rule)
    assert message in str(refused.value)


def test_a_stored_word_of_blanks_hides_nothing() -> None:
    stored = belief({"effect": "hide", "patterns": ["\t*"]})
    assert len(apply_filters(FOUND, filters_of([stored]))) == len(FOUND)


def test_the_rules_of_a_belief_are_limited() -> None:
    assert len(read_filters([TIDE] * MAX_FILTERS)) == MAX_FILTERS
    with pytest.raises(Invalid, match="a belief has at most 10 memory filters, got 11"):
        read_filters([TIDE] * (MAX_FILTERS + 1))
