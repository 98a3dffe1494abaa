"""Conversations with an agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import Call, get, post
from arbor_client.exchange import FOLLOW_S
from arbor_client.groups import Group, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A turn of a conversation."""

    id: UUID
    conversation: UUID
    person: str
    #: user or agent.
    speaker: str
    content: str
    model: str
    #: The reason why there is no answer; empty: there is one.
    error: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class AnsweredTurn:
    """A person's turn and the agent's answer to it; None while a worker is answering."""

    turn: Turn
    answer: Turn | None


@dataclass(frozen=True, kw_only=True)
class TurnList:
    """Turns, oldest first."""

    items: list[Turn]


@dataclass(frozen=True, kw_only=True)
class EndedConversation:
    """A conversation that has ended."""

    conversation: UUID
    significance: float
    heartbeat_follows: bool


class Conversations[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about conversations."""

    @operation
    def say(
        self, agent_id: UUID | str, text: str, *, person: str = "", wait_s: float = 90.0
    ) -> Call[AnsweredTurn]:
        """Say something to an agent, and wait for its answer so long; after that, `turn` asks again."""
        said = post(AnsweredTurn, f"/agents/{agent_id}/chat", {"text": text, "person": person})
        return replace(said, follow=_until_answered(agent_id, attempts=int(wait_s / FOLLOW_S)))

    @operation
    def turn(self, agent_id: UUID | str, turn_id: UUID | str) -> Call[AnsweredTurn]:
        """Return a person's turn, and the answer once there is one."""
        return get(AnsweredTurn, f"/agents/{agent_id}/turns/{turn_id}")

    @operation
    def turns(
        self, agent_id: UUID | str, *, limit: int = 50, conversation: UUID | str | None = None
    ) -> Call[TurnList]:
        """Return the latest turns with an agent, or of one conversation."""
        named = None if conversation is None else str(conversation)
        return get(TurnList, f"/agents/{agent_id}/turns", limit=limit, conversation=named)

    @operation
    def end(self, agent_id: UUID | str, conversation_id: UUID | str) -> Call[EndedConversation]:
        """End a conversation; a significant one is followed by a heartbeat at once."""
        return post(EndedConversation, f"/agents/{agent_id}/conversations/{conversation_id}/end")


def _until_answered(
    agent_id: UUID | str, *, attempts: int
) -> Callable[[AnsweredTurn], Call[AnsweredTurn] | None]:
    def follow(answered: AnsweredTurn) -> Call[AnsweredTurn] | None:
        if answered.answer is not None or attempts <= 0:
            return None
        asked = get(AnsweredTurn, f"/agents/{agent_id}/turns/{answered.turn.id}")
        return replace(asked, follow=_until_answered(agent_id, attempts=attempts - 1))

    return follow
