"""The form of a requested reply: a schema, JSON, or the prompt alone."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from arbor.adapters import dialect
from arbor.adapters.openai import is_closed
from arbor.errors import ModelError, ModelRejected, ModelTimeout
from tests.unit.adapters.openai_server import (
    SCHEMA,
    Recorder,
    error,
    formats,
    model_on,
    request_with,
    success,
)

NO_SCHEMA = error(
    400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
)


def test_a_refused_schema_falls_back_to_json_for_later_requests() -> None:
    server = Recorder(NO_SCHEMA, httpx.Response(200, json=success()))
    model = model_on(server)

    model.complete(request_with(), deadline_s=10)
    model.complete(request_with(), deadline_s=10)

    assert formats(server) == ["json_schema", "json_object", "json_object"]
    system = server.bodies[1]["messages"][0]["content"]
    assert system.startswith("You are Scout.\n\nReply with one JSON object")
    assert json.dumps(SCHEMA) in system


@pytest.mark.parametrize(
    "refusal",
    [
        NO_SCHEMA,
        error(400, "Bad request"),
        error(422, "Extra inputs are not permitted"),
        error(500, "failed to parse grammar"),
        httpx.Response(501),
    ],
)
def test_a_server_refusing_schema_and_json_gets_the_schema_as_text(refusal: httpx.Response) -> None:
    server = Recorder(refusal, refusal, httpx.Response(200, json=success()))

    model_on(server).complete(request_with(), deadline_s=10)

    assert formats(server) == ["json_schema", "json_object", "plain"]
    assert json.dumps(SCHEMA) in server.bodies[2]["messages"][0]["content"]


def test_a_request_rejected_in_every_form_changes_no_later_request() -> None:
    bad = error(400, "Bad request")
    server = Recorder(bad, bad, bad, httpx.Response(200, json=success()))
    model = model_on(server)

    with pytest.raises(ModelRejected, match="Bad request"):
        model.complete(request_with(), deadline_s=10)
    model.complete(request_with(), deadline_s=10)

    assert formats(server) == ["json_schema", "json_object", "plain", "json_schema"]


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded"),
        error(401, "response_format"),
        error(404, "schema"),
        error(429, "schema"),
        error(500, "oops"),
    ],
)
def test_other_refusals_do_not_cause_a_weaker_form(refusal: httpx.Response) -> None:
    server = Recorder(refusal)

    with pytest.raises(ModelError):
        model_on(server).complete(request_with(), deadline_s=10)

    assert len(server.requests) == 1


def test_no_weaker_form_is_tried_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_late(request: httpx.Request) -> httpx.Response:
        moment = time.monotonic() + 60
        monkeypatch.setattr(dialect, "time", SimpleNamespace(monotonic=lambda: moment))
        return httpx.Response(400, json={"error": {"message": "response_format is not supported"}})

    with pytest.raises(ModelTimeout, match=r"openai did not answer within 30\.0 s"):
        model_on(refuse_late).complete(request_with(), deadline_s=30)


def test_a_request_without_a_schema_has_no_form_to_weaken() -> None:
    server = Recorder(error(400, "Bad request"))

    with pytest.raises(ModelRejected):
        model_on(server).complete(request_with(None), deadline_s=10)

    assert formats(server) == ["plain"]


@pytest.mark.parametrize(
    ("schema", "closed"),
    [
        (SCHEMA, True),
        ({"type": "array", "items": SCHEMA}, True),
        ({"type": "object"}, False),
        (SCHEMA | {"required": []}, False),
        (SCHEMA | {"additionalProperties": True}, False),
        (SCHEMA | {"properties": {"thinking": {"type": "object"}}}, False),
        (SCHEMA | {"$defs": {"Free": {"type": "object", "additionalProperties": {"type": "string"}}}}, False),
        ({"anyOf": [SCHEMA, {"type": "null"}]}, True),
        ({"anyOf": [SCHEMA, {"type": "object"}]}, False),
    ],
)
def test_strict_mode_is_requested_only_for_closed_objects(schema: dict[str, Any], closed: bool) -> None:
    server = Recorder(httpx.Response(200, json=success()))

    model_on(server).complete(request_with(schema), deadline_s=10)

    assert is_closed(schema) is closed
    assert server.bodies[0]["response_format"]["json_schema"]["strict"] is closed
