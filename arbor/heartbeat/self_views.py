"""What an agent sees of itself at a heartbeat: parts of its situation."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.drives import Drive
from arbor.selves.proposals import ProposalKind

Share = Annotated[float, Field(ge=0, le=1)]


class SelfView(BaseModel):
    """A part of a situation. An unknown key is ignored: a beat may be resumed by an older or newer Arbor."""

    model_config = ConfigDict(frozen=True)


class DriveView(SelfView):
    """A drive and how high it stands."""

    name: Drive
    level: Share
    urgent: bool = False


class MoodView(SelfView):
    """How the agent feels: valence from -1, bad, to 1, good; arousal from 0, still, to 1, stirred."""

    valence: Annotated[float, Field(ge=-1, le=1)] = 0.0
    arousal: Share = 0.0


class CrossedView(SelfView):
    """A boundary that something crosses: `why` says what in it, `about` names the percept, if it was one."""

    boundary: str
    response: BoundaryResponse
    description: str = ""
    why: str
    about: str = ""
    #: Words that a decision owes the boundary if it is negotiable; none if it is not.
    words_wanted: int | None = None


class ProposalView(SelfView):
    """A change to the self that waits for a decision; `evidence` counts the memories it rests on."""

    id: str
    kind: ProposalKind
    content: str
    confidence: Share
    deferrals: int = 0
    evidence: int = 0


class PreferenceView(SelfView):
    """A way the agent wants to behave."""

    key: str
    value: str


class CapabilityView(SelfView):
    """How often an action was tried, and how often it worked."""

    action: str
    attempts: int
    successes: int

    @property
    def share(self) -> float:
        """Return the share that worked."""
        return self.successes / self.attempts if self.attempts else 0.0


class ExperienceView(SelfView):
    """What an action taught."""

    action: str
    about: str = ""
    outcome: str
    lesson: str
    tick: int = 0


class PeerView(SelfView):
    """What the agent thinks of somebody it deals with; `trust` is that of now."""

    name: str
    #: Whether something of theirs is among the percepts.
    present: bool = False
    trust: Share
    competence: Share = 0.5
    reliability: Share = 0.5
    interests: list[str] = []
    interactions: int = 0


class ContradictionView(SelfView):
    """A memory that speaks against something the agent believes, and that it has not faced yet."""

    belief_id: str
    statement: str
    memory_id: str
    content: str
