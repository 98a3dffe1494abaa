"""The change of a belief by evidence: Bayes' rule in odds, damped by the belief's stability (seed 003, 3.5).

The alignment of memories with beliefs, and their resonance with an identity, are those of seed 004,
`worldview_memory_influences` and `identity_memory_resonance`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from arbor.errors import Invalid
from arbor.memory.relations import Relation
from arbor.selves.values import BeliefStatus, check_share

#: The likelihood ratio of evidence of full strength: it is three times as likely if the belief is true.
LIKELIHOOD_RATIO = 3.0
#: The most certain confidence, either way, that a revision starts from: beyond it, no evidence could move the belief again.
MAX_PRIOR = 0.98
#: The most that one decision moves a belief, so that no single memory reverses it.
MAX_STEP = 0.2
#: Below the first confidence a belief is in doubt, from the second on it is held again; without the gap
#: the status would change with each memory.
DOUBTED_BELOW = 0.4
HELD_FROM = 0.5


def revise_confidence(*, confidence: float, stability: float, supports: bool, strength: float) -> float:
    """Compute a belief's confidence, 0 to 1, after one memory as evidence of a strength from 0 to 1.

    ln odds' = ln odds ± strength · (1 - stability) · ln 3, from a confidence of 0.02 to 0.98, moved by at most 0.2.
    """
    prior = min(max(confidence, 1 - MAX_PRIOR), MAX_PRIOR)
    shift = strength * (1 - stability) * math.log(LIKELIHOOD_RATIO)
    odds = math.log(prior / (1 - prior)) + (shift if supports else -shift)
    wanted = 1 / (1 + math.exp(-odds))
    # From beyond the most certain prior, the odds would move the belief against the evidence.
    return limit_confidence(confidence, max(wanted, confidence) if supports else min(wanted, confidence))


def limit_confidence(confidence: float, wanted: float) -> float:
    """Limit a wanted confidence to what one decision can reach."""
    step = min(max(wanted - confidence, -MAX_STEP), MAX_STEP)
    return round(min(max(confidence + step, 0.0), 1.0), 4)


def status_at(current: BeliefStatus, confidence: float) -> BeliefStatus:
    """Return the belief status for a confidence: held or in doubt; a dropped belief stays dropped."""
    if current is BeliefStatus.DROPPED:
        return current
    if confidence < DOUBTED_BELOW:
        return BeliefStatus.QUESTIONED
    return BeliefStatus.HELD if confidence >= HELD_FROM else current


def check_step(confidence: float, wanted: float) -> None:
    """Raise Invalid for a change that is too large for one decision."""
    check_share("confidence", wanted)
    if abs(wanted - confidence) > MAX_STEP + 1e-9:
        low, high = max(confidence - MAX_STEP, 0.0), min(confidence + MAX_STEP, 1.0)
        raise Invalid(
            f"one decision moves a belief by at most {MAX_STEP:g}: from {confidence:.2f} to between {low:.2f} and"
            f" {high:.2f}, got {wanted:.2f}"
        )


#: The sign of a relation between a memory and a belief: the memory fits the belief, or contradicts it.
SIGNS: Mapping[Relation, int] = MappingProxyType({Relation.SUPPORTS: 1, Relation.CONTRADICTS: -1})


class Influence(NamedTuple):
    """A belief's influence on a memory: the relation, its weight, and the belief's confidence, both from 0 to 1."""

    relation: Relation
    weight: float
    confidence: float


def alignment(influences: Iterable[Influence]) -> float:
    """Compute the alignment of a memory with the agent's beliefs, from -1 to 1.

    The sum of ±weight · confidence over the memory's relations to beliefs, clipped; 0 without relations.
    """
    total = sum(
        SIGNS.get(influence.relation, 0) * influence.weight * influence.confidence for influence in influences
    )
    return min(max(total, -1.0), 1.0)


class AspectInfluence(NamedTuple):
    """A relation between a memory and an aspect: its weight and the aspect's stability, both from 0 to 1."""

    relation: Relation
    weight: float
    stability: float

    @property
    def share(self) -> float:
        """Return this relation's share of the resonance: weight · stability, negative for a contradiction."""
        sign = -1 if self.relation is Relation.CONTRADICTS else 1
        return sign * self.weight * self.stability


def resonance(influences: Iterable[AspectInfluence]) -> float:
    """Compute a memory's resonance with an identity, from -1 to 1.

    The sum of ±weight · stability over the memory's relations to aspects, clipped; 0 without relations.
    """
    return min(max(sum(influence.share for influence in influences), -1.0), 1.0)
