"""Conversations with an agent."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.agents.services.profile import agent_by_id
from apps.api.requests import access_of
from apps.api.rows import Input, own_row
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services.chat import answer_to, end_session, open_session, receive_turn
from apps.contacts.services.chat_history import history
from arbor.contacts.values import Speaker
from arbor.errors import NotFound

router = Router()


class TurnInput(Input):
    """A turn of a person."""

    text: Annotated[str, Field(min_length=1, max_length=20_000, examples=["What did you see today?"])]
    person: Annotated[
        str, Field(max_length=200, description="The name of the person; empty: the name of the token.")
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
        """Return the view of a row."""
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
def say(request: HttpRequest, agent_id: UUID, utterance: TurnInput) -> Status[AnswerResource]:
    """Store a person's turn, which a worker answers. The agent remembers the conversation.

    The answer is at `/agents/{agent_id}/turns/{turn_id}`. A conversation has one open turn at a time.
    """
    access = access_of(request)
    session = open_session(agent_id=agent_id, person=utterance.person.strip() or access.actor)
    turn = receive_turn(session_id=session.id, text=utterance.text)
    return Status(202, AnswerResource(turn=TurnResource.of(turn), answer=None))


@router.get(
    "/agents/{uuid:agent_id}/turns/{uuid:turn_id}",
    response=AnswerResource,
    summary="Show a turn and its answer",
)
def show_turn(request: HttpRequest, agent_id: UUID, turn_id: UUID) -> AnswerResource:
    """Show a person's turn and the agent's answer, once there is one."""
    turn = (
        ChatMessage.objects.select_related("session").filter(id=turn_id, session__agent_id=agent_id).first()
    )
    if turn is None:
        raise NotFound(f"the agent {agent_id} has no turn {turn_id}")
    answer = answer_to(turn) if turn.speaker == Speaker.USER else None
    return AnswerResource(turn=TurnResource.of(turn), answer=TurnResource.of(answer) if answer else None)


@router.get("/agents/{uuid:agent_id}/turns", response=TurnList, summary="List the latest turns")
def list_turns(
    request: HttpRequest,
    agent_id: UUID,
    limit: Annotated[int, Field(ge=1, le=200)] = 50,
    conversation: UUID | None = None,
) -> TurnList:
    """List the latest turns with an agent, or of one conversation, oldest first."""
    agent_by_id(agent_id)
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
