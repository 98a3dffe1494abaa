"""Calibration: the share of accepted proposals that proved right, which moves the thresholds of promotions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType

from arbor.selves.proposals import MIN_INSIGHT, ProposalKind

#: The time after its acceptance from which a proposal can be judged right; it can be judged wrong at any time.
JUDGED_AFTER = timedelta(days=14)
#: The accepted proposals of a kind that are judged: the latest, so that a threshold also moves back.
MAX_JUDGED = 50
#: The judged proposals below which a threshold stays at its base.
MIN_JUDGED = 10
#: How far a threshold moves per share, and at most.
MOVED_PER_SHARE = 0.2
MAX_MOVED = 0.1


class ProposalJudgment(StrEnum):
    """The judgment of an accepted proposal by the memory or part of the self that it created."""

    #: What the proposal created still exists after a while, and was confirmed.
    RIGHT = "right"
    #: What the proposal created was dropped, contradicted, retired or rolled back.
    WRONG = "wrong"
    #: Too early to judge, or never used.
    OPEN = "open"


@dataclass(frozen=True, kw_only=True, slots=True)
class Threshold:
    """The confidence from which a kind is promoted, and the bounds that calibration moves it within; 0 to 1."""

    base: float
    least: float
    most: float


def _around(base: float, *, least: float = 0.0) -> Threshold:
    return Threshold(base=base, least=max(round(base - MAX_MOVED, 4), least), most=round(base + MAX_MOVED, 4))


#: Above the confidence that a user's word alone gives (`sources.USER_TRUST` as the only source: 0.745). Calibration never lowers
#: it: a promoted fact must have been confirmed, however often earlier ones proved right.
CONFIRMED = 0.75
#: The least activation of a preconscious memory.
EDGE_OF_MIND = 0.4

#: The thresholds of all kinds that maintenance proposes.
THRESHOLDS: Mapping[ProposalKind, Threshold] = MappingProxyType(
    {
        ProposalKind.BELIEF: _around(CONFIRMED, least=CONFIRMED),
        ProposalKind.IDENTITY: _around(CONFIRMED, least=CONFIRMED),
        ProposalKind.INSIGHT: _around(MIN_INSIGHT),
        # Habits: three repetitions give a confidence of 0.5, and fewer are no habit.
        ProposalKind.PATTERN: _around(0.5),
        ProposalKind.LEARNING: _around(0.5),
        ProposalKind.PRECONSCIOUS: _around(EDGE_OF_MIND),
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The latest proposals of one kind: accepted ones that proved right and wrong, and rejected ones."""

    right: int = 0
    wrong: int = 0
    rejected: int = 0

    @property
    def judged(self) -> int:
        """Return the number of accepted proposals that proved right or wrong."""
        return self.right + self.wrong

    @property
    def share(self) -> float | None:
        """Return the share that proved right, 0 to 1; None without judged proposals."""
        return self.right / self.judged if self.judged else None


def judge(*, age: timedelta, gone: bool, contradicted: bool, confirmed: bool) -> ProposalJudgment:
    """Judge an accepted proposal by what it created, `age` after its acceptance."""
    if gone or (contradicted and not confirmed):
        return ProposalJudgment.WRONG
    if confirmed and age >= JUDGED_AFTER:
        return ProposalJudgment.RIGHT
    return ProposalJudgment.OPEN


def threshold_of(kind: ProposalKind, calibration: Calibration) -> float | None:
    """Return the confidence from which a kind is promoted; None for a kind that has no threshold.

    base + clamp(0.2 · (0.5 - share), ±0.1), within the kind's bounds, once ten proposals are judged.
    """
    threshold = THRESHOLDS.get(kind)
    if threshold is None:
        return None
    share = calibration.share
    if share is None or calibration.judged < MIN_JUDGED:
        return threshold.base
    shift = min(max(MOVED_PER_SHARE * (0.5 - share), -MAX_MOVED), MAX_MOVED)
    return round(min(max(threshold.base + shift, threshold.least), threshold.most), 4)
