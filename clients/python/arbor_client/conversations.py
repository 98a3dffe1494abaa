"""Conversations with an agent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import Call, Id, Rows, get, post, rows_of, segment
from arbor_client.groups import Group, operation, streaming
from arbor_client.streams import StreamCall

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
    """A person's turn and the agent's answer to it."""

    turn: Turn
    #: None while a worker is answering.
    answer: Turn | None
    #: The sentences so far of an answer that is being written.
    partial: str


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
        self, agent_id: Id, text: str, *, person: str = "", conversation: str = "", wait_s: float = 90.0
    ) -> Call[AnsweredTurn]:
        """Say something to an agent, and wait up to `wait_s` for its answer; after that, `turn` asks again.

        `conversation` is a name that keeps several conversations of one person apart.
        """
        body = {"text": text, "person": person, "conversation": conversation}
        call = post(AnsweredTurn, f"/agents/{segment(agent_id)}/chat", body)
        return replace(call, follow=_until_answered(agent_id, ends=time.monotonic() + wait_s))

    @operation
    def turn(self, agent_id: Id, turn_id: Id) -> Call[AnsweredTurn]:
        """Return a person's turn, and the answer once there is one."""
        return get(AnsweredTurn, f"/agents/{segment(agent_id)}/turns/{segment(turn_id)}")

    @streaming
    def follow(self, agent_id: Id, turn_id: Id, *, after: str = "") -> StreamCall:
        """Stream the answer to a turn sentence by sentence, after the event `after`."""
        return StreamCall(path=f"/agents/{segment(agent_id)}/turns/{segment(turn_id)}", after=after)

    @operation
    def turns(self, agent_id: Id, *, limit: int = 50, conversation: Id | None = None) -> Call[Rows[Turn]]:
        """Return the latest turns with an agent, or of one conversation, the oldest first."""
        path = f"/agents/{segment(agent_id)}/turns"
        return rows_of(get(Turn, path, limit=limit, conversation=conversation))

    @operation
    def end(self, agent_id: Id, conversation_id: Id) -> Call[EndedConversation]:
        """End a conversation; a significant one is followed by a heartbeat at once."""
        return post(
            EndedConversation, f"/agents/{segment(agent_id)}/conversations/{segment(conversation_id)}/end"
        )


def _until_answered(agent_id: Id, *, ends: float) -> Callable[[AnsweredTurn], Call[AnsweredTurn] | None]:
    def follow(answered: AnsweredTurn) -> Call[AnsweredTurn] | None:
        if answered.answer is not None or time.monotonic() >= ends:
            return None
        call = get(AnsweredTurn, f"/agents/{segment(agent_id)}/turns/{segment(answered.turn.id)}")
        return replace(call, follow=follow)

    return follow
