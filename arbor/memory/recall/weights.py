"""The weights of score components, and the parser of their setting. docs/explanation/recall.md explains their derivation."""

from __future__ import annotations

from dataclasses import dataclass, fields

from arbor.errors import ConfigurationInvalid
from arbor.setting_lists import parse_weights_of

#: The highest weight: a higher one would make all other components irrelevant.
HIGHEST_COMPONENT_WEIGHT = 10.0


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The weight of each score component, 0 (unused) to HIGHEST_COMPONENT_WEIGHT. Raises ConfigurationInvalid.

    The defaults were tuned by hand on five dialogs of LoCoMo, where each is a flat optimum; the weights of 0.05 decide
    between memories that fit equally.
    """

    words: float = 1.0
    meaning: float = 0.3
    #: The share of their fit that the turns just before and after contribute; the next ones contribute half as much.
    neighbours: float = 0.25
    #: Added where the turn before is a question, which this turn probably answers.
    answer: float = 0.25
    #: The share of its fit that a memory contributes to the closest of its neighborhood; by a relation alone 0.56 of that share,
    #: about as much as an adjacent turn gets (`neighbours`).
    association: float = 0.5
    #: The share of the fit of the best memory in the same session, and in the same episode.
    session: float = 0.5
    episode: float = 0.05
    speaker: float = 0.25
    time: float = 0.25
    recency: float = 0.05
    importance: float = 0.05
    trust: float = 0.05
    #: Activation, and congruence with the agent's mood.
    activation: float = 0.05
    mood: float = 0.05

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value <= HIGHEST_COMPONENT_WEIGHT:
                raise ConfigurationInvalid(
                    f"the weight of {field.name} must be a number from 0 to {HIGHEST_COMPONENT_WEIGHT:g}, got {value:g}"
                )


DEFAULT_WEIGHTS = Weights()
WEIGHT_NAMES = tuple(field.name for field in fields(Weights))


def parse_weights(text: str) -> Weights:
    """Parse weights such as `association=0.1, mood=0`; other weights have their defaults. Raises ConfigurationInvalid."""
    return parse_weights_of(
        text, setting="ARBOR_RECALL_WEIGHTS", default=DEFAULT_WEIGHTS, highest=HIGHEST_COMPONENT_WEIGHT
    )
