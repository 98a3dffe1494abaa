"""Prepare and finalize turns of conversations that a program answers with a model of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.agents.services.identity import identity_of
from apps.agents.services.lookup import own_model
from apps.calls.models import CallStatus, ExternalCall
from apps.calls.services.maintenance_calls import subject_key, subject_of_turn
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services.chat import answer_to, open_session, receive_turn
from apps.contacts.services.chat_finalize import prepare_answer, store_answer
from apps.contacts.services.chat_prepare import PreparedRequest, prepare, store_preparation
from apps.default_model import default_model
from apps.tenants.scope import tenant_transaction
from arbor.contacts.chat_reply import read_chat_reply
from arbor.contacts.values import Speaker
from arbor.errors import NotFound, TransitionIllegal
from arbor.memory.content import check_line
from arbor.models.handles import HANDLE_LENGTH

#: The name of a program's model, where the program does not say.
UNNAMED_MODEL = "program/unnamed"


@dataclass(frozen=True, kw_only=True)
class AskedTurn:
    """A stored turn of a person, and the memories that its prompt shows: [{id, score}]."""

    turn_id: UUID
    session_id: UUID
    recalled: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class ProgramTurn:
    """A stored turn of a person, and its prompt."""

    turn_id: UUID
    session_id: UUID
    prepared: PreparedRequest


def prepare_turn(*, tenant_id: UUID, agent_id: UUID, person: str, text: str) -> ProgramTurn:
    """Store a person's turn, gather the agent's view of it, and render the prompt.

    A turn that is not finalized is answered by the fleet after a while. Raises as `open_session` and `receive_turn` do, and
    IdentityRefused for an agent that may not act.
    """
    with tenant_transaction(tenant_id):
        identity_of(agent_id).require_active()
        session = open_session(agent_id=agent_id, person=person)
        turn = receive_turn(session_id=session.id, text=text, enqueued=False)
        model = own_model(session.agent) or default_model()
    prepared = prepare(tenant_id=tenant_id, turn_id=turn.id, models=(model,))
    with tenant_transaction(tenant_id):
        store_preparation(turn, prepared=prepared)
    return ProgramTurn(turn_id=turn.id, session_id=session.id, prepared=prepared)


def finalize_turn(
    *, tenant_id: UUID, agent_id: UUID, turn: AskedTurn, reply: str, model: str = ""
) -> ChatMessage:
    """Check a model's text against the agent's boundaries, store it as the agent's turn, and remember both turns.

    Raises ReplyInvalid for a text without an answer, Invalid for the name of the model, IdentityRefused for an agent that may not
    act, NotFound for an unknown turn of a person, and TransitionIllegal for one that is answered already, here or by the fleet.
    """
    check_line("model", model, HANDLE_LENGTH)
    subject = subject_of_turn(
        turn.session_id, turn.turn_id, recalled=[dict(memory) for memory in turn.recalled]
    )
    chat_reply = read_chat_reply(reply)
    with tenant_transaction(tenant_id):
        _require_pending(agent_id, turn)
    answer = prepare_answer(tenant_id, agent_id, subject=subject, chat_reply=chat_reply)
    with tenant_transaction(tenant_id):
        asked = _require_pending(agent_id, turn)
        store_answer(agent_id, subject, answer, model.strip() or UNNAMED_MODEL)
        stored = answer_to(asked)
    assert stored is not None
    return stored


def _require_pending(agent_id: UUID, turn: AskedTurn) -> ChatMessage:
    """Lock the conversation, and return its turn.

    Raises IdentityRefused, NotFound, and TransitionIllegal if the turn is answered, or the fleet answers it.
    """
    identity_of(agent_id).require_active()
    sessions = ChatSession.objects.select_for_update().filter(id=turn.session_id, agent_id=agent_id)
    asked = (
        ChatMessage.objects.filter(id=turn.turn_id, session_id=turn.session_id, speaker=Speaker.USER).first()
        if sessions
        else None
    )
    if asked is None:
        raise NotFound(f"there is no turn {turn.turn_id} of a person with this agent")
    if answer_to(asked) is not None:
        raise TransitionIllegal(f"the turn {turn.turn_id} is answered already")
    calls = ExternalCall.objects.filter(
        agent_id=agent_id,
        subject_key=subject_key({"chat": str(turn.session_id)}),
        status__in=[CallStatus.PENDING, CallStatus.RUNNING],
    )
    if calls.exists():
        raise TransitionIllegal(
            f"the fleet already answers the turn {turn.turn_id}, because it waited too long"
        )
    return asked
