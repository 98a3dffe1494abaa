"""Goals and plans as commands find and show them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich.markup import escape

from apps.goals.models import Goal, Plan
from apps.goals.services.links import linked_memories
from apps.goals.services.plans import plans_of
from arbor.errors import NotFound
from arbor.goals.values import GoalState, title_key
from config.cli.memory.listing import cut
from config.cli.tenancy import ChosenAgent

#: Of an id, so many last characters are shown and suffice where they are unique.
SHORT = 8
#: Memories of a goal that are shown.
_MEMORIES = 20


def find_goal(chosen: ChosenAgent, wanted: str) -> Goal:
    """Return the agent's goal of that title, id or end of an id; an open one goes before a closed one."""
    goals: list[Goal] = list(Goal.objects.filter(agent_id=chosen.id))
    key, end = title_key(wanted), wanted.strip().lower()
    by_title = [each for each in goals if title_key(each.title) == key]
    by_id = [each for each in goals if len(end) >= SHORT and str(each.id).endswith(end)]
    found = by_title or by_id
    found = [each for each in found if GoalState(each.state).is_open] or found
    if not found:
        raise NotFound(
            f"{chosen.name} has no goal {wanted!r}; `arbor goal list {chosen.name}` shows those there are"
        )
    if len(found) > 1:
        ids = ", ".join(str(each.id) for each in found)
        raise click.UsageError(f"{len(found)} goals answer to {wanted!r}: give one of the ids {ids}")
    return found[0]


def whole_goal(goal: Goal, *, agent_name: str) -> dict[str, Any]:
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
        "notes": list(goal.notes.order_by("-at").values_list("text", flat=True)[:_MEMORIES]),
        "plans": [plan_value(plan) for plan in plans_of(goal.id)],
        "intents": list(
            goal.intents.order_by("-id").values(
                "id", "action", "description", "status", "attempts", "ticks_used", "tick_limit", "last_error"
            )[:_MEMORIES]
        ),
        "memories": [
            {"kind": link.kind, "memory_id": str(link.memory_id), "content": link.memory.content}
            for link in linked_memories(goal.id)[:_MEMORIES]
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


def goal_lines(goal: dict[str, Any]) -> str:
    """Return a goal as a person reads it."""
    return "\n".join(_goal_lines(goal))


def plan_lines(plan: dict[str, Any]) -> Iterator[str]:
    """Yield a plan as a person reads it."""
    estimates = {
        "heartbeats": plan["estimated_ticks"],
        "energy": plan["estimated_cost"],
        "risk": plan["risk"],
    }
    about = "".join(f", {name} {value:g}" for name, value in estimates.items() if value is not None)
    yield f"[bold]plan[/bold] {plan['id'][-SHORT:]}: {plan['status']}{about}" + _because(plan["reason"])
    for need in plan["dependencies"]:
        yield f"  needs {escape(need)}"
    for step in plan["steps"]:
        yield f"  {step['position']}. {step['status']:<9} {escape(step['action'] + ': ' + step['description'])}"
        for name in ("precondition", "postcondition"):
            if step[name]:
                yield f"     {name}: {escape(step[name])}"


def _goal_lines(goal: dict[str, Any]) -> Iterator[str]:
    rule = f", by rule {goal['rule']}" if goal["rule"] else ""
    yield f"[bold]{escape(goal['title'])}[/bold] ({goal['id'][-SHORT:]})"
    yield (
        f"{goal['state']}, {goal['layer']}, from {goal['source']}{rule}, {goal['fraction']:.0%} done,"
        f" {goal['effort']} heartbeats"
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
            + _because(intent["last_error"])
        )
    for memory in goal["memories"]:
        yield f"{memory['kind']}: {escape(cut(memory['content'], 120))}"
    worth = goal["satisfaction"]
    if worth:
        yield (
            f"satisfaction: {worth['outcome']}, {worth['reward_actual']:.2f} of {worth['reward_expected']:.2f} expected,"
            f" novelty {worth['novelty']:.1f}, {worth['effort']} heartbeats"
        )


def _because(reason: str) -> str:
    return f" ({escape(reason)})" if reason else ""
