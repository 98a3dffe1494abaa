"""Read an agent's page by a fixed number of queries; nothing changes, not even the counts of accesses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from django.db.models import Case, Count, Q, When
from django.utils.dateparse import parse_datetime

from apps.agents.models import Agent, AgentKey, AgentState, HeartbeatSchedule, Percept
from apps.agents.services.energy import energy_terms_of
from apps.agents.services.publication import card_path
from apps.authority.models import TrustScore
from apps.authority.services.explanations import action_names
from apps.authority.services.trust_tiers import read_trust_score
from apps.console.access import Right
from apps.console.acts import Act, identity_acts, possible_acts, publication_act
from apps.console.pages.agent_panels import MemoryPanel, SchedulePanel, read_memory_panel, read_schedule_panel
from apps.console.pages.fleet import last_heartbeats
from apps.console.pages.models import model_in_use
from apps.contacts.models import OutboxMessage
from apps.goals.models import Goal, Intent
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.reports.status import DayFigures, day_figures
from apps.memories.models import Memory
from apps.selves.models import Proposal
from apps.selves.services.inner_state import InnerState, read_inner_state
from apps.selves.services.self_knowledge import system_prompt_of
from arbor.agents.keys import KeyPurpose
from arbor.goals.intents import IntentStatus
from arbor.goals.values import GoalState
from arbor.models.handles import is_reflex
from arbor.selves.drives import URGENT
from arbor.selves.proposals import MAX_PENDING, ProposalStatus

STRIP_CELLS = 60
HEARTBEATS_LISTED = 8
MEMORIES_LISTED = 8
GOALS_LISTED = 60
GOALS_IN_COLUMN = 6
INTENTS_LISTED = 12
PERCEPTS_LISTED = 5
MESSAGES_LISTED = 5

#: Radius of the gauge, a half circle, and the length of its arc, of which a share is filled.
GAUGE_RADIUS = 42.0
GAUGE_LENGTH = GAUGE_RADIUS * math.pi


@dataclass(frozen=True, kw_only=True)
class ThoughtRow:
    """A thought with its time."""

    text: str
    at: datetime | None


@dataclass(frozen=True, kw_only=True)
class WorkingMemoryView:
    """The working memory of an agent, the latest entries first."""

    thoughts: Sequence[ThoughtRow] = ()
    concerns: Sequence[str] = ()
    curiosity: Sequence[str] = ()
    engagement: float | None = None

    @property
    def empty(self) -> bool:
        """Return whether thoughts, concerns and questions are all empty."""
        return not (self.thoughts or self.concerns or self.curiosity)


@dataclass(frozen=True, kw_only=True)
class GoalColumn:
    """The goals of one state: their number, and the latest of them, at most GOALS_IN_COLUMN."""

    state: str
    count: int
    goals: Sequence[Goal]

    @property
    def more(self) -> int:
        """Return the number of goals that are not shown."""
        return self.count - len(self.goals)


@dataclass(frozen=True, kw_only=True)
class GoalTreeRow:
    """A goal in the tree of goals, with its depth."""

    goal: Goal
    depth: int


@dataclass(frozen=True, kw_only=True)
class AgentOverview:
    """The data of the parts of an agent's page that update."""

    agent: Agent
    state: AgentState | None
    schedule: HeartbeatSchedule | None
    model: str
    own_model: bool
    strip: Sequence[Heartbeat]
    heartbeats: Sequence[Heartbeat]
    working_memory: WorkingMemoryView
    energy: float
    energy_max: float
    figures: DayFigures
    gauge: float
    gauge_length: float = round(GAUGE_LENGTH, 1)

    @property
    def is_reflex(self) -> bool:
        """Return whether the reflex policy decides for the agent, not a language model."""
        return is_reflex(self.model)

    @property
    def last(self) -> Heartbeat | None:
        """Return the last heartbeat."""
        return self.strip[-1] if self.strip else None

    @property
    def in_conversation(self) -> bool:
        """Return whether a conversation suspends the schedule."""
        paused_until = self.schedule.paused_until if self.schedule else None
        return paused_until is not None and paused_until > datetime.now(UTC)

    @property
    def last_mode(self) -> str:
        """Return the mode of the last heartbeat that chose one: a skipped heartbeat has none; empty if none did."""
        return next((heartbeat.mode for heartbeat in reversed(self.strip) if heartbeat.mode), "")


@dataclass(frozen=True, kw_only=True)
class IdentityPanel:
    """An agent's current signing key and endorsement, as stored; heartbeats verify them."""

    public_key_hex: str = ""
    #: The number of the key in the agent's chain.
    number: int = 0
    #: An `EndorsementStatus`; empty for an agent that is not endorsed.
    status: str = ""
    reason: str = ""
    #: The time of the latest statement about the agent.
    at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class AgentPage(AgentOverview):
    """The data of an agent's page."""

    identity: IdentityPanel
    #: The agent's trust tier and score.
    trust: TrustScore
    #: The names of the actions that the agent has a grant of.
    actions: Sequence[str]
    columns: Sequence[GoalColumn]
    tree: Sequence[GoalTreeRow]
    intents: Sequence[Intent]
    percepts: Sequence[Percept]
    memories: Sequence[Memory]
    memory: MemoryPanel
    inner: InnerState | None
    schedule_panel: SchedulePanel
    messages: Sequence[OutboxMessage]
    system_prompt: str
    acts: Sequence[Act]
    publication_act: Act | None
    identity_acts: Sequence[Act]
    #: Empty: the agent is not published.
    card_path: str
    #: The pending proposals, the latest first.
    proposals: Sequence[Proposal]
    may_approve: bool

    #: The level from which a drive is urgent.
    urgent_from = URGENT


def read_agent_overview(agent: Agent) -> AgentOverview:
    """Read the parts that update, in six queries at most; the agent was read with its state, schedule, policy and tenant."""
    state: AgentState | None = getattr(agent, "state", None)
    energy = state.energy if state else 0.0
    energy_max = energy_terms_of(agent).maximum
    return AgentOverview(
        agent=agent,
        state=state,
        schedule=getattr(agent, "schedule", None),
        model=model_in_use(agent.model),
        own_model=bool(agent.model),
        strip=last_heartbeats([agent.id], limit=STRIP_CELLS).get(agent.id, []),
        heartbeats=_latest_heartbeats(agent),
        working_memory=_working_memory(state.working_memory if state else {}),
        energy=energy,
        energy_max=energy_max,
        figures=day_figures(agent.id),
        gauge=round(min(max(energy / energy_max, 0.0), 1.0) * GAUGE_LENGTH, 1),
    )


def read_agent(agent: Agent, *, may_operate: bool, may_approve: bool, may_own: bool) -> AgentPage:
    """Read the agent's page in the current tenant; the agent was read with its state, schedule, policy and tenant."""
    overview = read_agent_overview(agent)
    state = overview.state
    goals = _goals(agent)
    memories = Memory.objects.filter(agent_id=agent.id)
    identity = _identity(agent)
    return AgentPage(
        **{part.name: getattr(overview, part.name) for part in fields(overview)},
        identity=identity,
        trust=read_trust_score(agent),
        actions=action_names(agent.id),
        columns=_columns(agent, goals),
        tree=_tree(goals),
        intents=list(
            Intent.objects.filter(
                agent_id=agent.id, status__in=[IntentStatus.PENDING, IntentStatus.LOCKED]
            ).order_by("id")[:INTENTS_LISTED]
        ),
        percepts=list(
            Percept.objects.filter(agent_id=agent.id, heartbeat__isnull=True).order_by("at", "id")[
                :PERCEPTS_LISTED
            ]
        ),
        memories=list(
            memories.defer("embedding", "lexical").order_by("-occurred_at", "-id")[:MEMORIES_LISTED]
        ),
        memory=read_memory_panel(agent.id),
        inner=read_inner_state(agent_id=agent.id, now=datetime.now(UTC)) if state else None,
        schedule_panel=read_schedule_panel(
            agent.id,
            notices=state.notices if state else [],
            idle_heartbeats=state.idle_heartbeats if state else 0,
        ),
        messages=list(
            OutboxMessage.objects.filter(agent_id=agent.id).order_by("-created_at", "-id")[:MESSAGES_LISTED]
        ),
        system_prompt=_system_prompt(agent),
        acts=possible_acts(agent.status) if may_operate else (),
        publication_act=publication_act(published=agent.published) if may_operate else None,
        identity_acts=[
            act
            for act in identity_acts(identity.status)
            if may_operate and (may_own or act.right is not Right.OWN)
        ],
        card_path=card_path(agent) if agent.published else "",
        proposals=list(
            Proposal.objects.filter(agent_id=agent.id, status=ProposalStatus.PENDING).order_by(
                "-created_at", "-id"
            )[:MAX_PENDING]
        ),
        may_approve=may_approve,
    )


def _latest_heartbeats(agent: Agent) -> list[Heartbeat]:
    return list(
        Heartbeat.objects.filter(agent_id=agent.id)
        .only(
            "tenant_id",
            "agent_id",
            "number",
            "status",
            "mode",
            "started_at",
            "own_ms",
            "narrative",
            "reason",
            "energy_start",
            "energy_end",
        )
        .order_by("-started_at")[:HEARTBEATS_LISTED]
    )


def _identity(agent: Agent) -> IdentityPanel:
    # Only the public half is read from the database.
    keys = AgentKey.objects.filter(agent_id=agent.id, purpose=KeyPurpose.SIGNING).order_by("-number")
    endorsement = (f"agent__endorsement__{field}" for field in ("status", "reason", "at"))
    row = keys.values_list("public_key", "number", *endorsement).first()
    if row is None:
        return IdentityPanel()
    public_key, number, status, reason, at = row
    return IdentityPanel(
        public_key_hex=bytes(public_key).hex(), number=number, status=status or "", reason=reason or "", at=at
    )


def _goals(agent: Agent) -> list[Goal]:
    """Return the latest goals, at most GOALS_LISTED; the open ones, of which an agent has few, come first."""
    has_ended = Q(state__in=(GoalState.COMPLETED, GoalState.ABANDONED))
    return list(
        Goal.objects.filter(agent_id=agent.id)
        .only(
            "tenant_id",
            "title",
            "state",
            "layer",
            "source",
            "fraction",
            "deadline",
            "blocked_by",
            "agent_id",
            "parent_id",
        )
        .order_by(Case(When(has_ended, then=1), default=0), "-touched_at", "-id")[:GOALS_LISTED]
    )


def _tree(goals: Sequence[Goal]) -> list[GoalTreeRow]:
    """Return the goals that have parts, and their parts, each part below its parent."""
    known = {goal.id: goal for goal in goals}
    parts: dict[Any, list[Goal]] = {}
    for goal in goals:
        if goal.parent_id in known:
            parts.setdefault(goal.parent_id, []).append(goal)
    tree: list[GoalTreeRow] = []

    def grow(goal: Goal, depth: int) -> None:
        tree.append(GoalTreeRow(goal=goal, depth=depth))
        for part in sorted(parts.get(goal.id, ()), key=lambda goal_part: goal_part.id):
            grow(part, depth + 1)

    for goal in goals:
        if goal.id in parts and goal.parent_id not in known:
            grow(goal, 0)
    return tree


def _columns(agent: Agent, goals: Sequence[Goal]) -> list[GoalColumn]:
    counts: dict[str, int] = dict(Counter(goal.state for goal in goals))
    if len(goals) == GOALS_LISTED:
        states = Goal.objects.filter(agent_id=agent.id).order_by().values_list("state")
        counts = dict(states.annotate(Count("id")))
    shown = (GoalState.ACTIVE, GoalState.QUEUED, GoalState.BACKBURNER, GoalState.COMPLETED)
    return [
        GoalColumn(
            state=state,
            count=counts.get(state, 0),
            goals=[goal for goal in goals if goal.state == state][:GOALS_IN_COLUMN],
        )
        for state in (*shown, *((GoalState.ABANDONED,) if GoalState.ABANDONED in counts else ()))
    ]


def _working_memory(stored: Any) -> WorkingMemoryView:
    # Values of other versions of Arbor are skipped, so that the page opens in any case.
    if not isinstance(stored, dict):
        return WorkingMemoryView()
    thoughts = [thought for thought in _list(stored.get("thoughts")) if isinstance(thought, dict)]
    engagement = stored.get("engagement")
    return WorkingMemoryView(
        thoughts=[
            ThoughtRow(text=str(thought.get("text", "")), at=_time(thought.get("at")))
            for thought in reversed(thoughts)
        ],
        concerns=[str(line) for line in reversed(_list(stored.get("concerns")))],
        curiosity=[str(line) for line in reversed(_list(stored.get("curiosity")))],
        engagement=engagement if isinstance(engagement, int | float) else None,
    )


def _time(value: Any) -> datetime | None:
    try:
        return parse_datetime(str(value))
    except ValueError:
        # A day or an hour that does not exist.
        return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _system_prompt(agent: Agent) -> str:
    try:
        return system_prompt_of(agent)
    except ValueError as error:
        return f"The stored character cannot be read: {error}"
