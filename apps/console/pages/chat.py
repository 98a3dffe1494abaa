"""Read the page of an agent's conversations by a fixed number of queries, without changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.agents.models import Agent
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services.chat import waiting_turn
from apps.contacts.services.chat_history import history
from apps.heartbeats.services.processes import living_processes
from apps.providers import default_model
from apps.queues import Queue
from arbor.contacts.chat import TURN_LENGTH
from arbor.models.handles import Provider

TURNS_SHOWN = 60
#: Seconds between two looks at an answer that is being made.
REFRESH_S = 2


@dataclass(frozen=True, kw_only=True)
class ChatPage:
    """An agent's conversations, as one person's page shows them."""

    agent: Agent
    turns: Sequence[ChatMessage]
    #: The person's own, if it goes on.
    session: ChatSession | None
    #: Whether their last turn is being answered, and whether there is anybody to do so.
    waiting: bool
    somebody_works: bool
    #: Only one conversation is shown.
    one: bool
    may_talk: bool
    is_reflex: bool
    #: What was typed and not taken.
    draft: str = ""
    longest: int = TURN_LENGTH
    refresh_s: int = REFRESH_S


def read_chat(
    agent: Agent, *, person: str, may_talk: bool, conversation: UUID | None = None, draft: str = ""
) -> ChatPage:
    """Read the latest turns with the agent, or those of one conversation, in the current tenant."""
    session: ChatSession | None = ChatSession.objects.filter(
        agent_id=agent.id, person=person, ended_at__isnull=True
    ).first()
    waiting = session is not None and waiting_turn(session.id) is not None
    return ChatPage(
        agent=agent,
        turns=history(agent_id=agent.id, limit=TURNS_SHOWN, session_id=conversation),
        session=session,
        waiting=waiting,
        somebody_works=not waiting or _somebody_works(),
        one=conversation is not None,
        may_talk=may_talk,
        is_reflex=(agent.model or default_model()).startswith(f"{Provider.REFLEX}/"),
        draft=draft,
    )


def _somebody_works() -> bool:
    """Tell whether a worker that asks models was heard of lately."""
    return any(Queue.LLM.value in process.queues.split(",") for process in living_processes())
