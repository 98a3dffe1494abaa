"""Manage the plans of a goal."""

from __future__ import annotations

import click
from rich.markup import escape

from apps.goals.models import Plan
from apps.goals.services.acts import abandon_latest_plan, meet_dependency, plan_goal, start_drafted_plan
from apps.goals.services.goals import plans_of
from arbor.goals.plans import PlanDraft, PlanStatus, StepDraft
from arbor.heartbeat.actions import ACTIONS
from config.cli.goals.views import plan_lines, plan_value
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_goal
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction


@in_agent_transaction
def show_plans(agent: ChosenAgent, *, goal_name: str) -> Output:
    """Show a goal's plans with their steps, the latest first."""
    goal = find_goal(agent, goal_name)
    plans = [plan_value(plan) for plan in plans_of(goal.id)]
    empty = f'{escape(goal.title)} has no plan. Add one: [bold]arbor goal plan add {agent.argument} GOAL --step "recall: …"[/bold]'
    text = "\n".join(line for plan in plans for line in plan_lines(plan))
    return Output({"goal": goal.title, "plans": plans}, text=text or empty)


@in_agent_transaction
def add(
    agent: ChosenAgent,
    *,
    goal_name: str,
    steps: tuple[str, ...],
    as_draft: bool,
    risk: float | None,
    ticks: int | None,
    cost: float | None,
    needs: tuple[str, ...],
) -> Output:
    """Plan a goal, or add steps to its active plan; the next steps of an active goal become intents."""
    draft = PlanDraft(
        steps=[_parse_step(step) for step in steps],
        risk=risk,
        estimated_ticks=ticks,
        estimated_cost=cost,
        dependencies=needs,
    )
    goal = find_goal(agent, goal_name)
    return _plan_output(
        plan_goal(agent_id=agent.id, goal_id=goal.id, draft=draft, as_draft=as_draft, actor=actor())
    )


@in_agent_transaction
def start(agent: ChosenAgent, *, goal_name: str) -> Output:
    """Activate the latest draft of a goal's plan."""
    goal = find_goal(agent, goal_name)
    return _plan_output(start_drafted_plan(agent_id=agent.id, goal_id=goal.id, actor=actor()))


@in_agent_transaction
def meet(agent: ChosenAgent, *, goal_name: str, dependency: str) -> Output:
    """Record that a dependency of a goal's active plan is met; the plan's steps wait for all dependencies."""
    goal = find_goal(agent, goal_name)
    return _plan_output(
        meet_dependency(agent_id=agent.id, goal_id=goal.id, dependency=dependency, actor=actor())
    )


@in_agent_transaction
def abandon(agent: ChosenAgent, *, goal_name: str, reason: str, a_draft: bool) -> Output:
    """Abandon a goal's active plan, or its latest draft, with the open steps."""
    goal = find_goal(agent, goal_name)
    status = PlanStatus.DRAFT if a_draft else PlanStatus.ACTIVE
    return _plan_output(
        abandon_latest_plan(agent_id=agent.id, goal_id=goal.id, reason=reason, status=status, actor=actor())
    )


def _parse_step(written: str) -> StepDraft:
    name, colon, description = written.partition(":")
    action = name.strip().lower()
    if not colon or not description.strip() or action not in ACTIONS:
        possible = ", ".join(ACTIONS)
        raise click.UsageError(f"a step is ACTION: WHAT FOR, with one of {possible}; got {written!r}")
    return StepDraft(action=action, description=description.strip())


def _plan_output(plan: Plan) -> Output:
    value = plan_value(plan)
    return Output(value, text="\n".join(plan_lines(value)))
