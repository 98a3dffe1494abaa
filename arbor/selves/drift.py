"""Drift: how far an agent's values and traits are from those of its birth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from arbor.selves.proposals import is_same_statement

#: Weights that differ by less count as equal.
_SAME_WEIGHT = 0.005


class DriftChange(StrEnum):
    """The change of a value or trait since birth."""

    #: There since birth, with the same weight.
    SAME = "same"
    #: There since birth, with more or with less weight.
    STRONGER = "stronger"
    WEAKER = "weaker"
    #: There at birth, and no longer.
    GONE = "gone"
    #: Came after birth.
    NEW = "new"


@dataclass(frozen=True, kw_only=True, slots=True)
class DriftedPart:
    """A value or trait: its weight at birth and now, 0 to 1; 0 where it is not there."""

    name: str
    at_birth: float
    now: float

    @property
    def change(self) -> DriftChange:
        """Return the change of the part."""
        if not self.at_birth:
            return DriftChange.NEW
        if not self.now:
            return DriftChange.GONE
        if abs(self.now - self.at_birth) < _SAME_WEIGHT:
            return DriftChange.SAME
        return DriftChange.STRONGER if self.now > self.at_birth else DriftChange.WEAKER


@dataclass(frozen=True, kw_only=True, slots=True)
class Drift:
    """The distance from birth, 0 (unchanged) to 1 (nothing in common), and its parts, the most changed first."""

    share: float
    parts: tuple[DriftedPart, ...]


def measure_drift(*, at_birth: Mapping[str, float], now: Mapping[str, float]) -> Drift:
    """Measure how far weighted names have moved: 1 - Σ min(birth, now) / Σ max(birth, now) (Ruzicka).

    Names that say the same in slightly different words are one. Weights are from 0 to 1; one of 0 is not there.
    """
    rest = {name: weight for name, weight in now.items() if weight > 0}
    born = {name: weight for name, weight in at_birth.items() if weight > 0}
    # Equal names first, so that a similar name never claims the match of an equal one.
    parts = [DriftedPart(name=name, at_birth=born[name], now=rest.pop(name)) for name in born if name in rest]
    for name in sorted(born.keys() - {part.name for part in parts}):
        match = next((candidate for candidate in sorted(rest) if is_same_statement(name, candidate)), None)
        parts.append(
            DriftedPart(name=name, at_birth=born[name], now=rest.pop(match) if match is not None else 0.0)
        )
    parts += [DriftedPart(name=name, at_birth=0.0, now=weight) for name, weight in rest.items()]
    parts.sort(key=lambda part: (-abs(part.now - part.at_birth), part.name))
    union = sum(max(part.at_birth, part.now) for part in parts)
    overlap = sum(min(part.at_birth, part.now) for part in parts)
    return Drift(share=round(1 - overlap / union, 4) if union else 0.0, parts=tuple(parts))
