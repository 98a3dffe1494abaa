"""Recall requests and their filters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from arbor.errors import Invalid
from arbor.memory.recall.recall_request import (
    EVERYTHING,
    MAX_LIMIT,
    QUERY_LENGTH,
    RecallFilter,
    RecallRequest,
)
from arbor.memory.values import MemoryType


def request(**changes: Any) -> RecallRequest:
    values: dict[str, Any] = {"agent_id": UUID(int=1), "text": "boat", "limit": 5}
    return RecallRequest(**{**values, "now": datetime(2024, 3, 1, tzinfo=UTC), **changes})


def test_a_request_is_accepted_up_to_its_limits() -> None:
    assert (request().vector, request().mood) == (None, None)
    assert request(text="x" * QUERY_LENGTH, limit=MAX_LIMIT, mood=-1.0).limit == MAX_LIMIT


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": ""},
        {"text": " \n"},
        {"text": "a\0b"},
        {"text": "x" * (QUERY_LENGTH + 1)},
        {"limit": 0},
        {"limit": MAX_LIMIT + 1},
        {"mood": 1.1},
    ],
)
def test_a_request_that_cannot_be_answered_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        request(**wrong)


MAY = datetime(2024, 5, 1, tzinfo=UTC)


def test_an_empty_filter_admits_all_memories() -> None:
    assert RecallFilter() == EVERYTHING


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"min_importance": 1.5}, "min_importance must be 0 to 1, got 1.5"),
        ({"min_trust": -0.1}, "min_trust must be 0 to 1, got -0.1"),
        ({"since": MAY, "until": MAY}, "since must be before until"),
        ({"since": datetime(2024, 5, 1)}, "since must have a time zone"),  # noqa: DTZ001
        ({"until": datetime.min}, "until must have a time zone"),  # noqa: DTZ901
        ({"types": {"bogus"}}, "types must be of episodic, .*; got bogus"),
        ({"types": {MemoryType.SEMANTIC, "dream"}}, "got dream"),
        ({"session": "a\0b"}, "session must not contain a NUL"),
        ({"session": "a\ud800"}, "session must not contain"),
        ({"without_session": "a\0b"}, "without_session must not contain a NUL"),
        ({"concept": "a\0b"}, "a concept must not contain a NUL"),
        ({"concept": "a\ud800"}, "a concept must not contain"),
        ({"concept": "  "}, "a concept is named"),
        ({"min_importance": float("nan")}, "min_importance must be 0 to 1, got nan"),
        ({"concept": ""}, "a concept is named by its id or its name"),
    ],
)
def test_an_impossible_filter_is_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        RecallFilter(**parts)


def test_types_may_be_written_as_words() -> None:
    written: Any = {"semantic"}
    assert RecallFilter(types=written) == RecallFilter(types=frozenset({MemoryType.SEMANTIC}))
