"""Conversations with agents: turns sent, and their replies read as they grow."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from apps.agents.services.profile import agent_by_id
from apps.api.authentication import STREAM, TALK
from apps.api.growing_replies import FollowedTurn, reply_events, unanswered
from apps.api.requests import access_of
from apps.api.threads import in_thread
from apps.contacts.models import ChatMessage
from apps.contacts.services.client_chat import receive_client_turn, turn_by_id, usage_of_turn
from apps.contacts.services.partial_replies import read_progress
from apps.tenants.scope import tenant_transaction
from arbor.contacts.chat import TURN_LENGTH
from arbor.contacts.client_messages import NAME_LENGTH, ClientMessage, check_client_name, read_client_turn
from arbor.contacts.reply_progress import ReplyEvent, ReplyEventKind, ReplyProgress

router = Router()

_EVENT_STREAM = "text/event-stream"
_COMMENT = ": the agent thinks\n\n"


class ChatTurn(Schema):
    """A message to an agent."""

    model_config = ConfigDict(extra="forbid")

    message: Annotated[str, Field(min_length=1, max_length=TURN_LENGTH, examples=["What did we agree on?"])]
    person: Annotated[
        str, Field(max_length=NAME_LENGTH, description="Who writes; empty: the holder of the token.")
    ] = ""
    conversation: Annotated[
        str,
        Field(max_length=NAME_LENGTH, description="Keeps several conversations of one person apart."),
    ] = ""


class ChatTurnView(Schema):
    """A turn and its answer so far."""

    turn_id: UUID
    conversation_id: UUID
    message: str
    at: datetime
    status: str = Field(description="writing, answered or failed.", examples=["answered"])
    reply: str = Field(description="The reply; while the status is writing, its checked sentences so far.")
    error: str = Field(description="Why there is no answer.")
    model: str = Field(description="The model that answered: provider/model.")
    withheld: bool = Field(description="Whether a boundary withheld the reply, which is a refusal then.")
    input_tokens: int
    output_tokens: int


@router.post(
    "/agents/{uuid:agent_id}/chat",
    response={202: ChatTurnView},
    auth=TALK,
    summary="Say something to an agent",
)
async def send_turn(request: HttpRequest, agent_id: UUID, turn: ChatTurn) -> Any:
    """Store a turn, which a worker answers. With `Accept: text/event-stream` the reply follows as events.

    The events: `turn` with the turn's id, `sentence`, `restart` where another attempt writes the reply anew, and at last `done`
    or `error`. Without, poll the turn.
    """
    turn_id = await in_thread(_receive, request, agent_id, turn)
    if _wants_stream(request):
        return _stream(FollowedTurn(tenant_id=access_of(request).tenant_id, turn_id=turn_id), last_id="")
    return Status(HTTPStatus.ACCEPTED, await in_thread(_show, request, agent_id, turn_id))


@router.get(
    "/agents/{uuid:agent_id}/chat/{uuid:turn_id}",
    response=ChatTurnView,
    auth=STREAM,
    summary="Show a turn, or follow its reply",
)
async def show_turn(request: HttpRequest, agent_id: UUID, turn_id: UUID) -> Any:
    """Show a turn and its answer. With `Accept: text/event-stream` the reply follows as events, after `Last-Event-ID`."""
    view = await in_thread(_show, request, agent_id, turn_id)
    if not _wants_stream(request):
        return view
    turn = FollowedTurn(tenant_id=access_of(request).tenant_id, turn_id=turn_id)
    return _stream(turn, last_id=request.headers.get("Last-Event-ID", ""))


def _receive(request: HttpRequest, agent_id: UUID, turn: ChatTurn) -> UUID:
    access = access_of(request)
    person = check_client_name("person", turn.person)
    read = read_client_turn(
        [ClientMessage(role="user", text=turn.message)],
        conversation=check_client_name("conversation", turn.conversation),
        has_user=True,
    )
    with tenant_transaction(access.tenant_id):
        agent = agent_by_id(agent_id)
        name = f"api:{person}" if person else access.actor
        stored = receive_client_turn(agent_id=agent.id, person=name, turn=read)
    turn_id: UUID = stored.id
    return turn_id


def _show(request: HttpRequest, agent_id: UUID, turn_id: UUID) -> ChatTurnView:
    with tenant_transaction(access_of(request).tenant_id):
        turn = turn_by_id(agent_id=agent_id, turn_id=turn_id)
        return _view(turn, read_progress(turn_id=turn_id))


def _view(turn: ChatMessage, progress: ReplyProgress) -> ChatTurnView:
    answer, usage = progress.answer, usage_of_turn(turn)
    answered = "failed" if answer is not None and answer.error else "answered"
    return ChatTurnView(
        turn_id=turn.id,
        conversation_id=turn.session_id,
        message=turn.content,
        at=turn.at,
        status="writing" if answer is None else answered,
        reply="".join(progress.sentences) if answer is None else answer.content,
        error="" if answer is None else answer.error,
        model="" if answer is None else answer.model,
        withheld=answer is not None and answer.is_withheld,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )


def _wants_stream(request: HttpRequest) -> bool:
    return _EVENT_STREAM in request.headers.get("Accept", "")


def _stream(turn: FollowedTurn, *, last_id: str) -> HttpResponseBase:
    response = StreamingHttpResponse(_events(turn, last_id), content_type=_EVENT_STREAM)
    # No proxy collects the events.
    response["X-Accel-Buffering"] = "no"
    return response


async def _events(turn: FollowedTurn, last_id: str) -> AsyncIterator[str]:
    yield f"event: turn\ndata: {json.dumps({'turn_id': str(turn.turn_id)})}\n\n"
    is_over = False
    async for event in reply_events(turn, last_id=last_id):
        yield _COMMENT if event is None else _event_text(event)
        is_over = event is not None and event.is_last
    if not is_over:
        yield _event_text(unanswered())


def _event_text(event: ReplyEvent) -> str:
    data: dict[str, Any] = {"text": event.text}
    if event.kind is ReplyEventKind.RESTART:
        data = {}
    if event.answer is not None:
        data = {
            "reply": event.answer.content,
            "error": event.answer.error,
            "model": event.answer.model,
            "withheld": event.answer.is_withheld,
        }
    elif event.kind is ReplyEventKind.ERROR:
        data = {"reply": "", "error": event.text, "model": "", "withheld": False}
    named = f"id: {event.id}\n" if event.id else ""
    return f"{named}event: {event.kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
