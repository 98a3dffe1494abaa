"""Read the self history: the growth log, the versions of a self, and their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from django.db.models import Max

from apps.selves.models import Belief, Boundary, IdentityAspect, Preference, SelfChange
from apps.selves.services.parts import aspect_values, belief_values, boundary_values, preference_values
from arbor.selves.history import (
    BIRTH,
    BIRTH_CHANGE,
    GROWTH_LOG,
    PartDifference,
    PartKind,
    RecordedChange,
    SelfState,
    differences,
    fold,
    offered_versions,
    require_offered,
    state_of,
)


@dataclass(frozen=True, kw_only=True)
class SelfVersion:
    """A version of a self: the position in its history that one act led to, with the changes of the act."""

    number: int
    at: datetime
    decided_by: str
    reason: str
    changes: tuple[PartDifference, ...]

    @property
    def is_birth(self) -> bool:
        """Return whether the agent was born with this self."""
        return self.number == BIRTH


@dataclass(frozen=True, kw_only=True)
class VersionDiff:
    """Two versions of a self and their differences."""

    earlier: int
    later: int
    differences: tuple[PartDifference, ...]


def growth_log(agent_id: UUID, *, limit: int = GROWTH_LOG) -> list[SelfChange]:
    """Return the latest changes of an agent's self, the latest first, at most 100. One statement."""
    changes = SelfChange.objects.filter(agent_id=agent_id).order_by("-version", "-id")
    return list(changes[: min(limit, GROWTH_LOG)])


def versions_of(agent_id: UUID) -> list[SelfVersion]:
    """Return the versions of an agent's self that can be restored, the latest first: ten, and the birth. Two statements."""
    offered = offered_versions(latest_version(agent_id))
    rows = SelfChange.objects.filter(agent_id=agent_id, version__in=offered).order_by("-version", "id")
    return [_version(list(changes)) for _, changes in groupby(rows, key=lambda change: change.version)]


def diff_versions(*, agent_id: UUID, earlier: int, later: int | None = None) -> VersionDiff:
    """Return the differences between two versions; `later` is the self of today by default. Raises NotFound."""
    latest = latest_version(agent_id)
    later = latest if later is None else later
    for number in (earlier, later):
        require_offered(number, latest=latest)
    changes = load_history(agent_id)
    found = differences(fold(changes, until=earlier), fold(changes, until=later))
    return VersionDiff(earlier=earlier, later=later, differences=found)


def birth_self_of(agent_id: UUID) -> SelfState:
    """Return the self of an agent at its birth; empty without a record. One statement."""
    return fold(load_history(agent_id, until=BIRTH))


def latest_version(agent_id: UUID) -> int:
    """Return the version of an agent's self today. One statement."""
    latest: int | None = SelfChange.objects.filter(agent_id=agent_id).aggregate(latest=Max("version"))[
        "latest"
    ]
    return latest or BIRTH


def load_history(agent_id: UUID, *, until: int | None = None) -> list[RecordedChange]:
    """Return the changes of a self in the order of their versions. One statement."""
    rows = SelfChange.objects.filter(agent_id=agent_id).order_by("version", "id")
    if until is not None:
        rows = rows.filter(version__lte=until)
    return [
        RecordedChange(version=version, what=what, target_id=str(target_id), before=before, after=after)
        for version, what, target_id, before, after in rows.values_list(
            "version", "what", "target_id", "before", "after"
        )
    ]


def load_self(agent_id: UUID) -> SelfState:
    """Return an agent's self as it is stored now. Four statements."""
    return state_of(
        {
            PartKind.ASPECT: {
                str(row.id): aspect_values(row) for row in IdentityAspect.objects.filter(agent_id=agent_id)
            },
            PartKind.BELIEF: {
                str(row.id): belief_values(row) for row in Belief.objects.filter(agent_id=agent_id)
            },
            PartKind.PREFERENCE: {
                str(row.id): preference_values(row) for row in Preference.objects.filter(agent_id=agent_id)
            },
            PartKind.BOUNDARY: {
                str(row.id): boundary_values(row) for row in Boundary.objects.filter(agent_id=agent_id)
            },
        }
    )


def _version(changes: Sequence[SelfChange]) -> SelfVersion:
    first = changes[0]
    return SelfVersion(
        number=first.version,
        at=first.at,
        decided_by=first.decided_by,
        reason=first.reason,
        changes=tuple(
            PartDifference(
                part=PartKind(change.what),
                target_id=str(change.target_id),
                before=change.before,
                after=change.after,
            )
            for change in changes
            if change.what != BIRTH_CHANGE
        ),
    )
