"""The port of the runtime for programs that embed Arbor (seed 003, section 4), and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from arbor.agents.energy import EnergyTerms
from arbor.agents.genome import AgentGenome
from arbor.agents.lifecycle import AgentStatus
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.situation import PerceptView
from arbor.heartbeat.views import (
    ActionTallyView,
    AspectView,
    BeliefView,
    ContradictionView,
    DriveView,
    ExperienceView,
    GoalView,
    IntentView,
    IssueView,
    MoodView,
    PeerView,
    PlanView,
    PreferenceView,
    ProposalView,
)
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.memory.values import MemoryType, Recalled

#: An agent's id, as a UUID or its text, its public id (`agent_…`), or its name in the tenant, regardless of case.
type AgentRef = UUID | str


@dataclass(frozen=True, kw_only=True)
class AgentAction:
    """An action of a heartbeat with its outcome (seed 003, 3.12: AgentAction)."""

    action: str
    params: dict[str, Any]
    reasoning: str
    #: An `arbor.heartbeat.results.ActionOutcome`.
    outcome: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class Tick:
    """The result of one heartbeat."""

    heartbeat_id: UUID
    #: The heartbeat's number from 1 on; 0 for a skipped one.
    number: int
    #: done, failed or skipped; `reason` explains the last two.
    status: str
    reason: str
    mode: str
    narrative: str
    actions: Sequence[AgentAction]

    @property
    def action(self) -> AgentAction | None:
        """Return the first action that was carried out; None for a heartbeat without an action (a NOP)."""
        return self.actions[0] if self.actions else None


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """A finished cycle: its heartbeats in order, and the reason of its end."""

    ticks: Sequence[Tick]
    allocated: int
    left: int
    #: `used up`, `nothing left to do: …`, `no longer active: …`, `cannot run now: …` (a worker runs a heartbeat of the agent),
    #: the state of the day's budget, or the reason why the last heartbeat failed before it did anything, which costs no tick.
    ended: str

    @property
    def used(self) -> int:
        """Return the number of ticks used."""
        return self.allocated - self.left


@dataclass(frozen=True, kw_only=True)
class NewGoal:
    """A goal to add to an agent. `parent_id` is an open goal of the same agent."""

    title: str
    description: str = ""
    layer: GoalLayer = GoalLayer.OBJECTIVE
    source: GoalSource = GoalSource.EXTERNAL
    #: The initial state; None: by the source.
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
    """An agent's model of a peer; competence, reliability and trust from 0 to 1 (seed 003, 3.6)."""

    name: str
    agent_id: UUID | None
    competence: float
    reliability: float
    interests: Sequence[str]
    interactions: int
    successes: int
    last_at: datetime | None
    #: The trust now (seed 003, 10.3); 0.5 without any dealings.
    trust: float


@dataclass(frozen=True, kw_only=True)
class LoadedAgent:
    """An agent's full current state, the input of its next heartbeat; lists are as long as a prompt shows them."""

    id: UUID
    public_id: str
    name: str
    tenant: str
    status: AgentStatus
    genome: AgentGenome | None
    allowed_actions: Sequence[str]
    model: str
    energy: float
    energy_terms: EnergyTerms
    ticks_left: int
    heartbeats: int
    nops: int
    working_memory: WorkingMemory
    goals: Sequence[GoalView]
    intents: Sequence[IntentView]
    #: Active plans and drafts.
    plans: Sequence[PlanView]
    #: The findings of a review of the goals.
    issues: Sequence[IssueView]
    aspects: Sequence[AspectView]
    beliefs: Sequence[BeliefView]
    contradictions: Sequence[ContradictionView]
    drives: Sequence[DriveView]
    mood: MoodView
    #: Heartbeats since the agent met something new.
    stale_heartbeats: int
    peers: Sequence[PeerView]
    preferences: Sequence[PreferenceView]
    capabilities: Sequence[ActionTallyView]
    experiences: Sequence[ExperienceView]
    #: Pending proposals.
    proposals: Sequence[ProposalView]
    #: Percepts that wait for the next heartbeat.
    percepts: Sequence[PerceptView]


@dataclass(frozen=True, kw_only=True)
class ConversationPrompt:
    """A person's turn, and the prompt by which a program asks a model of its own for the answer."""

    agent_id: UUID
    conversation_id: UUID
    turn_id: UUID
    #: The system prompt and the message of the user, with memories and the turns before.
    system: str
    user: str
    #: The JSON schema of the answer; a plain text is accepted too.
    schema: Mapping[str, Any]
    #: The recalled memories, [{id, score}].
    recalled: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class ConversationAnswer:
    """The agent's turn as it was stored."""

    conversation_id: UUID
    #: The answer; a refusal where a boundary withholds the model's text.
    text: str
    #: Boundaries that the answer touched: [{name, response, why, withheld}].
    boundaries: Sequence[Mapping[str, Any]]


class AgentRuntime(Protocol):
    """Runs the agents of one tenant. Every method raises NotFound for an agent that this tenant does not have."""

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
        """Create an agent and start it; `genome` overrides the template's, `ticks` are allocated to the agent.

        Raises Invalid, AlreadyExists for the name, and NotFound for the template or parent.
        """
        ...

    def tick(self, agent: AgentRef) -> Tick:
        """Run one heartbeat in this process. Raises AgentDormant, AgentNotActive, and TransitionIllegal during another one."""
        ...

    def allocate_ticks(self, agent: AgentRef, ticks: int) -> int:
        """Set an agent's ticks for a new cycle, and return them (seed 003, 5: TICK_ALLOC)."""
        ...

    def run_cycle(self, agent: AgentRef, tick_budget: int | None = None) -> Cycle:
        """Run heartbeats until the ticks are used up or nothing is left to do; by default with the ticks allocated before.

        An action costs one tick, and so does a heartbeat without an action. A heartbeat that fails because no model can be
        asked costs none, and ends the cycle. Raises BudgetExhausted without a tick, and the errors of `tick` for the first
        heartbeat; a refused cycle leaves the ticks unchanged.
        """
        ...

    def status(self, agent: AgentRef) -> AgentStatus:
        """Return an agent's status."""
        ...

    def set_status(self, agent: AgentRef, status: AgentStatus) -> AgentStatus:
        """Change an agent's status by the verb that leads to it, also from active to dormant.

        Raises TransitionIllegal without such a verb, and Invalid for an unknown status.
        """
        ...

    def inject_goal(self, agent: AgentRef, goal: NewGoal) -> UUID:
        """Add a goal to an agent. Raises GoalStackFull, AlreadyExists for the title of an open goal, and Invalid."""
        ...

    def goals(self, agent: AgentRef) -> GoalStack:
        """Return an agent's open goals."""
        ...

    def active_plan(self, agent: AgentRef) -> PlanView | None:
        """Return the active plan of the agent's most important goal that has one."""
        ...

    def peer_model(self, agent: AgentRef, peer: AgentRef) -> Peer | None:
        """Return an agent's model of another agent, or of a person by name; None for an unknown one.

        `peer` is an agent's id in any of its forms, or the name by which the agent knows the peer. Raises Invalid for a name
        that several peers have in different cases.
        """
        ...

    def flush_memory(self, agent: AgentRef, working_memory: WorkingMemory | None = None) -> int:
        """Store an agent's working memory, the given or the current one, and return its size in bytes.

        All other state is stored at each change. Raises WorkingMemoryOverflow above 64 KB, and TransitionIllegal during a
        heartbeat, which stores a working memory of its own.
        """
        ...

    def load(self, agent: AgentRef) -> LoadedAgent:
        """Return an agent's full state."""
        ...

    def remember(
        self,
        agent: AgentRef,
        content: str,
        *,
        type: MemoryType = MemoryType.SEMANTIC,  # noqa: A002 (the name that callers know)
        importance: float | None = None,
        occurred_at: datetime | None = None,
    ) -> UUID:
        """Store a memory and return its id; the same content again is one memory. Raises Invalid."""
        ...

    def recall(self, agent: AgentRef, query: str, *, limit: int = 10) -> Sequence[Recalled]:
        """Return an agent's memories about a query, the best first; they do not count as used. Raises Invalid."""
        ...

    def prepare_conversation(self, agent: AgentRef, text: str, *, person: str) -> ConversationPrompt:
        """Store a person's turn and return the prompt for a model of the program's own (seed 000, 7).

        Raises Invalid for text and person, and TransitionIllegal while the turn before is not answered.
        """
        ...

    def finalize_conversation(
        self, prompt: ConversationPrompt, reply: str, *, model: str = ""
    ) -> ConversationAnswer:
        """Store a model's answer after the check of boundaries, and remember both turns; `model` is `provider/model`.

        Raises ReplyInvalid for a text without an answer, Invalid for a name of a model that cannot be stored, and
        TransitionIllegal if the turn is answered already.
        """
        ...

    def nop_count(self, agent: AgentRef) -> int:
        """Return the number of heartbeats in a row without a usable reply; at 10 the agent becomes dormant."""
        ...
