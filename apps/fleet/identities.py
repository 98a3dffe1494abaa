"""Suspend, reinstate and revoke identities of agents, with their schedules; endorse the agents of all tenants."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import batched, groupby
from operator import itemgetter
from uuid import UUID

from django.db import transaction

from apps.agents.models import Agent
from apps.agents.services.authority import ensure_system_authority
from apps.agents.services.identity import change_status
from apps.agents.services.identity_creation import EndorsedAgents, endorse_agents
from apps.agents.services.locks import lock_schedule
from apps.heartbeats.services.schedule import switch_off, switch_on
from apps.tenants.scope import ops_scope, tenant_transaction
from arbor.agents.endorsement import Endorsement, EndorsementStatus
from arbor.agents.lifecycle import AgentStatus

#: Agents endorsed in one transaction.
_TOGETHER = 500


def suspend_identity(*, agent_id: UUID, reason: str, actor: str) -> Endorsement:
    """Suspend an agent's identity: the agent has no heartbeats and answers nobody until the identity is reinstated.

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


def endorse_all_agents(*, actor: str) -> EndorsedAgents:
    """Endorse all agents of the installation that are not endorsed, such as those from before endorsements. Idempotent.

    Raises ConfigurationInvalid without a master key, and SealBroken where another master key has sealed the System Authority's key.
    """
    ensure_system_authority()
    endorsed = 0
    refused: list[str] = []
    with ops_scope():
        rows = Agent.objects.filter(endorsement__isnull=True).order_by("tenant_id", "id")
        waiting = list(rows.values_list("tenant_id", "id"))
    for tenant_id, of_tenant in groupby(waiting, key=itemgetter(0)):
        for batch in batched(of_tenant, _TOGETHER, strict=False):
            with tenant_transaction(tenant_id):
                done = endorse_agents(agent_ids=[agent_id for _, agent_id in batch], actor=actor)
            endorsed += done.endorsed
            refused += done.refused
    return EndorsedAgents(endorsed=endorsed, refused=tuple(refused))


def _change(agent_id: UUID, status: EndorsementStatus, actor: str, reason: str) -> Endorsement:
    with transaction.atomic():
        lock_schedule(agent_id)
        statement = change_status(agent_id=agent_id, status=status, actor=actor, reason=reason)
        if not statement.is_active:
            switch_off(agent_id=agent_id)
        elif Agent.objects.filter(id=agent_id, status=AgentStatus.ACTIVE).exists():
            switch_on(agent_id=agent_id, now=datetime.now(UTC))
        return statement
