"""Roll a self back to an earlier version, for a person; the rollback is a version of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Model

from apps.agents.services.locks import lock_agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.selves.models import Belief, Boundary, IdentityAspect, Preference
from apps.selves.services.alignment import update_related_trust
from apps.selves.services.changes import HEARTBEAT, SelfChangeRecord, check_reason, record_self_change
from apps.selves.services.history import latest_version, load_history, load_self
from apps.selves.services.parts import aspect_values, belief_values, boundary_values, preference_values
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from arbor.errors import PermissionDenied
from arbor.memory.content import content_hash
from arbor.selves.history import (
    DifferenceKind,
    PartDifference,
    PartKind,
    differences,
    fold,
    require_offered,
)
from arbor.selves.values import (
    DEFAULT_CONFIDENCE,
    DEFAULT_STABILITY,
    AspectKind,
    BeliefCategory,
    BeliefStatus,
)
from arbor.signals import SignalName, signal

#: The source of parts that a rollback stores anew.
SOURCE = "rollback"
_ORDER = (DifferenceKind.REMOVED, DifferenceKind.CHANGED, DifferenceKind.ADDED)
#: All parts of a self.
ALL_PARTS = tuple(PartKind)


@dataclass(frozen=True, kw_only=True)
class Rollback:
    """The result of a rollback: the restored version, the new version, and the differences."""

    to: int
    version: int
    differences: tuple[PartDifference, ...]


@transaction.atomic
def roll_back(
    *, agent_id: UUID, to: int, actor: str, reason: str = "", parts: Collection[PartKind] = ALL_PARTS
) -> Rollback:
    """Restore the parts of a self as they were at an earlier version; without differences, nothing changes.

    Each restored part is a change of one new version. Memories are no part of the self, and stay. Raises NotFound for the
    agent and for a version that is not offered, Invalid for the reason, PermissionDenied for an agent's own heartbeat.
    """
    if actor.startswith(HEARTBEAT):
        raise PermissionDenied("only a person rolls a self back")
    check_reason(reason, actor=actor)
    agent = lock_agent(agent_id)
    latest = latest_version(agent_id)
    require_offered(to, latest=latest)
    wanted = fold(load_history(agent_id, until=to))
    found = differences(load_self(agent_id), wanted, parts=parts)
    if not found:
        return Rollback(to=to, version=latest, differences=())
    why = f"rollback to version {to}" + (f": {reason.strip()}" if reason.strip() else "")
    version = latest + 1
    # Removals come first, because they free the keys and names of the parts that are restored.
    for difference in sorted(found, key=lambda difference: _ORDER.index(difference.difference)):
        after = _RESTORE[difference.part](agent_id, UUID(difference.target_id), difference.after)
        record_self_change(
            SelfChangeRecord.of_restoration(
                agent_id, difference, after=after, actor=actor, reason=why, version=version
            )
        )
    record(
        action=AuditAction.SELF_ROLLED_BACK,
        actor=actor,
        agent_id=agent_id,
        message=f"rolled the self of {agent.name} back to version {to}",
        detail={"to": to, "version": version, "changes": len(found), "reason": reason.strip()},
    )
    emit(signal(SignalName.IDENTITY_ROLLBACK, agent_id, to=to, version=version, by=actor))
    return Rollback(to=to, version=version, differences=found)


def _restore_aspect(agent_id: UUID, row_id: UUID, values: Mapping[str, Any]) -> dict[str, Any]:
    row = IdentityAspect.objects.filter(id=row_id, agent_id=agent_id).first() or IdentityAspect(
        id=row_id,
        tenant_id=current_tenant(),
        agent_id=agent_id,
        kind=AspectKind.SELF_CONCEPT,
        stability=DEFAULT_STABILITY,
        source=SOURCE,
    )
    _assign(row, values)
    row.content_hash = content_hash(row.content)
    if values:
        # A seed that was restored may have deleted the row, so that the same words came back under another id.
        same = IdentityAspect.objects.filter(agent_id=agent_id, kind=row.kind, content_hash=row.content_hash)
        same.filter(status=BeliefStatus.DROPPED).exclude(id=row_id).delete()
    row.save()
    return aspect_values(row)


def _restore_belief(agent_id: UUID, row_id: UUID, values: Mapping[str, Any]) -> dict[str, Any]:
    row = Belief.objects.filter(id=row_id, agent_id=agent_id).first() or Belief(
        id=row_id,
        tenant_id=current_tenant(),
        agent_id=agent_id,
        category=BeliefCategory.WORLD,
        confidence=DEFAULT_CONFIDENCE,
        stability=DEFAULT_STABILITY,
        source=SOURCE,
    )
    _assign(row, values)
    row.filters = values.get("filters", []) if values else row.filters
    row.statement_hash = content_hash(row.statement)
    if values:
        same = Belief.objects.filter(agent_id=agent_id, statement_hash=row.statement_hash)
        same.filter(status=BeliefStatus.DROPPED).exclude(id=row_id).delete()
    row.save()
    update_related_trust(agent_id=agent_id, belief_id=row.id)
    return belief_values(row)


def _restore_preference(agent_id: UUID, row_id: UUID, values: Mapping[str, Any]) -> dict[str, Any]:
    if not values:
        Preference.objects.filter(id=row_id, agent_id=agent_id).delete()
        return {}
    row = Preference.objects.filter(id=row_id, agent_id=agent_id).first() or Preference(
        id=row_id, tenant_id=current_tenant(), agent_id=agent_id
    )
    row.source = SOURCE
    _assign(row, values)
    row.save()
    return preference_values(row)


def _restore_boundary(agent_id: UUID, row_id: UUID, values: Mapping[str, Any]) -> dict[str, Any]:
    if not values:
        Boundary.objects.filter(id=row_id, agent_id=agent_id).delete()
        return {}
    row = Boundary.objects.filter(id=row_id, agent_id=agent_id).first() or Boundary(
        id=row_id, tenant_id=current_tenant(), agent_id=agent_id
    )
    if row.examples != values.get("examples", row.examples):
        # Heartbeats embed examples that have no vectors.
        row.vectors = {}
    row.source = SOURCE
    _assign(row, values)
    row.save()
    return boundary_values(row)


def _assign(row: Model, values: Mapping[str, Any]) -> None:
    """Set the recorded values of a row; without any, the row is dropped. A field that the record lacks stays."""
    for name, value in (values or {"status": BeliefStatus.DROPPED}).items():
        setattr(row, name, value)


_RESTORE: Mapping[PartKind, Callable[[UUID, UUID, Mapping[str, Any]], dict[str, Any]]] = MappingProxyType(
    {
        PartKind.ASPECT: _restore_aspect,
        PartKind.BELIEF: _restore_belief,
        PartKind.PREFERENCE: _restore_preference,
        PartKind.BOUNDARY: _restore_boundary,
    }
)
