"""Values of memories: defaults, refused values, and the score of a recalled memory."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from arbor.errors import ContentInvalid, Invalid
from arbor.ids import uuid7
from arbor.memory.values import MemoryType, NewMemory, Recalled, ScoreComponents

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_a_memory_needs_only_its_text_and_its_moment() -> None:
    memory = NewMemory(content="The kettle is blue.", occurred_at=NOON)
    assert memory.type is MemoryType.EPISODIC
    assert (memory.importance, memory.retention) == (None, None)
    assert (memory.decay_rate, memory.trust) == (0.01, 1.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"importance": 1.01}, "importance must be a number from 0 to 1, got 1.01"),
        ({"importance": math.nan}, "importance must be"),
        ({"trust": -0.1}, "trust must be"),
        ({"decay_rate": -1.0}, "decay rate per day must be"),
        ({"decay_rate": math.inf}, "decay rate per day must be"),
        ({"decay_rate": 10**400}, "decay rate per day must be"),
        ({"emotional_valence": 2.0}, "emotional valence must be a number from -1 to 1"),
        ({"role": "x" * 101}, "role must have at most 100 characters, got 101"),
        ({"session": "a\0b"}, "session must not contain a NUL"),
        ({"detail": {"source_id": "a\0b"}}, "detail must not contain a NUL"),
        ({"detail": {"source_id": "\udc00"}}, "detail must not contain"),
        ({"source": "x" * 201}, "source must have at most 200"),
        ({"position": -1}, "position must be 0 to"),
        ({"position": 2**31}, "position must be 0 to"),
        ({"occurred_at": NOON.replace(tzinfo=None)}, "occurred_at must have a time zone"),
        ({"expires_at": NOON.replace(tzinfo=None)}, "expires_at must have a time zone"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(wrong: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {"content": "The kettle is blue.", "occurred_at": NOON} | wrong
    with pytest.raises(Invalid, match=message):
        NewMemory(**fields)


def test_a_memory_without_text_is_refused() -> None:
    with pytest.raises(ContentInvalid):
        NewMemory(content=" ", occurred_at=NOON)


def test_a_recalled_memory_scores_the_sum_of_its_components() -> None:
    components = ScoreComponents(meaning=0.25, words=0.5, trust=0.125)
    recalled = Recalled(
        id=uuid7(),
        type=MemoryType.SEMANTIC,
        content="The kettle is blue.",
        role="",
        session="",
        occurred_at=NOON,
        importance=0.5,
        components=components,
    )
    assert recalled.score == 0.875
    assert list(components.as_dict())[:3] == ["meaning", "words", "neighbours"]
