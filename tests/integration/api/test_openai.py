"""OpenAI's protocol without a client package: lists, and the shape of errors."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from django.db import DataError, InterfaceError, OperationalError
from django.test import RequestFactory
from psycopg.errors import QueryCanceled

from apps.api import authentication, reply_streams
from apps.api.openai import api as openai_routes
from apps.api.openai.errors import unknown_operation
from apps.contacts.models import ChatMessage
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import NotFound
from tests.support.api import Caller, caller_of


def get(caller: Caller, path: str) -> Any:
    return caller.client.get(f"/v1{path}", headers={"Authorization": f"Bearer {caller.token}"})


def test_a_long_list_says_that_there_is_more(
    owner: Caller, vega: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.post("/agents", {"name": "Lyra", "template": "Scout"})
    whole = get(owner, "/models").json()
    monkeypatch.setattr(openai_routes, "MAX_MODELS", 1)
    part = get(owner, "/models").json()

    assert ([model["id"] for model in whole["data"]], whole["has_more"]) == (["Lyra", "Vega"], False)
    assert ([model["id"] for model in part["data"]], part["has_more"]) == (["Lyra"], True)


def test_an_error_has_the_protocols_shape(owner: Caller) -> None:
    missing = get(owner, "/models/Nobody")
    refused = get(Caller(token="sk-nonsense"), "/models")

    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")
    assert missing["x-should-retry"] == "false"
    assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")
    assert refused["WWW-Authenticate"].startswith("Bearer")


def ask(caller: Caller, **fields: Any) -> Any:
    body = {"model": "Vega", "messages": [{"role": "user", "content": "When?"}], **fields}
    return caller.client.post(
        "/v1/chat/completions",
        data=json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Bearer {caller.token}"},
    )


@pytest.mark.parametrize(("method", "path"), [("post", "/responses"), ("get", "/"), ("options", "/models")])
def test_an_unknown_path_names_the_served_paths(owner: Caller, method: str, path: str) -> None:
    answer = getattr(owner.client, method)(f"/v1{path}")

    error = answer.json()["error"]
    assert answer.status_code in (404, 405)
    assert (error["type"], error["code"]) == ("invalid_request_error", "unknown_url")
    assert "POST /v1/chat/completions" in error["message"]


def test_a_request_that_django_refuses_has_no_code(rf: RequestFactory) -> None:
    answer = json.loads(unknown_operation(rf.get("/v1/models"), status=400).content)
    assert (answer["error"]["message"], answer["error"]["code"]) == ("the request cannot be answered", None)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"response_format": {"type": "json_object"}}, "response_format must be text"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "got json_schema"),
        ({"tool_choice": "required"}, "tool_choice must be"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice must be"),
    ],
)
def test_an_unanswerable_request_is_refused(
    owner: Caller, vega: dict[str, Any], tenant: Tenant, fields: dict[str, Any], reason: str
) -> None:
    refused = ask(owner, **fields)

    assert (refused.status_code, reason in refused.json()["error"]["message"]) == (400, True)
    with tenant_transaction(tenant.id):
        assert not ChatMessage.objects.exists()


def test_the_tasks_of_open_webui_are_no_turns(owner: Caller, vega: dict[str, Any], tenant: Tenant) -> None:
    task = "### Task:\nGenerate a concise title summarizing the chat history.\n<chat_history>\nWhen?\n</chat_history>"
    refused = ask(owner, messages=[{"role": "user", "content": task}])

    assert (refused.status_code, "task model" in refused.json()["error"]["message"]) == (400, True)
    with tenant_transaction(tenant.id):
        assert not ChatMessage.objects.exists()


def test_a_statement_that_takes_too_long_is_a_503(owner: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **_named: Any) -> None:
        raise OperationalError("canceled") from QueryCanceled("canceled")

    monkeypatch.setattr(openai_routes, "_find_agent", fail)
    answer = get(owner, "/models/Vega")

    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "server_error")
    assert answer.json()["error"]["message"] == "the database needed too long for the request; ask for less"


@pytest.mark.parametrize("error", [OperationalError("gone"), InterfaceError("closed")])
def test_an_unreachable_database_is_a_503(
    owner: Caller, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any, **_named: Any) -> None:
        raise error

    monkeypatch.setattr(authentication, "authenticate", fail)
    problem, protocol = owner.get("/agents"), get(owner, "/models")

    assert (problem.status_code, problem.json()["type"]) == (503, "urn:arbor:problem:database-away")
    assert (protocol.status_code, protocol.json()["error"]["type"]) == (503, "server_error")
    assert "try again" in protocol.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"model": "a\\u0000", "messages": [%s]}', 404),
        (b'{"model": "\\ud800", "messages": [%s]}', 400),
    ],
)
def test_a_model_name_that_no_agent_has_is_refused(
    owner: Caller, vega: dict[str, Any], body: bytes, status: int
) -> None:
    message = b'{"role": "user", "content": "When?"}'
    answer = owner.client.post(
        "/v1/chat/completions",
        data=body % message,
        content_type="application/json",
        headers={"Authorization": f"Bearer {owner.token}"},
    )
    assert answer.status_code == status, answer.content
    assert get(owner, "/models/a%00b").status_code == 404


def test_a_body_that_is_not_json_is_refused_with_the_place(owner: Caller) -> None:
    answer = owner.client.post(
        "/v1/embeddings",
        data=b'{"model": "default", ',
        content_type="application/json",
        headers={"Authorization": f"Bearer {owner.token}"},
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("the body must be JSON: ")


def test_half_a_surrogate_pair_is_not_embedded(owner: Caller) -> None:
    answer = owner.client.post(
        "/v1/embeddings",
        data=b'{"model": "default", "input": "\\ud800"}',
        content_type="application/json",
        headers={"Authorization": f"Bearer {owner.token}"},
    )
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_token_of_one_agent_names_no_other_agent(
    tenant: Tenant, owner: Caller, vega: dict[str, Any]
) -> None:
    lyra = owner.post("/agents", {"name": "Lyra", "template": "Scout"}).json()
    own = caller_of(tenant, Role.OPERATOR, agent_id=UUID(vega["id"]))
    for name in ("nobody", "Lyra", lyra["id"], lyra["public_id"]):
        for answer in (get(own, f"/models/{name}"), ask(own, model=name)):
            assert (answer.status_code, answer.json()["error"]["message"]) == (
                404,
                f"there is no agent {name!r} that this token reaches",
            )
    assert get(own, f"/models/{vega['id']}").json()["id"] == "Vega"


def test_an_agent_that_is_destroyed_during_a_turn_is_a_404(
    owner: Caller, vega: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise NotFound("there is no such turn")

    monkeypatch.setattr(reply_streams, "_read", fail)
    answer = ask(owner)

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")


def test_a_value_that_cannot_be_stored_is_a_400(owner: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise DataError("a value that PostgreSQL quotes")

    monkeypatch.setattr(openai_routes, "_find_agent", fail)
    answer = get(owner, "/models/Vega")

    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert answer.json()["error"]["message"].startswith("a value is out of range")
