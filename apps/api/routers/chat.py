"""Conversations with an agent."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.api.reply_streams import FollowedTurn, event_response, wants_events
from apps.api.requests import access_of
from apps.api.rows import Input, own_row
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services.chat import answer_to, end_session
from apps.contacts.services.chat_history import history
from apps.contacts.services.client_chat import receive_client_turn
from apps.contacts.services.partial_replies import read_progress
from arbor.contacts.chat import TURN_LENGTH
from arbor.contacts.client_messages import NAME_LENGTH, ClientMessage, check_client_name, read_client_turn
from arbor.contacts.reply_progress import ReplyProgress
from arbor.contacts.values import Speaker
from arbor.errors import Invalid, NotFound

router = Router()


class TurnInput(Input):
    """A turn of a person."""

    text: Annotated[str, Field(min_length=1, max_length=TURN_LENGTH, examples=["What did you see today?"])]
    person: Annotated[
        str, Field(max_length=200, description="The name of the person; empty: the name of the token.")
    ] = ""
    conversation: Annotated[
        str,
        Field(max_length=NAME_LENGTH, description="Keeps several conversations of one person apart."),
    ] = ""


class TurnResource(Schema):
    """A turn of a conversation."""

    id: UUID
    conversation: UUID
    person: str
    speaker: Speaker
    content: str
    model: str
    error: str = Field(description="The reason why there is no answer; empty: there is one.")
    at: datetime

    @classmethod
    def of(cls, turn: ChatMessage) -> TurnResource:
        """Return the resource of a row."""
        return cls(
            id=turn.id,
            conversation=turn.session_id,
            person=turn.session.person,
            speaker=Speaker(turn.speaker),
            content=turn.content,
            model=turn.model,
            error=turn.error,
            at=turn.at,
        )


class AnswerResource(Schema):
    """A person's turn and the agent's answer to it."""

    turn: TurnResource
    answer: TurnResource | None = Field(description="Null: a worker is answering; ask again.")
    partial: str = Field(description="The sentences so far of an answer that is being written.")


class TurnList(Schema):
    """Turns, oldest first."""

    items: list[TurnResource]


class EndedResource(Schema):
    """A conversation that has ended."""

    conversation: UUID
    significance: float = Field(description="0 to 1.")
    heartbeat_follows: bool = Field(description="Whether a heartbeat of the agent follows at once.")


@router.post(
    "/agents/{uuid:agent_id}/chat", response={202: AnswerResource}, summary="Say something to an agent"
)
def exchange_turns(request: HttpRequest, agent_id: UUID, utterance: TurnInput) -> Any:
    """Store a person's turn, which a worker answers. The agent remembers the conversation.

    The answer is at `/agents/{agent_id}/turns/{turn_id}`. A conversation has one open turn at a time; the same text again,
    while it is pending, finds that turn. With `Accept: text/event-stream` the reply follows as events, as that address has them.
    """
    follows = wants_events(request)
    if follows and "Idempotency-Key" in request.headers:
        raise Invalid("a stream has no Idempotency-Key: send the turn with the key, then follow the turn")
    person = check_client_name("person", utterance.person)
    read = read_client_turn(
        [ClientMessage(role="user", text=utterance.text)],
        conversation=check_client_name("conversation", utterance.conversation),
        has_user=True,
    )
    access = access_of(request)
    turn = receive_client_turn(
        agent_id=agent_id, person=f"api:{person}" if person else access.actor, turn=read
    )
    if follows:
        return event_response(FollowedTurn(tenant_id=access.tenant_id, turn_id=turn.id))
    return Status(202, _answer_resource(turn))


@router.get(
    "/agents/{uuid:agent_id}/turns/{uuid:turn_id}",
    response=AnswerResource,
    summary="Show a turn and its answer",
)
def show_turn(request: HttpRequest, agent_id: UUID, turn_id: UUID) -> Any:
    """Show a person's turn and the agent's answer, once there is one.

    With `Accept: text/event-stream` the reply follows as events, after `Last-Event-ID`: `turn`, `sentence`, `restart` where what
    was shown is void, and at last `done` or `error`.
    """
    turn = (
        ChatMessage.objects.select_related("session").filter(id=turn_id, session__agent_id=agent_id).first()
    )
    if turn is None:
        raise NotFound(f"the agent {agent_id} has no turn {turn_id}")
    if wants_events(request) and turn.speaker == Speaker.USER:
        return event_response(
            FollowedTurn(tenant_id=access_of(request).tenant_id, turn_id=turn_id),
            last_id=request.headers.get("Last-Event-ID", ""),
        )
    return _answer_resource(turn)


def _answer_resource(turn: ChatMessage) -> AnswerResource:
    is_question = turn.speaker == Speaker.USER
    answer = answer_to(turn) if is_question else None
    progress = read_progress(turn_id=turn.id) if is_question and answer is None else ReplyProgress()
    return AnswerResource(
        turn=TurnResource.of(turn),
        answer=TurnResource.of(answer) if answer else None,
        partial="".join(progress.sentences),
    )


@router.get("/agents/{uuid:agent_id}/turns", response=TurnList, summary="List the latest turns")
def list_turns(
    request: HttpRequest,
    agent_id: UUID,
    limit: Annotated[int, Field(ge=1, le=200)] = 50,
    conversation: UUID | None = None,
) -> TurnList:
    """List the latest turns with an agent, or of one conversation, oldest first."""
    turns = history(agent_id=agent_id, limit=limit, session_id=conversation)
    return TurnList(items=[TurnResource.of(turn) for turn in turns])


@router.post(
    "/agents/{uuid:agent_id}/conversations/{uuid:conversation_id}/end",
    response=EndedResource,
    summary="End a conversation",
)
def end(request: HttpRequest, agent_id: UUID, conversation_id: UUID) -> EndedResource:
    """End a conversation; a significant one is followed by a heartbeat at once."""
    own_row(ChatSession, agent_id=agent_id, row_id=conversation_id)
    ended = end_session(session_id=conversation_id)
    return EndedResource(
        conversation=conversation_id,
        significance=ended.significance,
        heartbeat_follows=ended.heartbeat_follows,
    )
