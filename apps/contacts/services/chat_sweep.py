"""Sweep conversations: end idle ones, and re-enqueue turns whose message or worker was lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings

from apps.agents.models import Agent
from apps.calls.models import CallStatus, ExternalCall
from apps.calls.services.maintenance_calls import subject_key
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services.chat import answer_task_message, close_unanswered_turn, end_session, waiting_turn
from apps.contacts.services.queries import IDLE_CONVERSATIONS
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.queues import enqueue
from apps.tenants.scope import tenant_transaction

#: Conversations of one agent per step.
STEP = 50
#: The age at which an unanswered turn is closed without an answer, because nobody waits any longer.
LONGEST_WAIT = timedelta(hours=1)


def close_conversations() -> JobRunResult:
    """End idle conversations, and re-enqueue turns whose message or worker was lost."""
    idle = min(settings.ARBOR_CHAT_IDLE, settings.ARBOR_QUEUE_LEASE)
    return run_job(
        "chats", waiting=IDLE_CONVERSATIONS.format(seconds=idle.total_seconds()), step=_sweep_agent
    )


def _sweep_agent(tenant_id: UUID, agent_id: UUID) -> int:
    """Sweep an agent's open conversations; return how many were ended."""
    with tenant_transaction(tenant_id):
        sessions = list(
            ChatSession.objects.filter(agent_id=agent_id, ended_at__isnull=True).order_by("last_at")[:STEP]
        )
    return sum(_sweep_conversation(tenant_id, session) for session in sessions)


def _sweep_conversation(tenant_id: UUID, listed: ChatSession) -> bool:
    with tenant_transaction(tenant_id):
        # Read again under the lock, because the conversation may go on, or end, after it was listed.
        open_sessions = ChatSession.objects.select_for_update().filter(ended_at__isnull=True)
        session = open_sessions.filter(id=listed.id).first()
        if session is None:
            return False
        quiet = datetime.now(UTC) - session.last_at
        turn = waiting_turn(session.id)
        if turn is None:
            if quiet < settings.ARBOR_CHAT_IDLE:
                return False
            end_session(session_id=session.id)
            return True
        if quiet < settings.ARBOR_QUEUE_LEASE or _is_asked(session):
            return False
        if quiet < LONGEST_WAIT:
            _enqueue_again(turn, session)
            return False
    close_unanswered_turn(
        tenant_id=tenant_id,
        turn_id=turn.id,
        reason=f"no worker answered within {LONGEST_WAIT // timedelta(minutes=1)} minutes; check that the fleet is running",
    )
    return False


def _is_asked(session: ChatSession) -> bool:
    """Return whether the answer's call is pending or running; `recover_maintenance_calls` recovers such calls."""
    return bool(
        ExternalCall.objects.filter(
            agent_id=session.agent_id,
            subject_key=subject_key({"chat": str(session.id)}),
            status__in=[CallStatus.PENDING, CallStatus.RUNNING],
        ).exists()
    )


def _enqueue_again(turn: ChatMessage, session: ChatSession) -> None:
    name = Agent.objects.values_list("name", flat=True).get(id=session.agent_id)
    enqueue(answer_task_message(turn=turn, agent_name=name))
