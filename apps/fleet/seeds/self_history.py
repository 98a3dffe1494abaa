"""Record the differences that a restore makes to an agent's self in its self history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from django.db.models import Q

from apps.selves.models import Belief, Boundary, IdentityAspect, Preference
from apps.selves.services.changes import (
    ASPECT,
    BELIEF,
    BOUNDARY,
    PREFERENCE,
    SelfChangeRecord,
    record_self_change,
)
from apps.tenants.models import TenantModel

#: The tables of a self, and the columns whose changes its history has.
_PARTS: dict[str, tuple[type[TenantModel], tuple[str, ...]]] = {
    ASPECT: (IdentityAspect, ("kind", "content", "stability", "status")),
    BELIEF: (Belief, ("category", "statement", "confidence", "stability", "status", "filters")),
    PREFERENCE: (Preference, ("key", "value")),
    BOUNDARY: (
        Boundary,
        (
            "name",
            "description",
            "type",
            "patterns",
            "examples",
            "response",
            "flexibility",
            "importance",
            "enabled",
        ),
    ),
}


@dataclass(frozen=True, kw_only=True)
class SelfSnapshot:
    """The parts of a self at one moment: their values by kind and id."""

    parts: Mapping[tuple[str, UUID], Mapping[str, Any]]

    @classmethod
    def of(cls, agent_id: UUID) -> Self:
        """Read an agent's self. Four statements."""
        return cls(
            parts={
                (what, row["id"]): {column: row[column] for column in columns}
                for what, (model, columns) in _PARTS.items()
                for row in model._default_manager.filter(Q(agent_id=agent_id)).values("id", *columns)
            }
        )


def record_self_differences(agent_id: UUID, before: SelfSnapshot, *, actor: str, reason: str) -> int:
    """Record each part of the self that differs from before, and return their number."""
    after = SelfSnapshot.of(agent_id)
    changed = [
        part
        for part in sorted(before.parts.keys() | after.parts.keys())
        if before.parts.get(part) != after.parts.get(part)
    ]
    for what, target_id in changed:
        record_self_change(
            SelfChangeRecord(
                agent_id=agent_id,
                what=what,
                target_id=target_id,
                before=before.parts.get((what, target_id), {}),
                after=after.parts.get((what, target_id), {}),
                actor=actor,
                message=f"a seed brought back another {what}",
                reason=reason,
            )
        )
    return len(changed)
