"""The goal that a command is about: how it is named, how it is found, and what was done to it put on record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import click

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.goals.models import Goal
from arbor.errors import NotFound
from arbor.goals.values import GoalState, title_key
from config.cli.tenancy import ChosenAgent, actor

#: Of an id, so many last characters are shown and suffice where they are unique.
SHORT = 8


def about_a_goal[Command: Callable[..., Any]](command: Command) -> Command:
    """Let a command take AGENT and GOAL, before the arguments of its own."""
    named = click.argument("goal_name", metavar="GOAL")(command)
    return click.argument("agent")(named)


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


def put_on_record(chosen: ChosenAgent, goal: Goal, message: str, **others: UUID) -> None:
    """Tell the audit what a person did to a goal; `others` are the ids of what else it was done to, by name."""
    detail = {"goal_id": goal.id, **others}
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor(),
        agent_id=chosen.id,
        message=message,
        detail={name: str(each) for name, each in detail.items()},
    )
