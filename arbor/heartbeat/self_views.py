"""The parts of a situation about the self, and the base of all parts."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.drives import Drive
from arbor.selves.proposals import ProposalKind
from arbor.selves.values import AspectKind, BeliefCategory, Standing

Fraction = Annotated[float, Field(ge=0, le=1)]


class SituationPart(BaseModel):
    """A part of a situation. Unknown keys are ignored: another version of Arbor may resume a heartbeat."""

    model_config = ConfigDict(frozen=True)


class AspectView(SituationPart):
    """An aspect."""

    id: str
    kind: AspectKind
    content: str
    status: Standing = Standing.HELD


class BeliefView(SituationPart):
    """A belief."""

    id: str
    category: BeliefCategory
    statement: str
    confidence: Fraction
    status: Standing = Standing.HELD


class DriveView(SituationPart):
    """A drive and its level."""

    name: Drive
    level: Fraction
    urgent: bool = False


class MoodView(SituationPart):
    """The mood: valence -1 to 1, arousal 0 to 1."""

    valence: Annotated[float, Field(ge=-1, le=1)] = 0.0
    arousal: Fraction = 0.0


class BoundaryMatchView(SituationPart):
    """A boundary match: `why` names the matched words, `about` the percept, if any."""

    boundary: str
    response: BoundaryResponse
    description: str = ""
    why: str
    about: str = ""
    #: Words of reasoning that a negotiable boundary requires; None if it is not negotiable.
    words_wanted: int | None = None


class ProposalView(SituationPart):
    """A pending proposal; `evidence` counts memories."""

    id: str
    kind: ProposalKind
    content: str
    confidence: Fraction
    deferrals: int = 0
    evidence: int = 0


class PreferenceView(SituationPart):
    """A preference."""

    key: str
    value: str


class CapabilityView(SituationPart):
    """Attempts and successes of an action."""

    action: str
    attempts: int
    successes: int

    @property
    def share(self) -> float:
        return self.successes / self.attempts if self.attempts else 0.0


class ExperienceView(SituationPart):
    """An experience."""

    action: str
    about: str = ""
    outcome: str
    lesson: str
    tick: int = 0


class PeerView(SituationPart):
    """A peer; `trust` is the current one."""

    name: str
    #: Whether one of the percepts is theirs.
    present: bool = False
    trust: Fraction
    competence: Fraction = 0.5
    reliability: Fraction = 0.5
    interests: list[str] = []
    interactions: int = 0


class ContradictionView(SituationPart):
    """A memory that contradicts a belief, not settled yet."""

    belief_id: str
    statement: str
    memory_id: str
    content: str
