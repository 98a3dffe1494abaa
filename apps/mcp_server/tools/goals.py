"""List, add and update goals."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from apps.agents.services.lookup import agent_by_id, genome_of
from apps.goals.models import Goal
from apps.goals.services import acts
from apps.goals.services.acts import GoalEdit, change_goal
from apps.heartbeats.services.situations.goal_situation import goal_views
from apps.mcp_server.callers import NAME_SHOWN, CalledAgent, ToolContext, called_agent
from apps.mcp_server.definitions import AgentParam, ToolResult
from apps.mcp_server.tools.memories import Share
from arbor.clock import to_utc
from arbor.errors import Invalid, NotFound
from arbor.goals.values import (
    DESCRIPTION_LENGTH,
    NOTE_LENGTH,
    TITLE_LENGTH,
    GoalLayer,
    GoalSource,
    GoalState,
    GoalType,
    text_key,
)
from arbor.heartbeat.views import GoalView
from arbor.ids import read_id

#: The most closed goals of one answer.
MAX_CLOSED = 50


class GoalLine(ToolResult):
    """A goal."""

    id: UUID
    title: str
    description: str
    state: GoalState
    layer: GoalLayer
    type: GoalType
    source: GoalSource
    fraction: float = Field(description="Progress, 0 to 1.")
    priority: float | None = Field(description="Computed; none for a closed goal.")
    deadline: datetime | None
    notes: list[str]
    flags: list[str]
    blocked_by: str


class GoalList(ToolResult):
    """The goals of an agent, the most important first."""

    agent: str
    goals: list[GoalLine]
    more: bool = Field(description="With `closed`: whether there are more closed goals than these.")


class ChangedGoal(ToolResult):
    """A goal after a change."""

    id: UUID
    agent: str
    title: str
    state: GoalState
    fraction: float


def list_goals(
    context: ToolContext,
    agent: AgentParam = None,
    closed: Annotated[
        bool, Field(description="Also list the latest goals that were completed or abandoned, 50 at most.")
    ] = False,
) -> GoalList:
    """List an agent's goals with their progress and notes, the most important first."""
    called = called_agent(context, agent)
    with called.transaction():
        genome = genome_of(agent_by_id(called.id))
        views = goal_views(
            agent_id=called.id, traits=genome.traits if genome else None, now=datetime.now(UTC)
        )
        goals = [_open_goal(view) for view in views]
        ended: list[Goal] = []
        if closed:
            states = [state for state in GoalState if not state.is_open]
            rows = Goal.objects.filter(agent_id=called.id, state__in=states).order_by("-touched_at", "-id")
            ended = list(rows[: MAX_CLOSED + 1])
    goals += [_closed_goal(row) for row in ended[:MAX_CLOSED]]
    return GoalList(agent=called.name, goals=goals, more=len(ended) > MAX_CLOSED)


def add_goal(
    context: ToolContext,
    title: Annotated[str, Field(min_length=1, max_length=TITLE_LENGTH)],
    agent: AgentParam = None,
    description: Annotated[
        str, Field(max_length=DESCRIPTION_LENGTH, description="How to recognize that the goal is reached.")
    ] = "",
    layer: GoalLayer = GoalLayer.OBJECTIVE,
    state: Annotated[
        GoalState | None, Field(description="Active, queued or backburner; none: active if there is room.")
    ] = None,
    deadline: datetime | None = None,
) -> ChangedGoal:
    """Give an agent a goal. Where the wanted state is full, the goal gets the next lower state with room.

    An agent has each open title once; it has at most three active goals and ten queued ones.
    """
    called = called_agent(context, agent)
    with called.transaction():
        goal = acts.add_goal(
            agent_id=called.id,
            title=title,
            description=description,
            layer=layer,
            source=GoalSource.USER_REQUEST,
            state=state,
            deadline=to_utc(deadline) if deadline else None,
            actor=called.actor,
        )
        return _changed_goal(called, goal)


def update_goal(
    context: ToolContext,
    goal: Annotated[str, Field(description="The goal's id or its title.")],
    agent: AgentParam = None,
    note: Annotated[
        str, Field(max_length=NOTE_LENGTH, description="Progress in words, added to the goal's notes.")
    ] = "",
    progress: Annotated[Share | None, Field(description="From 0 to 1; 1 completes it.")] = None,
    state: Annotated[GoalState | None, Field(description="The state to move it to.")] = None,
    reason: Annotated[
        str,
        Field(
            max_length=acts.REASON_LENGTH,
            description="The reason of a new state; required to abandon a goal.",
        ),
    ] = "",
) -> ChangedGoal:
    """Record the progress of an agent's goal, or move it to another state. A closed goal stays closed."""
    if not note.strip() and progress is None and state is None:
        raise Invalid("there is nothing to change: give a note, a progress or a state")
    called = called_agent(context, agent)
    with called.transaction():
        row = _find_goal(called, goal)
        change = GoalEdit(note=note.strip(), fraction=progress, state=state, reason=reason.strip())
        if state == row.state:
            # A model may name the goal's present state. That is no move, and a reason without a move is refused unless full progress
            # completes the goal.
            change = replace(change, state=None, reason=change.reason if progress == 1 else "")
        if change != GoalEdit():
            row = change_goal(agent_id=called.id, goal_id=row.id, change=change, actor=called.actor)
        return _changed_goal(called, row)


def _find_goal(called: CalledAgent, named: str) -> Goal:
    """Return the agent's goal by id or title, an open one before a closed one. Raises NotFound, and Invalid for several."""
    rows = list(Goal.objects.filter(agent_id=called.id))
    goal_id = read_id(named)
    matching = [row for row in rows if row.id == goal_id or text_key(row.title) == text_key(named)]
    matching = [row for row in matching if GoalState(row.state).is_open] or matching
    if not matching:
        raise NotFound(f"{called.name} has no goal {named[:NAME_SHOWN]!r}; list_goals shows those there are")
    if len(matching) > 1:
        ids = ", ".join(str(row.id) for row in matching)
        raise Invalid(
            f"{len(matching)} goals have the title {named[:NAME_SHOWN]!r}: give one of the ids {ids}"
        )
    return matching[0]


def _changed_goal(called: CalledAgent, goal: Goal) -> ChangedGoal:
    return ChangedGoal(
        id=goal.id, agent=called.name, title=goal.title, state=GoalState(goal.state), fraction=goal.fraction
    )


def _open_goal(view: GoalView) -> GoalLine:
    return GoalLine(
        id=UUID(view.id),
        title=view.title,
        description=view.description,
        state=view.state,
        layer=view.layer,
        type=view.type,
        source=view.source,
        fraction=view.fraction,
        priority=round(view.priority, 4),
        deadline=view.deadline,
        notes=list(view.notes),
        flags=list(view.flags),
        blocked_by=view.blocked_by,
    )


def _closed_goal(goal: Goal) -> GoalLine:
    return GoalLine(
        id=goal.id,
        title=goal.title,
        description=goal.description,
        state=GoalState(goal.state),
        layer=GoalLayer(goal.layer),
        type=GoalType(goal.type),
        source=GoalSource(goal.source),
        fraction=goal.fraction,
        priority=None,
        deadline=goal.deadline,
        notes=[goal.abandonment_reason] if goal.abandonment_reason else [],
        flags=[],
        blocked_by="",
    )
