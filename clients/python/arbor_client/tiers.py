"""Trust tiers of agents, the calibration of their proposals, and their drift since birth."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import Call, Id, get, put, segment
from arbor_client.groups import Group, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class TrustScorePart:
    """A part of a trust score."""

    part: str
    #: The number of good records; a partial success counts half.
    good: float
    #: The number of records behind the part.
    total: int
    #: 0 to 1.
    share: float
    #: The part's points of the 100 of the score.
    points: float
    #: The most points that the part can give.
    most: float


@dataclass(frozen=True, kw_only=True)
class TrustTier:
    """An agent's trust tier, and the score that moves it."""

    tier: str
    since: datetime
    #: A person set the tier: no score lowers it, a breach does.
    by_person: bool
    #: 0 to 100; None before the first computation.
    score: float | None
    parts: list[TrustScorePart]
    computed_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class TierChange:
    """A change of an agent's trust tier."""

    id: UUID
    before: str
    after: str
    score: float | None
    decided_by: str
    reason: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class TierChanges:
    """The changes of an agent's trust tier, the latest first."""

    items: list[TierChange]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The judgment of the latest decided proposals of one kind."""

    kind: str
    right: int
    wrong: int
    rejected: int
    #: The confidence from which the kind is proposed; None: the kind has no threshold.
    threshold: float | None
    computed_at: datetime


@dataclass(frozen=True, kw_only=True)
class Calibrations:
    """The calibration of an agent's proposals by kind."""

    items: list[Calibration]


@dataclass(frozen=True, kw_only=True)
class DriftedPart:
    """A value or trait, with its weight at birth and now; 0 where it is missing."""

    name: str
    #: same, stronger, weaker, gone or new.
    change: str
    at_birth: float
    now: float


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The drift of values or traits."""

    #: 0: as at birth, 1: nothing in common.
    share: float
    parts: list[DriftedPart]


@dataclass(frozen=True, kw_only=True)
class SelfDrift:
    """The distance of a self from its birth."""

    #: The larger of the two.
    share: float
    values: Drift
    traits: Drift


class Tiers[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about trust tiers, calibration and drift."""

    @operation
    def get(self, agent_id: Id) -> Call[TrustTier]:
        """Return an agent's trust tier and score."""
        return get(TrustTier, f"/agents/{segment(agent_id)}/tier")

    @operation
    def set(self, agent_id: Id, *, tier: str, reason: str = "") -> Call[TrustTier]:
        """Set an agent's trust tier."""
        return put(TrustTier, f"/agents/{segment(agent_id)}/tier", {"tier": tier, "reason": reason})

    @operation
    def changes(self, agent_id: Id) -> Call[TierChanges]:
        """Return the latest changes of an agent's trust tier."""
        return get(TierChanges, f"/agents/{segment(agent_id)}/tier/changes")

    @operation
    def calibration(self, agent_id: Id) -> Call[Calibrations]:
        """Return how often an agent's accepted proposals proved right, by kind."""
        return get(Calibrations, f"/agents/{segment(agent_id)}/calibration")

    @operation
    def drift(self, agent_id: Id) -> Call[SelfDrift]:
        """Return the drift of an agent's values and traits since its birth."""
        return get(SelfDrift, f"/agents/{segment(agent_id)}/drift")
