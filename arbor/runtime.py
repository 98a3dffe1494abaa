"""The runtime of agents as a port: what a program that embeds Arbor calls (seed 003, section 4), and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from arbor.agents.genome import AgentGenome
from arbor.agents.lifecycle import AgentStatus
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.goal_views import GoalView, IntentView, IssueView, PlanView
from arbor.heartbeat.self_views import (
    AspectView,
    BeliefView,
    CapabilityView,
    ContradictionView,
    DriveView,
    ExperienceView,
    MoodView,
    PeerView,
    PreferenceView,
    ProposalView,
)
from arbor.heartbeat.situation import PerceptView
from arbor.heartbeat.working_memory import WorkingMemory

#: An agent's id, as a UUID or its text, its public id (`agent_…`), or its name in its tenant, in whatever case.
type AgentRef = UUID | str


@dataclass(frozen=True, kw_only=True)
class ActionTaken:
    """An action that a tick carried out, and what came of it (seed 003, 3.12: AgentAction)."""

    action: str
    params: dict[str, Any]
    reasoning: str
    #: An `arbor.heartbeat.results.ActionOutcome`.
    outcome: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class Tick:
    """One heartbeat, as the one who asked for it sees it."""

    heartbeat_id: UUID
    #: Counts from 1; 0 for one that was skipped.
    number: int
    #: done, failed or skipped; `reason` says why it was not done.
    status: str
    reason: str
    mode: str
    narrative: str
    actions: Sequence[ActionTaken]

    @property
    def action(self) -> ActionTaken | None:
        """Return the first action that was carried out; None for a tick that did nothing (a NOP)."""
        return self.actions[0] if self.actions else None


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """A cycle that has been run: its ticks in order, and why it ended."""

    ticks: Sequence[Tick]
    allocated: int
    left: int
    #: `used up`, `nothing left to do: …`, `no longer active: …`, `cannot beat now: …` (a fleet has it beat), how the
    #: day's budget stands, or why the last beat failed before it did anything: that one is not charged.
    ended: str

    @property
    def used(self) -> int:
        """Return how many ticks of the budget were used."""
        return self.allocated - self.left


@dataclass(frozen=True, kw_only=True)
class NewGoal:
    """A goal that is given to an agent. `parent_id` is an open goal of the same agent."""

    title: str
    description: str = ""
    layer: GoalLayer = GoalLayer.OBJECTIVE
    source: GoalSource = GoalSource.EXTERNAL
    #: Where it starts; None: as its source says.
    state: GoalState | None = None
    parent_id: UUID | None = None
    deadline: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class GoalStack:
    """An agent's open goals, most important first, by layer (seed 003, 3.7)."""

    aspirations: Sequence[GoalView]
    objectives: Sequence[GoalView]
    tasks: Sequence[GoalView]

    @property
    def all(self) -> Sequence[GoalView]:
        """Return every open goal, the long-term ones first."""
        return (*self.aspirations, *self.objectives, *self.tasks)


@dataclass(frozen=True, kw_only=True)
class Peer:
    """What an agent thinks of another; each figure from 0 to 1 (seed 003, 3.6)."""

    name: str
    agent_id: UUID | None
    competence: float
    reliability: float
    interests: Sequence[str]
    interactions: int
    successes: int
    last_at: datetime | None
    #: As of now (10.3); 0.5 without any dealings.
    trust: float


@dataclass(frozen=True, kw_only=True)
class LoadedAgent:
    """An agent's full state now: what its next heartbeat would see of it, with as many of each as a prompt shows."""

    id: UUID
    public_id: str
    name: str
    tenant: str
    status: AgentStatus
    genome: AgentGenome | None
    allowed_actions: Sequence[str]
    model: str
    energy: float
    ticks_left: int
    beats: int
    nops: int
    working_memory: WorkingMemory
    goals: Sequence[GoalView]
    intents: Sequence[IntentView]
    #: Those that are carried out, and drafts.
    plans: Sequence[PlanView]
    #: What a look at the goals finds.
    issues: Sequence[IssueView]
    aspects: Sequence[AspectView]
    beliefs: Sequence[BeliefView]
    contradictions: Sequence[ContradictionView]
    drives: Sequence[DriveView]
    mood: MoodView
    #: Beats since it met something new.
    stale_beats: int
    peers: Sequence[PeerView]
    preferences: Sequence[PreferenceView]
    capabilities: Sequence[CapabilityView]
    experiences: Sequence[ExperienceView]
    #: Those that wait for a decision.
    proposals: Sequence[ProposalView]
    #: What has reached it and waits for its next beat.
    percepts: Sequence[PerceptView]


class AgentRuntime(Protocol):
    """Makes agents live, within one tenant. Every method raises NotFound for an agent that this tenant does not have."""

    def spawn(
        self,
        *,
        name: str,
        template: str,
        genome: AgentGenome | None = None,
        ticks: int = 0,
        parent: AgentRef | None = None,
        interval: timedelta | None = None,
        model: str = "",
    ) -> UUID:
        """Create an agent and start it; a genome goes before the template's, `ticks` are allocated to it.

        Raises Invalid, AlreadyExists for the name, and NotFound for the template or parent.
        """
        ...

    def tick(self, agent: AgentRef) -> Tick:
        """Let it beat once, here and now. Raises AgentDormant, AgentNotActive, and TransitionIllegal while it beats."""
        ...

    def allocate_ticks(self, agent: AgentRef, ticks: int) -> int:
        """Give it a cycle's ticks in place of what was left of the last one, and return them (seed 003, 5: TICK_ALLOC)."""
        ...

    def run_cycle(self, agent: AgentRef, tick_budget: int | None = None) -> Cycle:
        """Let it beat until its ticks are used up or nothing is left to do; without a budget, those allocated before.

        An action costs one tick, and so does a beat that does nothing; one that fails because no model can be asked costs
        none, and ends the cycle. Raises BudgetExhausted when there is no tick, and what `tick` raises for the first beat;
        a cycle that is refused leaves the ticks as they were.
        """
        ...

    def status(self, agent: AgentRef) -> AgentStatus:
        """Return its status."""
        ...

    def set_status(self, agent: AgentRef, status: AgentStatus) -> AgentStatus:
        """Bring it to that status, by the one verb that leads there: an active agent to dormant, too.

        Raises TransitionIllegal when none does, and Invalid for what is no status.
        """
        ...

    def inject_goal(self, agent: AgentRef, goal: NewGoal) -> UUID:
        """Give it a goal. Raises GoalStackFull, AlreadyExists for a title that an open goal has, and Invalid."""
        ...

    def goals(self, agent: AgentRef) -> GoalStack:
        """Return its open goals."""
        ...

    def active_plan(self, agent: AgentRef) -> PlanView | None:
        """Return the plan it carries out for its most important goal that has one."""
        ...

    def peer_model(self, agent: AgentRef, peer: AgentRef) -> Peer | None:
        """Return what it thinks of another agent, or of a person by name; None for one it has never dealt with.

        `peer` is an agent's id in any of its forms, or the name by which it knows them. Raises Invalid for a name that
        stands for several, by their case.
        """
        ...

    def flush_memory(self, agent: AgentRef, working_memory: WorkingMemory | None = None) -> int:
        """Store its working memory, as given or as it stands, and return its size in bytes.

        Everything else is stored when it happens. Raises WorkingMemoryOverflow above 64 KB, and TransitionIllegal while a
        heartbeat runs, which would store its own.
        """
        ...

    def load(self, agent: AgentRef) -> LoadedAgent:
        """Return its full state."""
        ...

    def nop_count(self, agent: AgentRef) -> int:
        """Return how many heartbeats in a row brought no usable reply; at 10 it falls asleep."""
        ...
