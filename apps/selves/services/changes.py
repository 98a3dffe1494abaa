"""Write the self history, and limit how fast an agent changes its self; people are not limited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Model

from apps.selves.models import SelfChange
from apps.tenants.scope import current_tenant
from arbor.selves.proposals import check_pace

#: The kinds of changed parts (`SelfChange.what`).
BELIEF = "belief"
ASPECT = "aspect"
PREFERENCE = "preference"
#: The prefix of an agent's own decisions, the only ones that are limited.
HEARTBEAT = "heartbeat:"


@dataclass(frozen=True, kw_only=True)
class PartChange:
    """The change of a part of the self, given by its kind and id."""

    what: str
    target_id: UUID
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def record_self_change(
    *, agent_id: UUID, change: PartChange, decided_by: str, proposal_id: UUID | None = None
) -> None:
    """Record one change, in the transaction of the change itself. One statement."""
    SelfChange.objects.create(
        tenant_id=current_tenant(),
        agent_id=agent_id,
        what=change.what,
        target_id=change.target_id,
        before=dict(change.before),
        after=dict(change.after),
        proposal_id=proposal_id,
        decided_by=decided_by,
    )


def require_pace(
    *, agent_id: UUID, decided_by: str, what: str, target_id: UUID | None = None, now: datetime
) -> None:
    """Raise LimitReached for an agent's own change of its self that is too soon. One statement.

    After a change of an aspect, the whole identity must wait; after one of a belief or preference, only that `target_id`.
    """
    if not decided_by.startswith(HEARTBEAT):
        return
    recent = list(
        SelfChange.objects.filter(
            agent_id=agent_id, decided_by__startswith=HEARTBEAT, at__gt=now - timedelta(days=1)
        ).values_list("what", "target_id", "at")
    )
    of_same_part = [
        at
        for kind, target, at in recent
        if kind == what and (what == ASPECT or (target_id is not None and target == target_id))
    ]
    check_pace([at for _, _, at in recent], of_same_part, now)


def set_values(row: Model, wanted: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Set the values of a row that differ, and return {name: {"from": …, "to": …}}; None leaves a value unchanged."""
    changes = {
        name: {"from": getattr(row, name), "to": value}
        for name, value in wanted.items()
        if value is not None and value != getattr(row, name)
    }
    for name, change in changes.items():
        setattr(row, name, change["to"])
    return changes
