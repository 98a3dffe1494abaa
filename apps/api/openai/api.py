"""Operations of OpenAI's protocol: its clients need a base URL and a token."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import numpy as np
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from ninja import NinjaAPI

from apps.agents.models import Agent
from apps.agents.services.lookup import find_agent
from apps.api.api import StrictParser
from apps.api.authentication import READ_OWN, TALK_OWN
from apps.api.openai.completions import Completion, usage_json
from apps.api.openai.errors import error_response, handle_openai_errors, status_of_failure
from apps.api.openai.schemas import ChatCompletionRequest, EmbeddingRequest
from apps.api.reply_streams import FollowedTurn, last_event, stream_response, timeout_event
from apps.api.requests import access_of
from apps.api.threads import in_thread
from apps.contacts.services.client_chat import receive_client_turn, turn_by_id, usage_of_turn
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.embedding.minds import installation_model
from apps.tenants.scope import tenant_transaction
from arbor.contacts.client_messages import check_client_name, read_client_turn
from arbor.errors import Invalid, NotFound
from arbor.models.token_estimates import estimate_tokens
from arbor.models.usage import Usage

PATH = "/v1"
#: The name under which any client can ask for the installation's embedder.
DEFAULT_EMBEDDER = "default"
#: The most agents that are listed, because the protocol's list has no pages. Clients reach the others by their names.
MAX_MODELS = 1_000
#: Headers in which clients name a conversation; the second one is Open WebUI's.
_CONVERSATION_HEADERS = ("X-Conversation-ID", "X-OpenWebUI-Chat-Id")
#: The header in which Open WebUI names the person, percent-encoded.
_USER_HEADER = "X-OpenWebUI-User-Name"
_CONVERSATION_KEYS = ("conversation_id", "conversation", "chat_id")

openai_api = NinjaAPI(
    title="OpenAI's protocol",
    urls_namespace="openai",
    docs_url=None,
    openapi_url=None,
    auth=READ_OWN,
    parser=StrictParser(),
)
handle_openai_errors(openai_api)


@openai_api.get("/models")
def list_models(request: HttpRequest) -> JsonResponse:
    """List the agents of the tenant, at most MAX_MODELS; a token of one agent lists only this agent."""
    access = access_of(request)
    with tenant_transaction(access.tenant_id, statement_timeout=settings.ARBOR_PAGE_TIMEOUT):
        rows = Agent.objects.order_by("name").only("tenant_id", "name", "created_at")
        if access.agent_id is not None:
            rows = rows.filter(id=access.agent_id)
        found = list(rows[: MAX_MODELS + 1])
    data = [_model_json(agent, access.tenant_slug) for agent in found[:MAX_MODELS]]
    return JsonResponse({"object": "list", "data": data, "has_more": len(found) > MAX_MODELS})


@openai_api.get("/models/{path:name}")
def show_model(request: HttpRequest, name: str) -> JsonResponse:
    """Show an agent as a model."""
    access = access_of(request)
    with tenant_transaction(access.tenant_id, statement_timeout=settings.ARBOR_PAGE_TIMEOUT):
        agent = _find_agent(name, access.agent_id)
    return JsonResponse(_model_json(agent, access.tenant_slug))


@openai_api.post("/chat/completions", auth=TALK_OWN)
async def complete_chat(request: HttpRequest, payload: ChatCompletionRequest) -> HttpResponseBase:
    """Give the last message of the user to an agent, and answer with its reply, whole or as a stream."""
    completion = await in_thread(_begin, request, payload)
    if payload.stream:
        return stream_response(completion.chunks())
    last = await last_event(completion.turn) or timeout_event()
    if last.answer is None or last.answer.error:
        return error_response(last.text, status=status_of_failure(last.text))
    usage = await in_thread(completion.read_usage)
    return JsonResponse(completion.whole(last.answer, usage))


@openai_api.post("/embeddings", auth=READ_OWN)
def embed(request: HttpRequest, payload: EmbeddingRequest) -> JsonResponse:
    """Return the vectors of texts by the installation's embedder, each of length 1."""
    model = installation_model()
    if payload.model not in {model.name, DEFAULT_EMBEDDER}:
        raise NotFound(f"there is no embedder {payload.model!r}; there is: {model.name}, {DEFAULT_EMBEDDER}")
    if payload.dimensions not in (None, model.dimension):
        raise Invalid(f"{model.name} has vectors of {model.dimension} dimensions, got {payload.dimensions}")
    texts = payload.texts()
    vectors = embed_texts(tenant_id=access_of(request).tenant_id, texts=texts, model=model)
    is_packed = payload.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(row.astype("<f4").tobytes()).decode()
            if is_packed
            else row.tolist(),
        }
        for index, row in enumerate(np.asarray(vectors, dtype=np.float32))
    ]
    usage = usage_json(Usage(input_tokens=sum(estimate_tokens(text) for text in texts)))
    counts = {name: usage[name] for name in ("prompt_tokens", "total_tokens")}
    return JsonResponse({"object": "list", "data": data, "model": model.name, "usage": counts})


def _begin(request: HttpRequest, payload: ChatCompletionRequest) -> Completion:
    """Store the turn of a request, and return its completion."""
    access = access_of(request)
    payload.require_words()
    user = check_client_name("user", payload.user or unquote(request.headers.get(_USER_HEADER, "")))
    turn = read_client_turn(
        [message.as_client_message() for message in payload.messages],
        conversation=_conversation(request, payload),
        has_user=bool(user),
    )
    with tenant_transaction(access.tenant_id):
        agent = _find_agent(payload.model, access.agent_id)
        person = f"api:{user}" if user else access.actor
        stored = receive_client_turn(agent_id=agent.id, person=person, turn=turn)

    def read_usage() -> Usage:
        with tenant_transaction(access.tenant_id):
            return usage_of_turn(turn_by_id(agent_id=agent.id, turn_id=stored.id))

    return Completion(
        turn=FollowedTurn(tenant_id=access.tenant_id, turn_id=stored.id),
        model=payload.model,
        read_usage=read_usage,
        includes_usage=payload.stream_options is not None and payload.stream_options.include_usage,
    )


def _conversation(request: HttpRequest, payload: ChatCompletionRequest) -> str:
    """Return the client's name of the conversation; empty for none."""
    metadata = payload.metadata or {}
    names = [
        *(request.headers.get(header, "") for header in _CONVERSATION_HEADERS),
        *(str(metadata.get(key) or "") for key in _CONVERSATION_KEYS),
    ]
    return check_client_name("a conversation", next(filter(None, names), ""))


def _find_agent(name: str, own: UUID | None) -> Agent:
    """Find an agent by name, id or public id; a token of one agent finds only this agent.

    Raises NotFound, which names other agents only to a token that reaches them.
    """
    try:
        agent = find_agent(name)
    except NotFound:
        if own is None:
            raise
    else:
        if own in (None, agent.id):
            return agent
    raise NotFound(f"there is no agent {name!r} that this token reaches")


def _model_json(agent: Agent, owner: str) -> dict[str, Any]:
    return {
        "id": agent.name,
        "object": "model",
        "created": int(agent.created_at.timestamp()),
        "owned_by": owner,
    }
