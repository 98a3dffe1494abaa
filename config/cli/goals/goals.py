"""Manage the goals of an agent."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from rich.markup import escape

from apps.goals.models import Goal
from apps.goals.services.acts import GoalEdit, add_goal, change_goal
from arbor.goals.values import GoalLayer, GoalSource, GoalState, GoalType
from config.cli.goals.views import goal_details, goal_rows, goal_table, goal_text
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_goal
from config.cli.kit.output import short
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction


@in_agent_transaction
def list_goals(agent: ChosenAgent, *, with_closed: bool, limit: int) -> Output:
    """List an agent's open goals, the most important first."""
    rows = goal_rows(agent.id, with_closed=with_closed, most=limit + 1)
    more = len(rows) > limit
    title = f"The first {limit}; there are more: --limit" if more else None
    empty = f'{agent.name} has no open goal. Add one: [bold]arbor goal add {agent.argument} "TITLE"[/bold]'
    return Output(
        {"agent": agent.name, "more": more, "goals": rows[:limit]},
        text=goal_table(rows[:limit], title=title) if rows else empty,
    )


@in_agent_transaction
def add(
    agent: ChosenAgent,
    *,
    title: str,
    description: str,
    layer: str,
    kind: str,
    priority: int,
    source: str,
    state: str | None,
    parent: str | None,
    deadline: datetime | None,
    blocked_by: str,
) -> Output:
    """Add a goal; when the wanted state is full, the goal gets the next lower state with room."""
    created = add_goal(
        agent_id=agent.id,
        title=title,
        description=description,
        layer=GoalLayer(layer),
        type=GoalType(kind),
        priority=priority,
        source=GoalSource(source),
        state=GoalState(state) if state else None,
        parent_id=find_goal(agent, parent).id if parent is not None else None,
        deadline=deadline,
        blocked_by=blocked_by,
        actor=actor(),
    )
    return _goal_output(agent, created, f"is {created.state}")


@in_agent_transaction
def move(agent: ChosenAgent, *, goal_name: str, state: str, reason: str) -> Output:
    """Move a goal to another state: active, queued, backburner, completed, abandoned."""
    moved = _change_goal(agent, goal_name, state=GoalState(state), reason=reason)
    return _goal_output(agent, moved, f"is {moved.state}")


@in_agent_transaction
def add_note(agent: ChosenAgent, *, goal_name: str, text: str, progress: float | None) -> Output:
    """Add a progress note to a goal; a goal whose progress is 1 is completed."""
    if not text.strip() and progress is None:
        raise click.UsageError("there is nothing to note: say how the goal is going, or give --progress")
    changed = _change_goal(agent, goal_name, note=text, fraction=progress)
    return _goal_output(agent, changed, f"is {changed.state}, {changed.fraction:.0%} done")


@in_agent_transaction
def edit(
    agent: ChosenAgent,
    *,
    goal_name: str,
    parent: str | None,
    no_parent: bool,
    deadline: datetime | None,
    no_deadline: bool,
) -> Output:
    """Change a goal's parent and deadline."""
    if parent is None and deadline is None and not (no_parent or no_deadline):
        raise click.UsageError("say what to change: --parent, --no-parent, --deadline or --no-deadline")
    if (parent is not None and no_parent) or (deadline and no_deadline):
        raise click.UsageError("give a parent or none, and a deadline or none, not both")
    changes: dict[str, Any] = {}
    if parent is not None or no_parent:
        changes["parent_id"] = find_goal(agent, parent).id if parent is not None else None
    if deadline or no_deadline:
        changes["deadline"] = deadline
    changed = _change_goal(agent, goal_name, **changes)
    return _goal_output(agent, changed, f"is {changed.state}")


@in_agent_transaction
def block(agent: ChosenAgent, *, goal_name: str, by: str, by_goal: str | None) -> Output:
    """Block a goal by something it waits for; the agent reads it."""
    if bool(by.strip()) == (by_goal is not None):
        raise click.UsageError("say what it waits for: --by TEXT or --by-goal GOAL")
    blocker = find_goal(agent, by_goal) if by_goal is not None else None
    changed = _change_goal(agent, goal_name, blocked_by=str(blocker.id) if blocker else by)
    return _goal_output(agent, changed, f"waits for {escape(str(blocker or by))}")


@in_agent_transaction
def unblock(agent: ChosenAgent, *, goal_name: str) -> Output:
    """Unblock a goal."""
    changed = _change_goal(agent, goal_name, blocked_by="")
    return _goal_output(agent, changed, "waits for nothing")


@in_agent_transaction
def show_goal(agent: ChosenAgent, *, goal_name: str) -> Output:
    """Show a goal with its parts, plans, memories and satisfaction."""
    details = goal_details(find_goal(agent, goal_name), agent_name=agent.name)
    return Output(details, text=goal_text(details))


def _change_goal(agent: ChosenAgent, goal_name: str, **changes: Any) -> Goal:
    goal = find_goal(agent, goal_name)
    return change_goal(agent_id=agent.id, goal_id=goal.id, change=GoalEdit(**changes), actor=actor())


def _goal_output(agent: ChosenAgent, changed: Goal, state: str) -> Output:
    return Output(
        {
            "id": changed.id,
            "agent": agent.name,
            "title": changed.title,
            "state": changed.state,
            "fraction": changed.fraction,
        },
        text=f"[bold]{escape(changed.title)}[/bold] ({short(changed.id)}) {state}.",
    )
