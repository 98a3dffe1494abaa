"""Add, revise and drop aspects of an identity; each change is recorded in the self history."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction

from apps.agents.services.profile import lock_agent_row
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.selves.models import IdentityAspect
from apps.selves.services.changes import ASPECT, PartChange, record_self_change, set_values
from apps.tenants.scope import current_tenant
from arbor.errors import AlreadyExists, LimitReached, NotFound
from arbor.memory.content import content_hash
from arbor.selves.values import MAX_ASPECTS, BeliefStatus, NewAspect, check_share


@transaction.atomic
def add_aspect(
    *, agent_id: UUID, aspect: NewAspect, actor: str, proposal_id: UUID | None = None
) -> IdentityAspect:
    """Add an aspect to an agent's identity, or activate a dropped one again.

    Raises NotFound for the agent, AlreadyExists for an aspect that it has, LimitReached.
    """
    # Without the lock, two concurrent additions would both find no existing row.
    lock_agent_row(agent_id)
    hashed = content_hash(aspect.content)
    existing: IdentityAspect | None = IdentityAspect.objects.filter(
        agent_id=agent_id, content_hash=hashed
    ).first()
    if existing is not None and existing.status != BeliefStatus.DROPPED:
        raise AlreadyExists(f"that is an aspect already, {existing.id}; revise it instead")
    count = IdentityAspect.objects.filter(agent_id=agent_id).exclude(status=BeliefStatus.DROPPED).count()
    if count >= MAX_ASPECTS:
        raise LimitReached(f"an agent has at most {MAX_ASPECTS} aspects; drop one first")
    row = existing or IdentityAspect(tenant_id=current_tenant(), agent_id=agent_id, content_hash=hashed)
    before = _values_of(existing) if existing else {}
    row.kind, row.content, row.status = aspect.kind, aspect.content, BeliefStatus.HELD
    row.stability, row.source = aspect.stability, aspect.source
    row.save()
    _record_change(row, before, actor, proposal_id)
    _audit(row, actor, f"made it a part of the agent: {row.content}", {"again": existing is not None})
    return row


@transaction.atomic
def revise_aspect(
    *,
    aspect_id: UUID,
    actor: str,
    stability: float | None = None,
    status: BeliefStatus | None = None,
    reason: str = "",
) -> IdentityAspect:
    """Change an aspect's stability or status; None leaves a value unchanged.

    Raises NotFound, Invalid for a number that is not from 0 to 1.
    """
    if stability is not None:
        check_share("stability", stability)
    aspect: IdentityAspect | None = IdentityAspect.objects.select_for_update().filter(id=aspect_id).first()
    if aspect is None:
        raise NotFound(f"there is no aspect {aspect_id} in this tenant")
    wanted: dict[str, Any] = {"stability": stability, "status": status}
    before = _values_of(aspect)
    changes = set_values(aspect, wanted)
    if changes:
        aspect.save()
        _record_change(aspect, before, actor)
        verb = "dropped" if status is BeliefStatus.DROPPED else "revised"
        _audit(aspect, actor, f"{verb} the aspect: {aspect.content}", {"changes": changes, "reason": reason})
    return aspect


def drop_aspect(*, aspect_id: UUID, actor: str, reason: str = "") -> IdentityAspect:
    """Drop an aspect of an agent's identity; its row stays for the record. Raises NotFound."""
    return revise_aspect(aspect_id=aspect_id, actor=actor, status=BeliefStatus.DROPPED, reason=reason)


def _values_of(aspect: IdentityAspect) -> dict[str, Any]:
    return {
        "kind": str(aspect.kind),
        "content": aspect.content,
        "stability": aspect.stability,
        "status": str(aspect.status),
    }


def _record_change(
    aspect: IdentityAspect, before: dict[str, Any], actor: str, proposal_id: UUID | None = None
) -> None:
    record_self_change(
        agent_id=aspect.agent_id,
        change=PartChange(what=ASPECT, target_id=aspect.id, before=before, after=_values_of(aspect)),
        decided_by=actor,
        proposal_id=proposal_id,
    )


def _audit(aspect: IdentityAspect, actor: str, message: str, detail: dict[str, Any]) -> None:
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=aspect.agent_id,
        message=message,
        detail={"aspect_id": str(aspect.id), **detail},
    )
