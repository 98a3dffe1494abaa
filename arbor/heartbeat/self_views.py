"""What an agent sees of itself at a heartbeat: parts of its situation."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from arbor.heartbeat.seen import Fraction, Seen
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.drives import Drive
from arbor.selves.proposals import ProposalKind
from arbor.selves.values import AspectKind, BeliefCategory, Standing


class AspectView(Seen):
    """One side of who the agent takes itself to be."""

    id: str
    kind: AspectKind
    content: str
    status: Standing = Standing.HELD


class BeliefView(Seen):
    """Something the agent holds to be so."""

    id: str
    category: BeliefCategory
    statement: str
    confidence: Fraction
    status: Standing = Standing.HELD


class DriveView(Seen):
    """A drive and how high it stands."""

    name: Drive
    level: Fraction
    urgent: bool = False


class MoodView(Seen):
    """How the agent feels: valence from -1, bad, to 1, good; arousal from 0, still, to 1, stirred."""

    valence: Annotated[float, Field(ge=-1, le=1)] = 0.0
    arousal: Fraction = 0.0


class CrossedView(Seen):
    """A boundary that something crosses: `why` says what in it, `about` names the percept, if it was one."""

    boundary: str
    response: BoundaryResponse
    description: str = ""
    why: str
    about: str = ""
    #: Words that a decision owes the boundary if it is negotiable; none if it is not.
    words_wanted: int | None = None


class ProposalView(Seen):
    """A change to the self that waits for a decision; `evidence` counts the memories it rests on."""

    id: str
    kind: ProposalKind
    content: str
    confidence: Fraction
    deferrals: int = 0
    evidence: int = 0


class PreferenceView(Seen):
    """A way the agent wants to behave."""

    key: str
    value: str


class CapabilityView(Seen):
    """How often an action was tried, and how often it worked."""

    action: str
    attempts: int
    successes: int

    @property
    def share(self) -> float:
        """Return the share that worked."""
        return self.successes / self.attempts if self.attempts else 0.0


class ExperienceView(Seen):
    """What an action taught."""

    action: str
    about: str = ""
    outcome: str
    lesson: str
    tick: int = 0


class PeerView(Seen):
    """What the agent thinks of somebody it deals with; `trust` is that of now."""

    name: str
    #: Whether something of theirs is among the percepts.
    present: bool = False
    trust: Fraction
    competence: Fraction = 0.5
    reliability: Fraction = 0.5
    interests: list[str] = []
    interactions: int = 0


class ContradictionView(Seen):
    """A memory that speaks against something the agent believes, and that it has not faced yet."""

    belief_id: str
    statement: str
    memory_id: str
    content: str
