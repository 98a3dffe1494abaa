"""Find the traits and capabilities that the actions of an agent show, by rule; consolidation proposes them to the agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from arbor.selves.values import AspectKind

#: The trait that an action is a sign of; actions that are not listed are signs of none. Only paid actions count.
TRAITS: Mapping[str, str] = MappingProxyType(
    {
        "recall": "mindful of the past",
        # Free under a budget of energy; under one of actions or ticks, each costs 1.
        "remember": "attentive",
        "reflect": "reflective",
        "synthesize": "reflective",
        "connect": "connecting",
        "maintain": "careful",
        "reprioritize": "organized",
        "brainstorm_goals": "inventive",
        "inquire_shallow": "curious",
        "inquire_deep": "curious",
        "reach_out_user": "sociable",
        "reach_out_agent": "sociable",
        "reach_out_public": "outspoken",
    }
)
#: The signs and their share of the actions of the latest experiences from which they are a pattern.
MIN_SIGNS = 12
MIN_SHARE = 0.3
#: The attempts and the share of successes from which an action is a capability.
MIN_ATTEMPTS = 10
MIN_SUCCESS = 0.8
#: The confidence at the fewest signs or attempts; more of them raise it towards 1.
_LEAST_CONFIDENCE = 0.75
#: The bounds of the bands in which a strength counts as the same.
_BANDS = (0.4, 0.7, 0.9)
#: The least difference of a strength that changes a trait, value or capability.
MIN_STRENGTH_CHANGE = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Tendency:
    """A trait or capability that actions show, with its strength and how sure that is, 0 to 1 each."""

    kind: AspectKind
    name: str
    strength: float
    confidence: float

    @property
    def key(self) -> str:
        """Return the identity of the tendency for proposals: another strength is another proposal only in another band."""
        return f"{self.kind}:{self.name}:{band(self.strength)}"


def band(strength: float) -> int:
    """Return the band of a strength: 0 is low, 3 nearly complete."""
    return sum(strength >= bound for bound in _BANDS)


def is_another_strength(before: float, after: float) -> bool:
    """Return whether the other strength of a trait, value or capability is worth a proposal: it differs enough, and is of another band."""
    return band(before) != band(after) and not is_slight_change(before, after)


def is_slight_change(before: float, after: float) -> bool:
    """Return whether two strengths differ by less than MIN_STRENGTH_CHANGE; rounded, as 0.7 - 0.65 is less than 0.05 in floats."""
    return round(abs(before - after), 6) < MIN_STRENGTH_CHANGE


def tendencies(actions: Sequence[str], learned: Mapping[str, Sequence[int]]) -> tuple[Tendency, ...]:
    """Return the tendencies of an agent, the surest first.

    `actions` are those of the latest experiences, `learned` the attempts and successes of each action.
    """
    found = [*_traits(actions), *_capabilities(learned)]
    return tuple(sorted(found, key=lambda tendency: (-tendency.confidence, tendency.name)))


def _traits(actions: Sequence[str]) -> list[Tendency]:
    signs = Counter(TRAITS[action] for action in actions if action in TRAITS)
    return [
        Tendency(
            kind=AspectKind.TRAIT,
            name=name,
            strength=round(count / len(actions), 2),
            confidence=_confidence(count, MIN_SIGNS),
        )
        for name, count in signs.items()
        if count >= MIN_SIGNS and count >= MIN_SHARE * len(actions)
    ]


def _capabilities(learned: Mapping[str, Sequence[int]]) -> list[Tendency]:
    return [
        Tendency(
            kind=AspectKind.CAPABILITY,
            name=action.replace("_", " "),
            strength=round(successes / attempts, 2),
            confidence=_confidence(attempts, MIN_ATTEMPTS),
        )
        for action, (attempts, successes) in learned.items()
        if attempts >= MIN_ATTEMPTS and successes >= MIN_SUCCESS * attempts and action != "rest"
    ]


def _confidence(count: int, fewest: int) -> float:
    return round(1 - (1 - _LEAST_CONFIDENCE) * fewest / count, 3)
