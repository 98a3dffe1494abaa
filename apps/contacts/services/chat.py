"""Conversations with agents: open, receive and answer turns, end.

A conversation is no heartbeat (seed 004, 5.3): it is answered at once, and the agent's timer rests while it goes on. A
turn is a row of its own. Whoever answers it (a worker of the model queue, or the command line itself) does so by the
same durable call, so it is answered once, whatever is lost.
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
from apps.agents.services.percepts import bring_forward, pause_schedule
from apps.agents.services.profile import agent_by_id
from apps.calls.services.maintenance_calls import MaintenanceCall, subject_of_turn, write_maintenance_call
from apps.calls.services.usage import day_of
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services.chat_finalize import resume_schedule, store_silence
from apps.contacts.services.chat_prepare import models_at, prepare
from apps.memories.services.store.appraisal import word_lists
from apps.queues import Task, TaskMessage, enqueue
from apps.tenants.models import TenantStatus
from apps.tenants.scope import current_tenant, tenant_transaction
from arbor.contacts.chat import WeighedTurn, check_turn, significance
from arbor.contacts.values import Speaker
from arbor.errors import Invalid, NotFound, TransitionIllegal
from arbor.heartbeat.usage import withheld
from arbor.heartbeat.working_memory import WorkingMemory, after_conversation
from arbor.memory.content import check_line

log = structlog.get_logger(__name__)

PERSON_LENGTH = 200


class Execute(Protocol):
    """Executes an external call in this process, and returns whether its result counted."""

    def __call__(self, *, call_id: UUID, tenant_id: UUID) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The result of a conversation."""

    session: ChatSession
    #: 0 to 1.
    significance: float
    #: Whether a heartbeat follows at once.
    beat_follows: bool


@transaction.atomic
def open_session(*, agent_id: UUID, person: str) -> ChatSession:
    """Return the conversation that this person has with the agent: the open one, else a new one.

    An open one that is idle for ARBOR_CHAT_IDLE_S is ended first. Raises NotFound; Invalid for the person's name;
    TransitionIllegal where the tenant is suspended.
    """
    check_line("person", person, PERSON_LENGTH)
    if not person.strip() or len(person.splitlines()) != 1:
        raise Invalid("a conversation needs the name of a person, in one line")
    # The agent's row is the lock: two that open at once would both find none.
    agent: Agent | None = (
        Agent.objects.select_related("tenant")
        .select_for_update(no_key=True, of=("self",))
        .filter(id=agent_id)
        .first()
    )
    if agent is None:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    if agent.tenant.status != TenantStatus.ACTIVE:
        raise TransitionIllegal(f"the tenant {agent.tenant.slug} is suspended; resume it first")
    now = datetime.now(UTC)
    open_one: ChatSession | None = ChatSession.objects.filter(
        agent_id=agent_id, person=person, ended_at__isnull=True
    ).first()
    if open_one is not None:
        if open_one.last_at + settings.ARBOR_CHAT_IDLE > now or waiting_turn(open_one.id) is not None:
            return open_one
        end_session(session_id=open_one.id)
    session: ChatSession = ChatSession.objects.create(
        tenant_id=current_tenant(), agent=agent, person=person, started_at=now, last_at=now
    )
    pause_schedule(agent_id=agent_id, until=now + settings.ARBOR_CHAT_IDLE)
    return session


@transaction.atomic
def receive_turn(*, session_id: UUID, text: str, enqueued: bool = True) -> ChatMessage:
    """Store a person's turn and enqueue its answer; unless `enqueued`, the caller answers the turn.

    Raises NotFound, Invalid for the text, TransitionIllegal when the conversation is over or an answer is being made.
    """
    text = check_turn(text)
    session = _locked(session_id)
    if session.ended_at is not None:
        raise TransitionIllegal(f"the conversation {session_id} is over; begin a new one")
    if waiting_turn(session_id) is not None:
        raise TransitionIllegal("the agent has not answered yet; wait for its answer")
    agent, now = agent_by_id(session.agent_id), datetime.now(UTC)
    # First the schedule, then the state: the order in which a heartbeat locks them.
    _pause_for_answer(session.agent_id, now)
    state = AgentState.objects.select_for_update().filter(agent_id=session.agent_id).first()
    before = state.last_user_contact_at if state else None
    turn: ChatMessage = ChatMessage.objects.create(
        tenant_id=current_tenant(),
        session=session,
        speaker=Speaker.USER,
        content=text,
        detail={"contact_before": before.isoformat() if before else None},
        at=now,
    )
    ChatSession.objects.filter(id=session_id).update(last_at=now)
    AgentState.objects.filter(agent_id=session.agent_id).update(last_user_contact_at=Now())
    if enqueued:
        enqueue(answer_message(turn=turn, agent_name=agent.name))
    return turn


def say(*, tenant_id: UUID, session_id: UUID, text: str, execute: Execute) -> ChatMessage:
    """Store a person's turn and answer it in this process; return the agent's turn, whose `error` is set without an answer.

    No transaction is open while the model is asked, so none may be open now. Raises as `receive_turn` does.
    """
    with tenant_transaction(tenant_id):
        turn = receive_turn(session_id=session_id, text=text, enqueued=False)
    answer_turn(tenant_id=tenant_id, turn_id=turn.id, execute=execute)
    with tenant_transaction(tenant_id):
        answer = answer_to(turn)
    if answer is None:
        raise TransitionIllegal(
            "another process answers this turn; look at it with `arbor chat NAME --history`"
        )
    return answer


def answer_turn(*, tenant_id: UUID, turn_id: UUID, execute: Execute) -> bool:
    """Prepare a turn's prompt, ask the model, and store the reply; False when the turn is answered, or being answered.

    An error before the model is asked leaves a turn that says so; so does a used-up daily budget, where an answer
    costs. The sweep recovers the turns of lost workers.
    """
    with tenant_transaction(tenant_id):
        if not _waits(turn_id):
            return False
        agent = ChatMessage.objects.select_related("session__agent").get(id=turn_id).session.agent
        level = day_of(agent.id).level
        models = models_at(agent, level)
    if not models:
        used_up = withheld(level, user_waiting=True, asked_for=True, serves_goal=False, now=datetime.now(UTC))
        _give_up(tenant_id, turn_id, f"no model is asked: {used_up}")
        return True
    try:
        prepared = prepare(tenant_id=tenant_id, turn_id=turn_id, models=models)
    except (OperationalError, InterfaceError):
        # The database went away: the sweep brings the turn back.
        raise
    except Exception as error:
        # Whatever else is wrong is wrong at every try, and somebody waits: the turn says so instead of waiting for ever.
        log.exception("chat_fault", turn_id=str(turn_id))
        _give_up(tenant_id, turn_id, f"{type(error).__name__}: {error}")
        return True
    with tenant_transaction(tenant_id):
        turn = ChatMessage.objects.select_related("session").get(id=turn_id)
        _locked(turn.session_id)
        if not _waits(turn_id):
            return False
        if prepared.boundary_matches:
            turn.detail = {**turn.detail, "boundaries": list(prepared.boundary_matches)}
            turn.save(update_fields=["detail"])
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
def end_session(*, session_id: UUID) -> Ended:
    """End a conversation: compute its significance and resume the timer. After a significant one a heartbeat follows at once.

    So it does when maintenance of the memory is due: ten questions of people since the last (seed 000, 7). Ended again
    it stays unchanged. Raises NotFound, and TransitionIllegal while an answer is being made.
    """
    session = _locked(session_id)
    if session.ended_at is not None:
        return Ended(session=session, significance=session.significance or 0.0, beat_follows=False)
    if waiting_turn(session_id) is not None:
        raise TransitionIllegal("the agent has not answered yet; wait for its answer")
    said = ChatMessage.objects.filter(session_id=session_id, error="").order_by("at")
    session.significance = significance(
        [WeighedTurn(speaker=Speaker(row.speaker), text=row.content) for row in said], lists=word_lists()
    )
    session.ended_at = datetime.now(UTC)
    session.save(update_fields=["significance", "ended_at"])
    resume_schedule(agent_id=session.agent_id)
    due = _leave_mind(session)
    follows = False
    if due or session.significance >= settings.ARBOR_CHAT_SIGNIFICANT:
        follows = bring_forward(agent_id=session.agent_id, trigger=Trigger.CHAT)
    return Ended(session=session, significance=session.significance, beat_follows=follows)


def waiting_turn(session_id: UUID) -> ChatMessage | None:
    """Return the person's unanswered turn, if there is one."""
    last: ChatMessage | None = (
        ChatMessage.objects.filter(session_id=session_id).order_by("-at", "-id").first()
    )
    return last if last is not None and last.speaker == Speaker.USER else None


def answer_to(turn: ChatMessage) -> ChatMessage | None:
    """Return the agent's turn that answers a turn or says why there is no answer; None while the turn is pending."""
    found: ChatMessage | None = ChatMessage.objects.filter(
        session_id=turn.session_id, speaker=Speaker.AGENT, detail__to=str(turn.id)
    ).first()
    return found


def give_up_waiting(*, tenant_id: UUID, turn_id: UUID, reason: str) -> None:
    """Close a turn that nobody answers, with the reason."""
    _give_up(tenant_id, turn_id, reason)


def answer_message(*, turn: ChatMessage, agent_name: str) -> TaskMessage:
    """Build the task message for an unanswered turn."""
    return TaskMessage(
        task=Task.ANSWER,
        tenant_id=turn.tenant_id,
        arguments={"turn_id": str(turn.id)},
        shown=f"agent={agent_name} turn={turn.id}",
    )


def _locked(session_id: UUID) -> ChatSession:
    session: ChatSession | None = ChatSession.objects.select_for_update().filter(id=session_id).first()
    if session is None:
        raise NotFound(f"there is no conversation {session_id} in this tenant")
    return session


def _pause_for_answer(agent_id: UUID, now: datetime) -> None:
    deadline = timedelta(seconds=settings.ARBOR_MODEL_DEADLINE_S)
    pause_schedule(agent_id=agent_id, until=now + deadline + settings.ARBOR_CHAT_IDLE)


def _waits(turn_id: UUID) -> bool:
    turn = ChatMessage.objects.filter(id=turn_id).first()
    if turn is None:
        return False
    waiting = waiting_turn(turn.session_id)
    return waiting is not None and waiting.id == turn_id


def _ask_until_answered(call_id: UUID, tenant_id: UUID, turn_id: UUID, execute: Execute) -> bool:
    """Execute the call and its retries; False if another process answers."""
    while execute(call_id=call_id, tenant_id=tenant_id):
        with tenant_transaction(tenant_id):
            if not _waits(turn_id):
                return True
    return False


def _give_up(tenant_id: UUID, turn_id: UUID, reason: str) -> None:
    with tenant_transaction(tenant_id):
        turn = ChatMessage.objects.select_related("session").get(id=turn_id)
        _locked(turn.session_id)
        if _waits(turn_id):
            store_silence(turn.session.agent_id, {"chat": str(turn.session_id), "turn": str(turn_id)}, reason)


def _leave_mind(session: ChatSession) -> bool:
    """Remove the person from the working memory; return whether maintenance of the memory is due."""
    state = AgentState.objects.select_for_update().filter(agent_id=session.agent_id).first()
    if state is None:
        return False
    memory = WorkingMemory.model_validate(state.working_memory)
    left = after_conversation(memory, conversation=str(session.id))
    if left != memory:
        state.working_memory = left.model_dump(mode="json")
        state.save(update_fields=["working_memory"])
    return left.wants_consolidation
