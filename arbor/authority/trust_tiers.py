"""Trust tiers: the score of an agent, and the rules by which its tier rises and falls.

Weights, tiers and the grace period are those of the origin of seed 000. The origin's part "tests" is replaced by the share of
accepted proposals that proved right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from arbor.agents.template import TrustTier
from arbor.authority.modes import TrustPreset

#: The least score of each tier, 0 to 100.
TIER_FLOORS: Mapping[TrustTier, int] = MappingProxyType(
    {
        TrustTier.UNTRUSTED: 0,
        TrustTier.PROBATIONARY: 20,
        TrustTier.TRUSTED: 50,
        TrustTier.VETERAN: 75,
        TrustTier.AUTONOMOUS: 90,
    }
)
#: The tiers, from the lowest to the highest.
TIERS = tuple(TIER_FLOORS)
#: The highest tier that an agent is created with, and the highest that a score leads to; a person may set any.
HIGHEST_AT_BIRTH = TrustTier.PROBATIONARY
HIGHEST_BY_SCORE = TrustTier.VETERAN
#: How long a score must suffice before a tier rises, and be too low before one falls.
PROVEN_AFTER = timedelta(days=3)
#: No score lowers a tier within this time after its last change or the agent's birth, nor raises it within this time after a breach.
GRACE = timedelta(days=7)
#: How far below a tier's floor a score must be to lower it, so that a score near the floor moves nothing.
MARGIN = 5
#: The actions and heartbeats together below which a score moves nothing: an agent that does little is neither good nor bad.
MIN_RECORDS = 20
#: The days that a score looks back.
SCORED_DAYS = 30
#: The share of a part without records, and the number of records that this share counts as, added to real ones.
PRIOR = 0.4
PRIOR_RECORDS = 10


class TrustPart(StrEnum):
    """A part of a trust score."""

    #: Actions that succeeded.
    SUCCESS = "success"
    #: Heartbeats that did not fail.
    UPTIME = "uptime"
    #: Heartbeats without a breach.
    SECURITY = "security"
    #: Accepted proposals that proved right.
    CALIBRATION = "calibration"
    #: Changes of the self that were not rolled back.
    ROLLBACK = "rollback"


#: The preset of an agent for which nobody has chosen one, by its tier.
TIER_PRESETS: Mapping[TrustTier, TrustPreset] = MappingProxyType(
    {
        TrustTier.UNTRUSTED: TrustPreset.BALANCED,
        TrustTier.PROBATIONARY: TrustPreset.HANDS_OFF,
        TrustTier.TRUSTED: TrustPreset.HANDS_OFF,
        TrustTier.VETERAN: TrustPreset.HANDS_OFF,
        TrustTier.AUTONOMOUS: TrustPreset.FULL_TRUST,
    }
)
#: The tier of agents that were created before tiers were computed, so that they keep their permissions.
TIER_BEFORE = TrustTier.TRUSTED

#: The weight of each part; their sum is 1.
WEIGHTS: Mapping[TrustPart, float] = MappingProxyType(
    {
        TrustPart.SUCCESS: 0.30,
        TrustPart.UPTIME: 0.15,
        TrustPart.SECURITY: 0.25,
        TrustPart.CALIBRATION: 0.20,
        TrustPart.ROLLBACK: 0.10,
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """Good records of one part, and all of them; a record that is partly good counts in part."""

    good: float = 0.0
    total: int = 0

    @property
    def share(self) -> float:
        """Return the good share, 0 to 1, drawn towards the prior where there are few records."""
        good = min(max(self.good, 0.0), float(self.total))
        return (good + PRIOR * PRIOR_RECORDS) / (self.total + PRIOR_RECORDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredPart:
    """A part of a score: its share from 0 to 1, the records behind it, and its points of the 100."""

    part: TrustPart
    good: float
    total: int
    share: float
    points: float
    #: The most points that the part can give.
    most: float


def score_parts(tallies: Mapping[TrustPart, Tally]) -> tuple[ScoredPart, ...]:
    """Return all parts of a score, in the order of `TrustPart`; a missing tally has no records."""
    parts = []
    for part, weight in WEIGHTS.items():
        tally = tallies.get(part, Tally())
        share = tally.share
        parts.append(
            ScoredPart(
                part=part,
                good=round(tally.good, 2),
                total=tally.total,
                share=round(share, 4),
                points=round(100 * weight * share, 2),
                most=100 * weight,
            )
        )
    return tuple(parts)


def score_of(parts: tuple[ScoredPart, ...]) -> float:
    """Return the score of its parts, 0 to 100."""
    return round(sum(part.points for part in parts), 1)


def records_of(parts: tuple[ScoredPart, ...]) -> int:
    """Return the number of actions and heartbeats behind a score."""
    return sum(part.total for part in parts if part.part in (TrustPart.SUCCESS, TrustPart.UPTIME))


@dataclass(frozen=True, kw_only=True, slots=True)
class TierStatus:
    """An agent's tier and the times that decide about its next change."""

    tier: TrustTier
    #: Since when the agent has the tier.
    since: datetime
    #: Whether a person set the tier: no score lowers it then.
    by_person: bool = False
    #: The time of the latest breach, also of one that found no lower tier.
    breached_at: datetime | None = None
    #: Since when the score has sufficed for the next tier, and has been too low for this one.
    above_since: datetime | None = None
    below_since: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TierDecision:
    """The status after a score, and the reason for a change of the tier; empty if the tier stays."""

    status: TierStatus
    reason: str = ""


def tier_at_birth(requested: str) -> TrustTier:
    """Return the tier that an agent starts with: the requested one, probationary at most."""
    return min(TrustTier(requested), HIGHEST_AT_BIRTH, key=TIERS.index)


def next_tier(status: TierStatus, *, score: float, records: int, breach: str, now: datetime) -> TierDecision:
    """Decide about a tier by a score from 0 to 100, the records behind it, and a breach since the last decision, if any.

    A breach lowers the tier at once, by one. A score raises the tier by one, up to veteran, after three days at or above the
    next tier's floor, but not within seven days after a breach. A score lowers the tier by one after three days more than
    five points below its own floor, but not within seven days after a change, nor where a person set the tier. With fewer
    than twenty records no score changes the tier.
    """
    if breach:
        return _after_breach(status, breach, now)
    status = _with_times(status, score, records, now)
    place = TIERS.index(status.tier)
    if _is_proven(status.above_since, now) and _is_past_breach(status, now):
        higher = TIERS[place + 1]
        return TierDecision(
            status=_moved(status, higher, now),
            reason=f"a score of at least {TIER_FLOORS[higher]} for {PROVEN_AFTER.days} days; now {score:g}",
        )
    if _is_proven(status.below_since, now) and now - status.since >= GRACE:
        return TierDecision(
            status=_moved(status, TIERS[place - 1], now),
            reason=f"a score below {TIER_FLOORS[status.tier] - MARGIN} for {PROVEN_AFTER.days} days; now {score:g}",
        )
    return TierDecision(status=status)


def _after_breach(status: TierStatus, breach: str, now: datetime) -> TierDecision:
    lower = TIERS[max(TIERS.index(status.tier) - 1, 0)]
    if lower is status.tier:
        # There is no lower tier, but the time above the next floor starts again.
        return TierDecision(
            status=TierStatus(
                tier=status.tier, since=status.since, by_person=status.by_person, breached_at=now
            )
        )
    return TierDecision(status=TierStatus(tier=lower, since=now, breached_at=now), reason=breach)


def _with_times(status: TierStatus, score: float, records: int, now: datetime) -> TierStatus:
    """Return the status with the times since when its score has been high, or low, enough for a change."""
    place = TIERS.index(status.tier)
    is_known = records >= MIN_RECORDS
    rises = (
        is_known
        and status.tier not in (HIGHEST_BY_SCORE, TrustTier.AUTONOMOUS)
        and score >= TIER_FLOORS[TIERS[place + 1]]
    )
    falls = is_known and place > 0 and not status.by_person and score < TIER_FLOORS[status.tier] - MARGIN
    return TierStatus(
        tier=status.tier,
        since=status.since,
        by_person=status.by_person,
        breached_at=status.breached_at,
        above_since=(status.above_since or now) if rises else None,
        below_since=(status.below_since or now) if falls else None,
    )


def _is_proven(since: datetime | None, now: datetime) -> bool:
    return since is not None and now - since >= PROVEN_AFTER


def _is_past_breach(status: TierStatus, now: datetime) -> bool:
    return status.breached_at is None or now - status.breached_at >= GRACE


def _moved(status: TierStatus, tier: TrustTier, now: datetime) -> TierStatus:
    return TierStatus(tier=tier, since=now, breached_at=status.breached_at)
