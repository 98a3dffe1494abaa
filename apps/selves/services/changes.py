"""Write the self history, and limit how fast an agent changes its self; people are not limited."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Self
from uuid import UUID

from django.db.models import Model

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.selves.models import Belief, Boundary, IdentityAspect, Preference, SelfChange
from apps.selves.services.parts import aspect_values, belief_values, boundary_values, preference_values
from apps.selves.services.queries import RECORD_SELF_CHANGE
from apps.signals.services.emission import emit
from apps.tenants.encoding import to_json
from apps.tenants.statements import fetch
from arbor.audit.changes import AuditChange
from arbor.ids import uuid7
from arbor.memory.content import check_line
from arbor.selves.history import RESTORATION_VERBS, PartDifference, PartKind
from arbor.selves.proposals import check_pace
from arbor.signals import SignalName, signal

_PARTS: Mapping[type[Model], tuple[str, Callable[[Any], Mapping[str, Any]]]] = MappingProxyType(
    {
        Belief: (PartKind.BELIEF.value, belief_values),
        IdentityAspect: (PartKind.ASPECT.value, aspect_values),
        Preference: (PartKind.PREFERENCE.value, preference_values),
        Boundary: (PartKind.BOUNDARY.value, boundary_values),
    }
)
#: The prefix of an agent's own decisions; only these are limited.
HEARTBEAT = "heartbeat:"
#: The most characters of a person's reason.
REASON_LENGTH = 500


@dataclass(frozen=True, kw_only=True)
class SelfChangeRecord:
    """A change of a part of a self; `before` is empty for a new part, `after` for one that is gone."""

    agent_id: UUID
    what: str
    target_id: UUID
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    #: `heartbeat:ID`, `user:NAME`, `cli:NAME`, `token:NAME`.
    actor: str
    #: The change in words.
    message: str
    reason: str = ""
    proposal_id: UUID | None = None
    #: The version of an act with several changes; None for a version of its own.
    version: int | None = None

    @classmethod
    def of_restoration(
        cls,
        agent_id: UUID,
        difference: PartDifference,
        *,
        after: Mapping[str, Any],
        actor: str,
        reason: str,
        version: int,
    ) -> Self:
        """Return the record of a part that differed from an earlier self and was restored."""
        return cls(
            agent_id=agent_id,
            what=difference.part,
            target_id=UUID(difference.target_id),
            before=difference.before,
            after=after,
            actor=actor,
            message=f"{RESTORATION_VERBS[difference.difference]} the {difference.kind}: {difference.name}",
            reason=reason,
            version=version,
        )


def record_self_change(change: SelfChangeRecord) -> int:
    """Record one change in the self history and in the audit log, in the transaction of the change; return its version.

    The caller has locked the agent's row, because changes are numbered one after the other. The actor of an agent's own
    decision is the agent in the audit log, and the detail names the heartbeat. Two statements besides that of the signal,
    one more for such a decision.
    """
    ((version,),) = fetch(
        RECORD_SELF_CHANGE,
        id=uuid7(),
        agent=change.agent_id,
        version=change.version,
        what=change.what,
        target=change.target_id,
        before=to_json(dict(change.before)),
        after=to_json(dict(change.after)),
        proposal=change.proposal_id,
        decided_by=change.actor,
        reason=change.reason,
        at=datetime.now(UTC),
    )
    detail: dict[str, Any] = {
        f"{change.what}_id": str(change.target_id),
        "changes": _differences(change.before, change.after),
        "reason": change.reason,
    }
    if change.proposal_id is not None:
        detail["proposal_id"] = str(change.proposal_id)
    record_decision(
        agent_id=change.agent_id,
        decided_by=change.actor,
        message=change.message,
        detail=detail,
        change=AuditChange(before=change.before, after=change.after),
    )
    emit(
        signal(
            SignalName.IDENTITY_CHANGE,
            change.agent_id,
            what=change.what,
            target=change.target_id,
            by=change.actor,
        )
    )
    return int(version)


def check_reason(reason: str, *, actor: str) -> None:
    """Raise Invalid for a person's reason that is too long or cannot be stored."""
    if not actor.startswith(HEARTBEAT):
        check_line("a reason", reason, REASON_LENGTH)


def record_part_change(
    part: Belief | Boundary | IdentityAspect | Preference,
    *,
    before: Mapping[str, Any],
    actor: str,
    message: str,
    is_removed: bool = False,
    reason: str = "",
    proposal_id: UUID | None = None,
) -> None:
    """Record a change of a part of a self, given by its row, as a version of its own, as `record_self_change` does.

    Nothing is recorded for a part that did not change: versions to roll back to are few.
    """
    what, values_of = _PARTS[type(part)]
    after: Mapping[str, Any] = {} if is_removed else values_of(part)
    if after == before:
        return
    record_self_change(
        SelfChangeRecord(
            agent_id=part.agent_id,
            what=what,
            target_id=part.id,
            before=before,
            after=after,
            actor=actor,
            message=message,
            reason=reason,
            proposal_id=proposal_id,
        )
    )


def record_decision(
    *,
    agent_id: UUID,
    decided_by: str,
    message: str,
    detail: Mapping[str, Any],
    change: AuditChange | None = None,
) -> None:
    """Record a decision about a self in the audit log; the actor of a heartbeat's decision is `agent:PUBLIC_ID`."""
    actor, known = decided_by, dict(detail)
    if decided_by.startswith(HEARTBEAT):
        actor = f"agent:{Agent.objects.values_list('public_id', flat=True).get(id=agent_id)}"
        known["heartbeat_id"] = decided_by.removeprefix(HEARTBEAT)
    record(
        action=AuditAction.SELF_CHANGED,
        actor=actor,
        agent_id=agent_id,
        message=message,
        detail=known,
        change=change,
    )


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return {name: {"from": …, "to": …}} for a part that existed before and still exists."""
    if not before or not after:
        return {}
    return {
        name: {"from": before.get(name), "to": value}
        for name, value in after.items()
        if before.get(name) != value
    }


def require_pace(
    *, agent_id: UUID, decided_by: str, what: str, target_id: UUID | None = None, now: datetime
) -> None:
    """Raise LimitReached for an agent's own change of its self that is too soon, or one too many in a day. One statement.

    After a change of an aspect, no aspect may change for a while; after a change of a belief or preference, this part (`target_id`) may not.
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
        if kind == what and (what == PartKind.ASPECT or (target_id is not None and target == target_id))
    ]
    check_pace([at for _, _, at in recent], of_same_part, now)


def set_values(row: Model, *, wanted: Mapping[str, Any]) -> bool:
    """Set the values of a row that differ, and return whether one did; None leaves a value unchanged."""
    changes = {
        name: value for name, value in wanted.items() if value is not None and value != getattr(row, name)
    }
    for name, value in changes.items():
        setattr(row, name, value)
    return bool(changes)
