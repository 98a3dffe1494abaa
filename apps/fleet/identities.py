"""Suspend, reinstate and revoke identities of agents, with their schedules."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction

from apps.agents.models import Agent
from apps.agents.services.identity import change_status
from apps.agents.services.locks import lock_schedule
from apps.heartbeats.services.schedule import switch_off, switch_on
from arbor.agents.endorsement import Endorsement, EndorsementStatus
from arbor.agents.lifecycle import AgentStatus


def suspend_identity(*, agent_id: UUID, reason: str, actor: str) -> Endorsement:
    """Suspend an agent's identity: it has no heartbeats and answers nobody until the identity is reinstated.

    Raises NotFound, Invalid without a reason, TransitionIllegal, IdentityRefused.
    """
    return _change(agent_id, EndorsementStatus.SUSPENDED, actor, reason)


def revoke_identity(*, agent_id: UUID, reason: str, actor: str) -> Endorsement:
    """Revoke an agent's identity for good. Raises NotFound, Invalid without a reason, TransitionIllegal, IdentityRefused."""
    return _change(agent_id, EndorsementStatus.REVOKED, actor, reason)


def reinstate_identity(*, agent_id: UUID, actor: str) -> Endorsement:
    """End the suspension of an agent's identity; heartbeats of an active agent go on.

    Raises NotFound, TransitionIllegal, IdentityRefused.
    """
    return _change(agent_id, EndorsementStatus.ACTIVE, actor, "")


def _change(agent_id: UUID, status: EndorsementStatus, actor: str, reason: str) -> Endorsement:
    with transaction.atomic():
        lock_schedule(agent_id)
        statement = change_status(agent_id=agent_id, status=status, actor=actor, reason=reason)
        if not statement.is_active:
            switch_off(agent_id=agent_id)
        elif Agent.objects.filter(id=agent_id, status=AgentStatus.ACTIVE).exists():
            switch_on(agent_id=agent_id, now=datetime.now(UTC))
        return statement
