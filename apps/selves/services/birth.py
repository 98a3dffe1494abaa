"""Create the self of a new agent."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from apps.selves.models import Belief, IdentityAspect
from apps.tenants.scope import current_tenant
from arbor.memory.content import content_hash
from arbor.selves.values import NewAspect, NewBelief


def create_self(*, agent_id: UUID, beliefs: Sequence[NewBelief], aspects: Sequence[NewAspect]) -> None:
    """Store a new agent's beliefs and aspects, in the transaction of its creation. Two statements.

    Duplicates in a template are stored once.
    """
    tenant_id = current_tenant()
    Belief.objects.bulk_create(
        [
            Belief(
                tenant_id=tenant_id,
                agent_id=agent_id,
                category=belief.category,
                statement=belief.statement,
                statement_hash=content_hash(belief.statement),
                confidence=belief.confidence,
                stability=belief.stability,
                source=belief.source,
            )
            for belief in beliefs
        ],
        ignore_conflicts=True,
    )
    IdentityAspect.objects.bulk_create(
        [
            IdentityAspect(
                tenant_id=tenant_id,
                agent_id=agent_id,
                kind=aspect.kind,
                content=aspect.content,
                content_hash=content_hash(aspect.content),
                stability=aspect.stability,
                source=aspect.source,
            )
            for aspect in aspects
        ],
        ignore_conflicts=True,
    )
