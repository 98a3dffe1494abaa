"""Add, revise and drop aspects of an identity; each change is recorded in the self history."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.agents.services.locks import lock_agent_row
from apps.selves.models import IdentityAspect
from apps.selves.services.changes import check_reason, record_part_change, set_values
from apps.selves.services.parts import aspect_values
from apps.tenants.scope import current_tenant
from arbor.errors import AlreadyExists, Invalid, LimitReached, NotFound
from arbor.memory.content import content_hash
from arbor.selves.values import (
    MAX_ASPECTS,
    MAX_OF_KIND,
    QUALITIES,
    AspectKind,
    AspectRevision,
    BeliefStatus,
    NewAspect,
    check_quality,
    check_share,
)


@transaction.atomic
def add_aspect(
    *, agent_id: UUID, aspect: NewAspect, actor: str, proposal_id: UUID | None = None
) -> IdentityAspect:
    """Add an aspect to an agent's identity, or activate a dropped one again.

    Raises NotFound for the agent, AlreadyExists for an aspect that it has, LimitReached, Invalid for a trait, value or
    capability that is no short line.
    """
    check_quality(aspect.kind, aspect.content)
    # Without the lock, two concurrent additions would both find no existing row.
    lock_agent_row(agent_id)
    hashed = content_hash(aspect.content)
    existing: IdentityAspect | None = IdentityAspect.objects.filter(
        agent_id=agent_id, kind=aspect.kind, content_hash=hashed
    ).first()
    if existing is not None and existing.status != BeliefStatus.DROPPED:
        raise AlreadyExists(f"the agent has this aspect already, as {existing.id}; revise it instead")
    _require_room(agent_id, aspect.kind)
    row = existing or IdentityAspect(tenant_id=current_tenant(), agent_id=agent_id, content_hash=hashed)
    before = aspect_values(existing) if existing else {}
    row.kind, row.content, row.status = aspect.kind, aspect.content, BeliefStatus.HELD
    row.strength, row.stability, row.source = aspect.strength, aspect.stability, aspect.source
    row.save()
    record_part_change(
        row,
        before=before,
        actor=actor,
        message=f"made it a part of the agent: {row.content}",
        proposal_id=proposal_id,
    )
    return row


@transaction.atomic
def revise_aspect(
    *,
    aspect_id: UUID,
    actor: str,
    revision: AspectRevision,
    proposal_id: UUID | None = None,
) -> IdentityAspect:
    """Change an aspect's strength, stability or status.

    Raises NotFound, Invalid for a change of nothing, for a number that is not from 0 to 1 and for the reason, LimitReached for a
    dropped aspect without room to come back.
    """
    if revision == AspectRevision(reason=revision.reason):
        raise Invalid("there is nothing to change: give a strength, a stability or a status")
    wanted: dict[str, Any] = {"strength": revision.strength, "stability": revision.stability}
    for name, value in wanted.items():
        if value is not None:
            check_share(name, value)
    if proposal_id is None:
        check_reason(revision.reason, actor=actor)
    wanted["status"] = revision.status
    aspect = _lock_aspect(aspect_id)
    if aspect.status == BeliefStatus.DROPPED and revision.status not in (None, BeliefStatus.DROPPED):
        _require_room(aspect.agent_id, AspectKind(aspect.kind))
    before = aspect_values(aspect)
    changes = set_values(aspect, wanted=wanted)
    if changes:
        aspect.save()
        verb = "dropped" if revision.status is BeliefStatus.DROPPED else "revised"
        message = f"{verb} the aspect: {aspect.content}"
        record_part_change(
            aspect,
            before=before,
            actor=actor,
            message=message,
            reason=revision.reason,
            proposal_id=proposal_id,
        )
    return aspect


def drop_aspect(*, aspect_id: UUID, actor: str, reason: str = "") -> IdentityAspect:
    """Drop an aspect of an agent's identity; its row stays. Raises NotFound, and Invalid for the reason."""
    revision = AspectRevision(status=BeliefStatus.DROPPED, reason=reason)
    return revise_aspect(aspect_id=aspect_id, actor=actor, revision=revision)


def _lock_aspect(aspect_id: UUID) -> IdentityAspect:
    """Lock an aspect, after its agent. Raises NotFound."""
    agent_id = IdentityAspect.objects.filter(id=aspect_id).values_list("agent_id", flat=True).first()
    if agent_id is not None:
        lock_agent_row(agent_id)
    aspect: IdentityAspect | None = IdentityAspect.objects.select_for_update().filter(id=aspect_id).first()
    if aspect is None:
        raise NotFound(f"there is no aspect {aspect_id} in this tenant")
    return aspect


def _require_room(agent_id: UUID, kind: AspectKind) -> None:
    """Raise LimitReached for an agent that has as many aspects as allowed, or as many of a kind, such as traits."""
    kinds = IdentityAspect.objects.filter(agent_id=agent_id).exclude(status=BeliefStatus.DROPPED)
    counts = Counter(kinds.values_list("kind", flat=True))
    if kind in QUALITIES and counts[kind] >= MAX_OF_KIND:
        raise LimitReached(f"an agent has at most {MAX_OF_KIND} of the kind {kind}; drop one first")
    if (
        kind not in QUALITIES
        and sum(counts[other] for other in AspectKind if other not in QUALITIES) >= MAX_ASPECTS
    ):
        raise LimitReached(
            f"an agent has at most {MAX_ASPECTS} aspects besides traits, values and capabilities; drop one first"
        )
