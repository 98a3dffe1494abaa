"""Conversations with agents: open, receive and answer turns, end.

A conversation is no heartbeat (seed 004, 5.3): turns are answered at once, and the agent's timer is paused until the
conversation ends. A turn is one row. A worker of the model queue or the command line answers a turn by the same durable
external call, so each turn is answered once, even if messages or processes are lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models.functions import Now

from apps.agents.models import Agent, AgentState, Trigger
from apps.agents.services.identity import identity_of
from apps.agents.services.locks import lock_agent
from apps.agents.services.lookup import agent_by_id
from apps.agents.services.percepts import bring_forward, pause_schedule
from apps.calls.services.maintenance_calls import MaintenanceCall, subject_of_turn, write_maintenance_call
from apps.calls.services.models import models_at
from apps.calls.services.usage import budget_status_of
from apps.contacts.models import ChatMessage, ChatSession, PartialReply
from apps.contacts.services.chat_finalize import emit_turn, resume_schedule, store_silence
from apps.contacts.services.chat_prepare import PreparedRequest, prepare, store_preparation
from apps.memories.services.store.appraisal import word_lists
from apps.queues import Task, TaskMessage, enqueue
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant, tenant_transaction
from apps.tenants.services import require_active
from arbor.contacts.chat import WeighedTurn, check_turn, significance
from arbor.contacts.client_messages import ClientTurn
from arbor.contacts.values import Speaker
from arbor.errors import ContextTooLarge, Invalid, NotFound, TransitionIllegal
from arbor.heartbeat.usage import limit_skip_reason
from arbor.heartbeat.working_memory import WorkingMemory, after_conversation
from arbor.memory.content import check_line
from arbor.signals import SignalName, signal

log = structlog.get_logger(__name__)

PERSON_LENGTH = 200


class CallExecutor(Protocol):
    """Execute an external call in this process; return whether its result was used."""

    def __call__(self, *, call_id: UUID, tenant_id: UUID) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class EndedSession:
    """An ended conversation and the consequences of its end."""

    session: ChatSession
    #: 0 to 1.
    significance: float
    #: Whether the end triggers a heartbeat at once.
    heartbeat_follows: bool


@transaction.atomic
def open_session(*, agent_id: UUID, person: str, client_key: str = "") -> ChatSession:
    """Return the open conversation of a person with an agent, or create one.

    A program names its conversations by `client_key`, so that one person has several at once. An open conversation that has been
    idle for ARBOR_CHAT_IDLE_S, and has no unanswered turn, is ended, and a new one created. Raises NotFound for an unknown agent,
    Invalid for an invalid name of the person, TransitionIllegal if the tenant is suspended.
    """
    check_line("person", person, PERSON_LENGTH)
    if not person.strip() or len(person.splitlines()) != 1:
        raise Invalid("a conversation needs the name of a person, in one line")
    open_sessions = ChatSession.objects.filter(
        agent_id=agent_id, person=person, client_key=client_key, ended_at__isnull=True
    )
    # Turns lock the conversation before the agent's schedule.
    list(open_sessions.select_for_update().values_list("id"))
    # Without the lock, two concurrent requests would each create a conversation.
    agent = lock_agent(agent_id)
    require_active()
    now = datetime.now(UTC)
    existing: ChatSession | None = open_sessions.first()
    if existing is not None:
        if existing.last_at + settings.ARBOR_CHAT_IDLE > now or waiting_turn(existing.id) is not None:
            return existing
        end_session(session_id=existing.id)
    session: ChatSession = ChatSession.objects.create(
        tenant_id=current_tenant(),
        agent=agent,
        person=person,
        client_key=client_key,
        started_at=now,
        last_at=now,
    )
    pause_schedule(agent_id=agent_id, until=now + settings.ARBOR_CHAT_IDLE)
    emit(signal(SignalName.CONVERSATION_CHANGED, agent_id, conversation=session.id, state="open"))
    return session


@transaction.atomic
def receive_turn(
    *, session_id: UUID, text: str, enqueued: bool = True, client: ClientTurn | None = None
) -> ChatMessage:
    """Store a person's turn and enqueue the task that answers it; with `enqueued=False` the caller answers it.

    `client` has what the person's program sends beside the text: its note, which the agent reads as data, and the message's id.
    Raises NotFound for an unknown conversation, Invalid for the text, TransitionIllegal if the conversation is over or
    its last turn is not answered yet.
    """
    text = check_turn(text)
    session = lock_session(session_id)
    if session.ended_at is not None:
        raise TransitionIllegal(f"the conversation {session_id} is over; begin a new one")
    if waiting_turn(session_id) is not None:
        raise TransitionIllegal("the agent has not answered yet; wait for its answer")
    agent, now = agent_by_id(session.agent_id), datetime.now(UTC)
    # Lock in the order of heartbeats, to avoid deadlocks: schedule, then state.
    _pause_for_answer(session.agent_id, now)
    state = AgentState.objects.select_for_update().filter(agent_id=session.agent_id).first()
    last_contact = state.last_user_contact_at if state else None
    turn: ChatMessage = ChatMessage.objects.create(
        tenant_id=current_tenant(),
        session=session,
        speaker=Speaker.USER,
        content=text,
        detail={
            "contact_before": last_contact.isoformat() if last_contact else None,
            **({"client_note": client.note} if client and client.note else {}),
            **({"message_id": client.message_id} if client and client.message_id else {}),
        },
        client_digest=client.digest(session.agent_id, session.person) if client else None,
        at=now,
    )
    emit_turn(turn, agent_id=session.agent_id)
    ChatSession.objects.filter(id=session_id).update(last_at=now)
    AgentState.objects.filter(agent_id=session.agent_id).update(last_user_contact_at=Now())
    if enqueued:
        enqueue(answer_task_message(turn=turn, agent_name=agent.name))
    return turn


def exchange_turns(*, tenant_id: UUID, session_id: UUID, text: str, execute: CallExecutor) -> ChatMessage:
    """Store a person's turn and answer it in this process; return the agent's turn, with `error` set if there is no answer.

    No transaction may be open, because the model call must not run inside one. Raises as `receive_turn` does.
    """
    with tenant_transaction(tenant_id):
        turn = receive_turn(session_id=session_id, text=text, enqueued=False)
    answer_turn(tenant_id=tenant_id, turn_id=turn.id, execute=execute)
    with tenant_transaction(tenant_id):
        return stored_answer_to(turn)


def answer_turn(*, tenant_id: UUID, turn_id: UUID, execute: CallExecutor) -> bool:
    """Prepare a turn's prompt, call the model and store the reply; False if another process answers or answered it.

    An error before the model call, an identity that is not valid, or an exhausted daily limit is stored as the agent's
    turn, so that the person does not wait. The sweep recovers the turns of lost workers.
    """
    with tenant_transaction(tenant_id):
        if not _is_pending(turn_id):
            return False
        agent = ChatMessage.objects.select_related("session__agent__tenant").get(id=turn_id).session.agent
        models, refusal = _models_for(agent)
    prepared: PreparedRequest | None = None
    reason = f"no model is asked: {refusal}"
    if models:
        try:
            prepared = prepare(tenant_id=tenant_id, turn_id=turn_id, models=models)
        except (OperationalError, InterfaceError):
            # The database is unavailable: the sweep enqueues the turn again.
            raise
        except ContextTooLarge as error:
            reason = f"no model is asked: {error}"
        except Exception as error:
            # Any other error would recur at each retry while the person waits, so it is stored as the answer.
            log.exception("turn_preparation_failed", turn_id=str(turn_id))
            reason = f"{type(error).__name__}: {error}"
    if prepared is None:
        close_unanswered_turn(tenant_id=tenant_id, turn_id=turn_id, reason=reason)
        return True
    with tenant_transaction(tenant_id):
        turn = ChatMessage.objects.select_related("session").get(id=turn_id)
        lock_session(turn.session_id)
        if not _is_pending(turn_id):
            return False
        store_preparation(turn, prepared=prepared)
        written = write_maintenance_call(
            agent_id=turn.session.agent_id,
            call=MaintenanceCall(
                subject=subject_of_turn(
                    turn.session_id, turn_id, recalled=prepared.recalled, models_left=prepared.models_left
                ),
                request=prepared.request,
                model=prepared.model,
                sections=prepared.sections,
            ),
        )
    return written is not None and _ask_until_answered(written[0], tenant_id, turn_id, execute)


@transaction.atomic
def end_session(*, session_id: UUID) -> EndedSession:
    """End a conversation: compute its significance and resume the agent's timer. Idempotent.

    A heartbeat follows at once if the conversation was significant, or if memory maintenance is due: after ten questions
    of people since the last (seed 000, 7). Raises NotFound, and TransitionIllegal while a turn is not answered.
    """
    session = lock_session(session_id)
    if session.ended_at is not None:
        return EndedSession(
            session=session, significance=session.significance or 0.0, heartbeat_follows=False
        )
    if waiting_turn(session_id) is not None:
        raise TransitionIllegal("the agent has not answered yet; wait for its answer")
    turns = ChatMessage.objects.filter(session_id=session_id, error="").order_by("at")
    session.significance = significance(
        [WeighedTurn(speaker=Speaker(row.speaker), text=row.content) for row in turns], lists=word_lists()
    )
    session.ended_at = datetime.now(UTC)
    session.save(update_fields=["significance", "ended_at"])
    emit(signal(SignalName.CONVERSATION_CHANGED, session.agent_id, conversation=session.id, state="ended"))
    PartialReply.objects.filter(turn__session_id=session_id).delete()
    resume_schedule(agent_id=session.agent_id)
    due = _remove_person_from_working_memory(session)
    follows = False
    if due or session.significance >= settings.ARBOR_CHAT_SIGNIFICANT:
        follows = bring_forward(agent_id=session.agent_id, trigger=Trigger.CHAT)
    return EndedSession(session=session, significance=session.significance, heartbeat_follows=follows)


def waiting_turn(session_id: UUID) -> ChatMessage | None:
    """Return the person's unanswered turn, if there is one."""
    last: ChatMessage | None = (
        ChatMessage.objects.filter(session_id=session_id).order_by("-at", "-id").first()
    )
    return last if last is not None and last.speaker == Speaker.USER else None


def answer_to(turn: ChatMessage) -> ChatMessage | None:
    """Return the agent's turn that answers a turn or has the error; None while the turn is pending."""
    answer: ChatMessage | None = ChatMessage.objects.filter(
        session_id=turn.session_id, speaker=Speaker.AGENT, detail__to=str(turn.id)
    ).first()
    return answer


def stored_answer_to(turn: ChatMessage) -> ChatMessage:
    """Return the agent's turn as `answer_to` does; raises TransitionIllegal while another process answers."""
    answer = answer_to(turn)
    if answer is None:
        raise TransitionIllegal(
            "another process answers this turn; look at it with `arbor chat NAME --history`"
        )
    return answer


def close_unanswered_turn(*, tenant_id: UUID, turn_id: UUID, reason: str) -> None:
    """Store the reason as the agent's turn if a turn is still pending."""
    with tenant_transaction(tenant_id):
        turn = ChatMessage.objects.select_related("session").get(id=turn_id)
        lock_session(turn.session_id)
        if _is_pending(turn_id):
            store_silence(turn.session.agent_id, {"chat": str(turn.session_id), "turn": str(turn_id)}, reason)


def answer_task_message(*, turn: ChatMessage, agent_name: str) -> TaskMessage:
    """Build the task message for an unanswered turn."""
    return TaskMessage(
        task=Task.ANSWER,
        tenant_id=turn.tenant_id,
        arguments={"turn_id": str(turn.id)},
        shown=f"agent={agent_name} turn={turn.id}",
    )


def lock_session(session_id: UUID) -> ChatSession:
    """Lock a conversation's row and return it. Raises NotFound."""
    session: ChatSession | None = ChatSession.objects.select_for_update().filter(id=session_id).first()
    if session is None:
        raise NotFound(f"there is no conversation {session_id} in this tenant")
    return session


def _models_for(agent: Agent) -> tuple[tuple[str, ...], str]:
    """Return the models that may answer for an agent; without any, the reason why none may."""
    if refusal := identity_of(agent.id).refusal:
        return (), refusal
    level = budget_status_of(agent.id).level
    models = models_at(agent, level)
    reason = limit_skip_reason(
        level, user_waiting=True, asked_for=True, serves_goal=False, now=datetime.now(UTC)
    )
    return models, "" if models else reason


def _pause_for_answer(agent_id: UUID, now: datetime) -> None:
    deadline = timedelta(seconds=settings.ARBOR_MODEL_DEADLINE_S)
    pause_schedule(agent_id=agent_id, until=now + deadline + settings.ARBOR_CHAT_IDLE)


def _is_pending(turn_id: UUID) -> bool:
    turn = ChatMessage.objects.filter(id=turn_id).first()
    if turn is None:
        return False
    waiting = waiting_turn(turn.session_id)
    return waiting is not None and waiting.id == turn_id


def _ask_until_answered(call_id: UUID, tenant_id: UUID, turn_id: UUID, execute: CallExecutor) -> bool:
    """Execute the call and its retries; False if another process answers."""
    while execute(call_id=call_id, tenant_id=tenant_id):
        with tenant_transaction(tenant_id):
            if not _is_pending(turn_id):
                return True
    return False


def _remove_person_from_working_memory(session: ChatSession) -> bool:
    """Remove the person from the agent's working memory; return whether memory maintenance is due."""
    state = AgentState.objects.select_for_update().filter(agent_id=session.agent_id).first()
    if state is None:
        return False
    memory = WorkingMemory.model_validate(state.working_memory)
    updated = after_conversation(memory, conversation=str(session.id))
    if updated != memory:
        state.working_memory = updated.model_dump(mode="json")
        state.save(update_fields=["working_memory"])
    return updated.wants_consolidation
