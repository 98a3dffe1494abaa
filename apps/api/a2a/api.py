"""The endpoints of published agents: the card, which needs no token, and the calls by JSON-RPC, which need one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from ninja import NinjaAPI
from pydantic import ValidationError

from apps.agents.models import Agent
from apps.agents.services.publication import a2a_path, published_agent
from apps.api.a2a.card import card_of
from apps.api.a2a.errors import RpcCode, RpcRefused, error_json, invalid_params, refusal_of
from apps.api.a2a.legacy import METHODS_0_3, downgrade_result, upgrade_params
from apps.api.a2a.methods import METHODS, RpcCaller, RpcEvents, RpcMethod
from apps.api.authentication import GIVE_TASKS
from apps.api.problems import handle_errors
from apps.api.reply_streams import COMMENT, data_event, stream_response
from apps.api.requests import access_of
from apps.api.threads import in_thread
from apps.contacts.services.client_tasks import TaskClient
from apps.tenants.scope import tenant_transaction
from arbor.errors import ArborError, NotFound

PATH = "/a2a"
_VERSION_NAME = "A2A-Version"
_SERVED_VERSIONS = re.compile(r"(0\.3|1\.\d{1,3})(\.\d{1,3})?", re.ASCII)
#: Seconds for which clients cache a card, also after it is withdrawn.
_CARD_AGE_S = 60

a2a_api = NinjaAPI(
    title="Agent2Agent", urls_namespace="a2a", docs_url=None, openapi_url=None, auth=GIVE_TASKS
)
handle_errors(a2a_api)


@a2a_api.get("/{uuid:tenant_id}/{uuid:agent_id}/.well-known/agent-card.json", auth=None)
def show_card(request: HttpRequest, tenant_id: UUID, agent_id: UUID) -> JsonResponse:
    """Show the card of a published agent. Without a token: publishing it is the operator's consent."""
    agent = _published(tenant_id, agent_id)
    response = JsonResponse(card_of(agent, url=request.build_absolute_uri(a2a_path(agent))))
    response["Cache-Control"] = f"public, max-age={_CARD_AGE_S}"
    return response


@a2a_api.post("/{uuid:tenant_id}/{uuid:agent_id}")
async def answer_call(request: HttpRequest, tenant_id: UUID, agent_id: UUID) -> HttpResponseBase:
    """Answer a call by JSON-RPC. An agent that is unknown, of another tenant or not published is not found."""
    access = access_of(request)
    if access.tenant_id != tenant_id:
        raise _unknown(agent_id)
    await in_thread(_published, tenant_id, agent_id)
    client = TaskClient(agent_id=agent_id, person=access.actor)
    return await _answer(request, RpcCaller(tenant_id=tenant_id, client=client))


@dataclass(frozen=True, kw_only=True)
class _Call:
    """A parsed call."""

    id: str | int | None
    method: RpcMethod
    params: Any
    #: Whether the client speaks version 0.3 of the protocol.
    is_legacy: bool

    def result(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return a result as a response of JSON-RPC."""
        shown = downgrade_result(value) if self.is_legacy else value
        return {"jsonrpc": "2.0", "id": self.id, "result": shown}


async def _answer(request: HttpRequest, caller: RpcCaller) -> HttpResponseBase:
    call_id: str | int | None = None
    method: RpcMethod | None = None
    try:
        body = _read_body(request.body)
        call_id = _id_of(body)
        _require_version(request)
        call = _read_call(body, call_id)
        method = call.method
        if method.stream is not None:
            events = await method.stream(caller, call.params)
            return stream_response(_event_texts(call, events))
        assert method.run is not None, "a method runs or streams"
        return JsonResponse(call.result(await method.run(caller, call.params)))
    except ArborError as error:
        refusal = refusal_of(error, cancels=method is not None and method.cancels)
        if refusal is None:
            raise
        return JsonResponse({"jsonrpc": "2.0", "id": call_id, "error": error_json(refusal)})


async def _event_texts(call: _Call, events: RpcEvents) -> AsyncIterator[str]:
    async for event in events:
        yield COMMENT if event is None else data_event(call.result(event))


def _require_version(request: HttpRequest) -> None:
    version = request.headers.get(_VERSION_NAME) or request.GET.get(_VERSION_NAME, "")
    if version and not _SERVED_VERSIONS.fullmatch(version):
        raise RpcRefused(
            RpcCode.VERSION_NOT_SUPPORTED, f"{_VERSION_NAME} must be 1.0 or 0.3, got {version[:20]!r}"
        )


def _read_body(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except ValueError as error:
        raise RpcRefused(RpcCode.JSON_PARSE, f"the body must be JSON: {error}") from error


def _id_of(body: Any) -> str | int | None:
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _read_call(body: Any, call_id: str | int | None) -> _Call:
    if not isinstance(body, dict):
        raise RpcRefused(
            RpcCode.INVALID_REQUEST, "the body must be one call, an object; batches are not served"
        )
    if body.get("jsonrpc") != "2.0":
        raise RpcRefused(RpcCode.INVALID_REQUEST, 'jsonrpc must be "2.0"')
    if call_id is None and body.get("id") is not None:
        raise RpcRefused(RpcCode.INVALID_REQUEST, "id must be a text, an integer or null")
    name = body.get("method")
    if not isinstance(name, str) or not name:
        raise RpcRefused(RpcCode.INVALID_REQUEST, "method must be the name of a method")
    method = METHODS.get(METHODS_0_3.get(name, name))
    if method is None:
        raise RpcRefused(
            RpcCode.METHOD_NOT_FOUND, f"there is no method {name[:100]!r}; there is: {', '.join(METHODS)}"
        )
    params, is_legacy = body.get("params"), name in METHODS_0_3
    params = {} if params is None else params
    try:
        read = method.params.model_validate(upgrade_params(params) if is_legacy else params)
    except ValidationError as error:
        raise invalid_params(error) from error
    return _Call(id=call_id, method=method, params=read, is_legacy=is_legacy)


def _published(tenant_id: UUID, agent_id: UUID) -> Agent:
    with tenant_transaction(tenant_id, statement_timeout=settings.ARBOR_PAGE_TIMEOUT):
        agent = published_agent(agent_id)
    if agent is None:
        raise _unknown(agent_id)
    return agent


def _unknown(agent_id: UUID) -> NotFound:
    # The words are those for a token of another agent, so that an answer does not reveal which agents exist.
    return NotFound(f"there is no agent {agent_id} in this tenant")
