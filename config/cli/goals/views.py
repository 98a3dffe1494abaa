"""Goals and plans, as JSON and for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from rich.console import RenderableType
from rich.markup import escape

from apps.agents.services.lookup import agent_by_id, genome_of
from apps.goals.models import Goal, Plan
from apps.goals.services.goals import linked_memories, plans_of
from apps.heartbeats.services.situations.goal_situation import goal_views
from arbor.clock import SystemClock
from arbor.goals.conditions import unmet
from arbor.goals.values import GoalState
from arbor.quotations import counted
from config.cli.kit.columns import OutputColumn, table_of
from config.cli.kit.output import cut, short

#: The most memories, notes and intents of a goal that are shown.
_MAX_SHOWN = 20


def goal_rows(agent_id: UUID, *, with_closed: bool, most: int) -> list[dict[str, Any]]:
    """Return at most `most` goals as JSON: the open ones, the most important first, then closed ones if asked for, the latest first."""
    genome = genome_of(agent_by_id(agent_id))
    views = goal_views(agent_id=agent_id, traits=genome.traits if genome else None, now=SystemClock().now())
    rows = [view.model_dump(mode="json") for view in views[:most]]
    if with_closed:
        states = [state for state in GoalState if not state.is_open]
        closed = Goal.objects.filter(agent_id=agent_id, state__in=states).order_by("-touched_at", "-id")
        rows += [_closed_row(goal) for goal in closed[: most - len(rows)]]
    return rows


def _closed_row(goal: Goal) -> dict[str, Any]:
    return {
        "id": str(goal.id),
        "title": goal.title,
        "description": goal.description,
        "state": goal.state,
        "layer": goal.layer,
        "source": goal.source,
        "type": goal.type,
        "priority": None,
        "fraction": goal.fraction,
        "notes": [goal.abandonment_reason] if goal.abandonment_reason else [],
        "deadline": goal.deadline,
        "flags": [],
    }


def goal_table(rows: list[dict[str, Any]], *, title: str | None = None) -> RenderableType:
    """Return goals as a table for people."""
    return table_of(rows, GOAL_COLUMNS, title=title)


GOAL_COLUMNS = (
    OutputColumn("id", "goal", cell=short),
    *(OutputColumn(key, key) for key in ("state", "layer", "source")),
    OutputColumn("fraction", "done", cell=lambda fraction: f"{fraction:.0%}"),
    OutputColumn(
        "priority", "priority", cell=lambda priority: "-" if priority is None else f"{priority:.2f}"
    ),
    OutputColumn("title", "title"),
    OutputColumn("notes", "last note", cell=lambda notes: (notes or [""])[-1]),
    OutputColumn("flags", "flags", cell=", ".join),
)


def goal_details(goal: Goal, *, agent_name: str) -> dict[str, Any]:
    """Return a goal with everything that belongs to it, as JSON."""
    blocker = goal.blocked_by_goal
    return {
        "id": str(goal.id),
        "agent": agent_name,
        "title": goal.title,
        "description": goal.description,
        "state": goal.state,
        "layer": goal.layer,
        "source": goal.source,
        "type": goal.type,
        "stated_priority": goal.priority,
        "rule": goal.rule,
        "fraction": goal.fraction,
        "deadline": goal.deadline,
        "effort": goal.effort,
        "expected_reward": goal.expected_reward,
        "parent": goal.parent.title if goal.parent else None,
        "parts": [
            {"id": str(part.id), "title": part.title, "state": part.state, "fraction": part.fraction}
            for part in Goal.objects.filter(parent_id=goal.id).order_by("id")
        ],
        "blocked_by": blocker.title if blocker else goal.blocked_by,
        "notes": list(goal.notes.order_by("-at", "-id").values_list("text", flat=True)[:_MAX_SHOWN]),
        "plans": [plan_value(plan) for plan in plans_of(goal.id)],
        "intents": list(
            goal.intents.order_by("-id").values(
                "id", "action", "description", "status", "attempts", "ticks_used", "tick_limit", "last_error"
            )[:_MAX_SHOWN]
        ),
        "memories": [
            {"kind": link.kind, "memory_id": str(link.memory_id), "content": link.memory.content}
            for link in linked_memories(goal.id)[:_MAX_SHOWN]
        ],
        "satisfaction": goal.satisfactions.values(
            "outcome", "reward_actual", "reward_expected", "reputation_delta", "novelty", "effort", "at"
        ).first(),
    }


def plan_value(plan: Plan) -> dict[str, Any]:
    """Return a plan with its steps, as JSON."""
    return {
        "id": str(plan.id),
        "status": plan.status,
        "risk": plan.risk,
        "estimated_ticks": plan.estimated_ticks,
        "estimated_cost": plan.estimated_cost,
        "dependencies": plan.dependencies,
        "met": plan.met,
        "reason": plan.reason,
        "steps": [
            {
                "position": step.position,
                "action": step.action,
                "description": step.description,
                "precondition": step.precondition,
                "postcondition": step.postcondition,
                "estimated_ticks": step.estimated_ticks,
                "status": step.status,
            }
            for step in plan.steps.all()
        ],
    }


def goal_text(goal: dict[str, Any]) -> str:
    """Return a goal as text for a person."""
    return "\n".join(_goal_lines(goal))


def plan_lines(plan: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a plan for a person."""
    estimates = {
        "heartbeats": plan["estimated_ticks"],
        "energy": plan["estimated_cost"],
        "risk": plan["risk"],
    }
    about = "".join(f", {name} {value:g}" for name, value in estimates.items() if value is not None)
    yield f"[bold]plan[/bold] {short(plan['id'])}: {plan['status']}{about}" + _reason_suffix(plan["reason"])
    waiting = unmet(plan["dependencies"], plan["met"])
    for dependency in plan["dependencies"]:
        yield f"  {'waits for' if dependency in waiting else 'met:'} {escape(dependency)}"
    for step in plan["steps"]:
        yield f"  {step['position']}. {step['status']:<9} {escape(step['action'] + ': ' + step['description'])}"
        for name in ("precondition", "postcondition"):
            if step[name]:
                yield f"     {name}: {escape(step[name])}"


def _goal_lines(goal: dict[str, Any]) -> Iterator[str]:
    rule = f", by rule {goal['rule']}" if goal["rule"] else ""
    yield f"[bold]{escape(goal['title'])}[/bold] ({short(goal['id'])})"
    yield (
        f"{goal['state']}, {goal['layer']} to {goal['type']}, stated priority {goal['stated_priority']}, from {goal['source']}{rule},"
        f" {goal['fraction']:.0%} done, {counted(goal['effort'], 'heartbeat')}"
    )
    if goal["description"]:
        yield f"done when: {escape(goal['description'])}"
    for name in ("deadline", "parent", "blocked_by"):
        if goal[name]:
            yield f"{name.replace('_', ' ')}: {escape(str(goal[name]))}"
    for part in goal["parts"]:
        yield f"part: {escape(part['title'])} ({part['state']}, {part['fraction']:.0%})"
    for note in goal["notes"]:
        yield f"note: {escape(note)}"
    for plan in goal["plans"]:
        yield from plan_lines(plan)
    for intent in goal["intents"]:
        yield (
            f"intent: {intent['status']} {escape(intent['action'] + ': ' + intent['description'])}"
            + _reason_suffix(intent["last_error"])
        )
    for memory in goal["memories"]:
        yield f"{memory['kind']}: {escape(cut(memory['content'], 120))}"
    satisfaction = goal["satisfaction"]
    if satisfaction:
        yield (
            f"satisfaction: {satisfaction['outcome']}, {satisfaction['reward_actual']:.2f} of {satisfaction['reward_expected']:.2f} expected,"
            f" novelty {satisfaction['novelty']:.1f}, {counted(satisfaction['effort'], 'heartbeat')}"
        )


def _reason_suffix(reason: str) -> str:
    return f" ({escape(reason)})" if reason else ""
