"""Create the selves of new agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.selves.models import IdentityAspect, SelfChange
from apps.selves.services.parts import aspect_values
from apps.tenants.scope import current_tenant
from arbor.ids import uuid7
from arbor.memory.content import content_hash
from arbor.selves.history import BIRTH, BIRTH_CHANGE, PartKind, SelfState
from arbor.selves.values import NewAspect


@dataclass(frozen=True, kw_only=True)
class SelfAtBirth:
    """The first self of a new agent."""

    agent_id: UUID
    aspects: Sequence[NewAspect]


def create_selves(*, selves: Sequence[SelfAtBirth], actor: str) -> None:
    """Store the aspects of new agents and the records of their births, in one transaction. Two statements for all.

    Duplicates in a template are stored once.
    """
    born = [(new_self.agent_id, _new_aspects(new_self)) for new_self in selves]
    IdentityAspect.objects.bulk_create([aspect for _, aspects in born for aspect in aspects])
    SelfChange.objects.bulk_create([_new_birth(agent_id, aspects, actor) for agent_id, aspects in born])


def _new_aspects(new_self: SelfAtBirth) -> list[IdentityAspect]:
    distinct = {(aspect.kind, content_hash(aspect.content)): aspect for aspect in reversed(new_self.aspects)}
    return [
        IdentityAspect(
            id=uuid7(),
            tenant_id=current_tenant(),
            agent_id=new_self.agent_id,
            kind=kind,
            content=aspect.content,
            content_hash=hashed,
            strength=aspect.strength,
            stability=aspect.stability,
            source=aspect.source,
        )
        for (kind, hashed), aspect in reversed(distinct.items())
    ]


def _new_birth(agent_id: UUID, aspects: Sequence[IdentityAspect], actor: str) -> SelfChange:
    state = SelfState(parts={PartKind.ASPECT: {str(aspect.id): aspect_values(aspect) for aspect in aspects}})
    return SelfChange(
        id=uuid7(),
        tenant_id=current_tenant(),
        agent_id=agent_id,
        version=BIRTH,
        what=BIRTH_CHANGE,
        target_id=agent_id,
        after=state.to_json(),
        decided_by=actor,
        reason="birth",
    )
