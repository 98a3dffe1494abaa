"""A recall request is valid, or refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from arbor.errors import Invalid
from arbor.memory.recall_request import MAX_LIMIT, QUERY_LENGTH, RecallRequest


def request(**changes: Any) -> RecallRequest:
    values: dict[str, Any] = {"agent_id": UUID(int=1), "text": "boat", "limit": 5}
    return RecallRequest(**{**values, "now": datetime(2024, 3, 1, tzinfo=UTC), **changes})


def test_a_request_is_a_query_with_a_limit_at_a_moment() -> None:
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
