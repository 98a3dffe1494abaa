"""Messages from people to agents."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from apps.agents.models import AgentState, Percept, PerceptKind, Trigger
from apps.agents.services.locks import lock_agent
from apps.agents.services.percepts import bring_forward, emit_percept
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.contacts.models import OutboxMessage
from apps.contacts.services.inbox import count_answer, mark_read
from apps.fleet.lifecycle import wake_agent
from apps.tenants.scope import current_tenant
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import Invalid
from arbor.heartbeat.views import PERCEPT_LENGTH
from arbor.memory.content import check_text
from arbor.quotations import clip

#: Characters of the answered message that are quoted above the answer.
QUOTED_LENGTH = 400


@transaction.atomic
def message_agent(*, agent_id: UUID, text: str, actor: str, message_id: UUID | None = None) -> Percept:
    """Store a message as a percept of the agent, and bring its next heartbeat forward to now.

    A dormant agent wakes; a paused or stopped one gets the message once it is resumed or started. `message_id` is the agent's
    own message that this one answers. Raises NotFound, Invalid.
    """
    text = text.strip()
    if not text:
        raise Invalid(f"a message has 1 to {PERCEPT_LENGTH:,} characters, this one is empty")
    if len(text) > PERCEPT_LENGTH:
        raise Invalid(
            f"a message has 1 to {PERCEPT_LENGTH:,} characters, got {len(text):,};"
            " longer texts are read with `arbor memory ingest`"
        )
    check_text("a message", text)
    # The lock keeps the status as it is: a heartbeat cannot make the agent dormant now.
    agent = lock_agent(agent_id)
    if agent.status == AgentStatus.DORMANT:
        agent = wake_agent(agent_id=agent_id, actor=actor)
    percept: Percept = Percept.objects.create(
        tenant_id=current_tenant(),
        agent=agent,
        kind=PerceptKind.USER_MESSAGE,
        content=text,
        detail={"message": str(message_id)} if message_id else {},
        urgent=True,
    )
    emit_percept(percept)
    # A running heartbeat may have begun without the message, so the next one follows at once.
    bring_forward(agent_id=agent_id, trigger=Trigger.MESSAGE)
    AgentState.objects.filter(agent_id=agent_id).update(last_user_contact_at=Now())
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"sent {agent.name} a message",
        detail={"percept_id": str(percept.id), "characters": len(text)},
    )
    return percept


@transaction.atomic
def answer_message(*, message_id: UUID, text: str, actor: str) -> Percept:
    """Answer an agent's message, quoting its beginning where there is room for it, and mark the message as read.

    Raises NotFound, Invalid.
    """
    message = mark_read(message_id=message_id)
    text = text.strip()
    answer = f"{_quoted(message, room=PERCEPT_LENGTH - len(text))}{text}" if text else ""
    percept = message_agent(agent_id=message.agent_id, text=answer, actor=actor, message_id=message.id)
    count_answer(message_id=message.id, text=text)
    return percept


def _quoted(message: OutboxMessage, *, room: int) -> str:
    """Return the beginning of a message as a quotation, as in emails, in at most `room` characters; empty for too little room."""
    text = " ".join(message.content.split())
    longest = min(QUOTED_LENGTH, room - len("> \n"))
    if longest < 1:
        return ""
    return f"> {clip(text, longest)}\n"
