"""Receive the turns of people who write through a program: the API or a chat client."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import Sum

from apps.calls.models import LedgerEntry
from apps.contacts.models import ChatMessage
from apps.contacts.services.chat import open_session, receive_turn, waiting_turn
from arbor.contacts.chat import check_turn
from arbor.contacts.client_messages import ClientTurn
from arbor.contacts.values import Speaker
from arbor.errors import NotFound
from arbor.models.usage import Usage


@transaction.atomic
def receive_client_turn(*, agent_id: UUID, person: str, turn: ClientTurn) -> ChatMessage:
    """Store a turn and enqueue its answer, or return the stored turn if the request repeats an earlier one.

    A request repeats an earlier one if it has the same message id, or, without an id, the text of the pending turn.
    Raises as `open_session` and `receive_turn` do.
    """
    known = repeated_turn(agent_id=agent_id, person=person, turn=turn)
    if known is not None:
        return known
    session = open_session(agent_id=agent_id, person=person, client_key=turn.key)
    # A request at the same time may have stored the turn before the agent was locked.
    known = repeated_turn(agent_id=agent_id, person=person, turn=turn)
    if known is not None:
        return known
    pending = waiting_turn(session.id)
    if pending is not None and not turn.message_id and pending.content == check_turn(turn.text):
        return pending
    return receive_turn(session_id=session.id, text=turn.text, client=turn)


def repeated_turn(*, agent_id: UUID, person: str, turn: ClientTurn) -> ChatMessage | None:
    """Return the turn stored for the same message id, with its conversation; None for a new message or one without an id."""
    digest = turn.digest(agent_id, person)
    if digest is None:
        return None
    known: ChatMessage | None = (
        ChatMessage.objects.select_related("session").filter(client_digest=digest).first()
    )
    return known


def turn_by_id(*, agent_id: UUID, turn_id: UUID) -> ChatMessage:
    """Return a person's turn with an agent, with its conversation. Raises NotFound."""
    turn: ChatMessage | None = (
        ChatMessage.objects.select_related("session")
        .filter(id=turn_id, session__agent_id=agent_id, speaker=Speaker.USER)
        .first()
    )
    if turn is None:
        raise NotFound(f"there is no turn {turn_id} of a person with the agent {agent_id}")
    return turn


def usage_of_turn(turn: ChatMessage) -> Usage:
    """Return the tokens of all model calls that answered a turn."""
    spent = LedgerEntry.objects.filter(
        agent_id=turn.session.agent_id, call__subject__turn=str(turn.id), at__gte=turn.at
    ).aggregate(input=Sum("input_tokens"), output=Sum("output_tokens"), cached=Sum("cached_tokens"))
    return Usage(
        input_tokens=spent["input"] or 0,
        output_tokens=spent["output"] or 0,
        cached_tokens=spent["cached"] or 0,
    )
