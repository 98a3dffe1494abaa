"""The model port's values and its fake."""

from __future__ import annotations

import json

import pytest

from arbor.errors import ModelRejected, ModelUnavailable
from arbor.models.ports import CallPurpose, ModelRequest, PromptMessage, ScriptedModel


def a_request(**changes: object) -> ModelRequest:
    values: dict[str, object] = {
        "purpose": CallPurpose.THINK,
        "system": "You are Scout.",
        "messages": (
            PromptMessage(role="user", content="What now?"),
            PromptMessage(role="assistant", content="{"),
        ),
        "schema": {"type": "object"},
        "context": {"energy": 12},
    }
    return ModelRequest(**(values | changes))  # type: ignore[arg-type]


def test_a_request_survives_the_round_trip_through_json() -> None:
    request = a_request()

    assert ModelRequest.from_json(json.loads(json.dumps(request.to_json()))) == request


def test_the_fake_returns_its_lines_and_records_requests() -> None:
    model = ScriptedModel("one", ModelUnavailable("down"), lambda request: request.system)
    request = a_request()

    assert model.complete(request, deadline_s=1).text == "one"
    with pytest.raises(ModelUnavailable, match="down"):
        model.complete(request, deadline_s=1)
    assert model.complete(request, deadline_s=1).text == "You are Scout."
    assert model.requests == [request] * 3


def test_a_call_beyond_the_script_fails() -> None:
    model = ScriptedModel("only")
    model.complete(a_request(), deadline_s=1)

    with pytest.raises(ModelRejected, match="1 lines, and this is call 2"):
        model.complete(a_request(), deadline_s=1)


def test_a_repeating_script_starts_again() -> None:
    model = ScriptedModel("a", "b", repeat=True)

    assert [model.complete(a_request(), deadline_s=1).text for _ in range(5)] == ["a", "b", "a", "b", "a"]
