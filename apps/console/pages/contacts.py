"""Read the pages of conversations, messages and the inbox by a fixed number of queries, without changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from apps.agents.models import Agent
from apps.console.badges import shown_count
from apps.console.pages.models import model_in_use
from apps.contacts.models import ChatMessage, ChatSession, OutboxMessage
from apps.contacts.services.chat import waiting_turn
from apps.contacts.services.chat_history import history
from apps.contacts.services.inbox import count_unread, inbox
from apps.contacts.services.partial_replies import read_progress
from apps.heartbeats.services.processes import living_processes
from apps.queues import Queue
from arbor.contacts.chat import TURN_LENGTH
from arbor.contacts.delivery import MAX_TRIES
from arbor.contacts.values import DELIVERY_TRANSITIONS, ChannelKind, DeliveryStatus
from arbor.heartbeat.views import PERCEPT_LENGTH
from arbor.models.handles import is_reflex

TURNS_SHOWN = 60
#: Seconds between two reloads of a page that waits for an answer.
REFRESH_S = 2


@dataclass(frozen=True, kw_only=True)
class ChatPage:
    """The data of a person's page of conversations with an agent."""

    agent: Agent
    turns: Sequence[ChatMessage]
    #: The person's open conversation, if any.
    session: ChatSession | None
    #: Whether the person's last turn waits for an answer, and whether a worker that can give it is alive; true if no turn waits.
    waiting: bool
    has_worker: bool
    #: Whether only one conversation is shown.
    is_single: bool
    may_talk: bool
    is_reflex: bool
    #: The text of a refused turn.
    draft: str = ""
    longest: int = TURN_LENGTH
    refresh_s: int = REFRESH_S
    #: The sentences of the pending answer so far.
    partial: str = ""


def read_chat(
    agent: Agent, *, person: str, may_talk: bool, conversation: UUID | None = None, draft: str = ""
) -> ChatPage:
    """Read the latest turns with the agent, or the turns of one conversation, in the current tenant."""
    session: ChatSession | None = ChatSession.objects.filter(
        agent_id=agent.id, person=person, ended_at__isnull=True
    ).first()
    turn = waiting_turn(session.id) if session is not None else None
    waiting = turn is not None
    return ChatPage(
        agent=agent,
        turns=history(agent_id=agent.id, limit=TURNS_SHOWN, session_id=conversation),
        session=session,
        waiting=waiting,
        has_worker=not waiting or _has_model_worker(),
        is_single=conversation is not None,
        may_talk=may_talk,
        is_reflex=is_reflex(model_in_use(agent.model)),
        draft=draft,
        partial=_partial_reply(turn),
    )


def read_partial_reply(agent: Agent, *, person: str) -> str | None:
    """Return the sentences of the person's pending answer so far; None when none is pending."""
    session = ChatSession.objects.filter(agent_id=agent.id, person=person, ended_at__isnull=True).first()
    turn = waiting_turn(session.id) if session is not None else None
    return None if turn is None else _partial_reply(turn)


def _partial_reply(turn: ChatMessage | None) -> str:
    return "" if turn is None else "".join(read_progress(turn_id=turn.id).sentences)


def _has_model_worker() -> bool:
    """Return whether a worker of the model queue is alive."""
    return any(Queue.LLM.value in process.queues.split(",") for process in living_processes())


#: Messages on one page of the inbox.
MESSAGES_SHOWN = 40


@dataclass(frozen=True, kw_only=True)
class MessagePage:
    """The data of a message's page."""

    message: OutboxMessage
    in_inbox: bool
    may_retry: bool
    may_cancel: bool
    #: The most characters of an answer.
    longest: int = PERCEPT_LENGTH
    max_tries: int = MAX_TRIES


@dataclass(frozen=True, kw_only=True)
class InboxPage:
    """The data of the inbox's page."""

    messages: Sequence[OutboxMessage]
    #: The number of unread messages as the navigation shows it; empty: none.
    unread: str
    only_unread: bool
    #: The last message shown if there are older ones, else None.
    older: UUID | None


def read_message(message: OutboxMessage) -> MessagePage:
    """Return the data of a message's page."""
    after = DELIVERY_TRANSITIONS[DeliveryStatus(message.status)]
    return MessagePage(
        message=message,
        in_inbox=message.kind == ChannelKind.INBOX,
        may_retry=message.status == DeliveryStatus.FAILED,
        may_cancel=DeliveryStatus.CANCELLED in after,
    )


def read_inbox(*, only_unread: bool, before: UUID | None) -> InboxPage:
    """Read one page of the current tenant's inbox, the latest first. Three queries."""
    rows = inbox(unread=only_unread).select_related("agent")
    moment = _moment_of(before)
    if moment is not None:
        # Messages of one heartbeat have the same time.
        rows = rows.filter(created_at__lte=moment).exclude(created_at=moment, id__gte=before)
    listed = list(
        rows.only(
            "tenant_id",
            "subject",
            "content",
            "audience",
            "created_at",
            "read_at",
            "agent__name",
            "agent__tenant_id",
        )[: MESSAGES_SHOWN + 1]
    )
    return InboxPage(
        messages=listed[:MESSAGES_SHOWN],
        unread=shown_count(count_unread()),
        only_unread=only_unread,
        older=listed[MESSAGES_SHOWN - 1].id if len(listed) > MESSAGES_SHOWN else None,
    )


def _moment_of(message_id: UUID | None) -> datetime | None:
    if message_id is None:
        return None
    moment: datetime | None = inbox().filter(id=message_id).values_list("created_at", flat=True).first()
    return moment
