"""`arbor plan`: the steps by which an agent's goals are pursued."""

from __future__ import annotations

from typing import Any

import click

from apps.goals.models import Goal, Plan
from apps.goals.services.plans import abandon_plan, add_plan, plans_of, start_plan
from apps.tenants.scope import tenant_transaction
from arbor.errors import NotFound
from arbor.goals.plans import PlanDraft, PlanStatus, StepDraft
from arbor.heartbeat.actions import ACTIONS
from config.cli.chosen_goal import about_a_goal, find_goal, put_on_record
from config.cli.goal_views import plan_lines, plan_value
from config.cli.output import json_option, show
from config.cli.tenancy import ChosenAgent, choose_agent, tenant_option


@click.group()
def plan() -> None:
    """Plans: ordered steps towards a goal. GOAL is a title, an id, or the end of an id."""


@plan.command("show")
@about_a_goal
@tenant_option
@json_option
def show_them(agent: str, goal_name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Show a goal's plans with their steps, latest first.

    \b
    Example: arbor plan show Vega "Map the river"
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        goal = find_goal(chosen, goal_name)
        found = [plan_value(each) for each in plans_of(goal.id)]
    empty = f'{goal.title} has no plan. Add one: [bold]arbor plan add {chosen.name} GOAL --step "recall: …"[/bold]'
    people = "\n".join(line for each in found for line in plan_lines(each))
    show({"goal": goal.title, "plans": found}, as_json=as_json, people=people or empty)


@plan.command("add")
@about_a_goal
@click.option("--step", "steps", multiple=True, required=True, metavar="ACTION: WHAT FOR", help="In order.")
@click.option("--draft", "as_draft", is_flag=True, help="Only write it down; `arbor plan start` takes it up.")
@click.option("--risk", type=click.FloatRange(0, 1), help="0 to 1, higher is riskier.")
@click.option("--ticks", type=click.IntRange(0, 1_000_000), help="Heartbeats it may take.")
@click.option("--cost", type=click.FloatRange(0, 1_000_000), help="Energy it may take.")
@click.option("--needs", multiple=True, metavar="TEXT", help="What it needs from elsewhere; may be repeated.")
@tenant_option
@json_option
def add(
    agent: str,
    goal_name: str,
    steps: tuple[str, ...],
    as_draft: bool,
    risk: float | None,
    ticks: int | None,
    cost: float | None,
    needs: tuple[str, ...],
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Plan a goal, or add steps to its active plan; the next steps of an active goal become intents.

    \b
    Example: arbor plan add Vega "Map the river" --step "recall: what the pilots said" --step "reflect: on the depth"
    """
    draft = PlanDraft(
        steps=[_step(each) for each in steps],
        risk=risk,
        estimated_ticks=ticks,
        estimated_cost=cost,
        dependencies=needs,
    )
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        goal = find_goal(chosen, goal_name)
        made = add_plan(agent_id=chosen.id, goal_id=goal.id, draft=draft, as_draft=as_draft)
        value = _recorded(chosen, goal, made, f"planned goal {goal.title!r} in {len(draft.steps)} steps")
    show(value, as_json=as_json, people="\n".join(plan_lines(value)))


@plan.command("start")
@about_a_goal
@tenant_option
@json_option
def start(agent: str, goal_name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Take up the latest draft of a goal's plan.

    \b
    Example: arbor plan start Vega "Map the river"
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        goal = find_goal(chosen, goal_name)
        found = start_plan(plan_id=_latest(goal, PlanStatus.DRAFT).id)
        value = _recorded(chosen, goal, found, f"started the plan of goal {goal.title!r}")
    show(value, as_json=as_json, people="\n".join(plan_lines(value)))


@plan.command("abandon")
@about_a_goal
@click.option("--reason", required=True, help="Why; the agent is told.")
@click.option("--draft", "a_draft", is_flag=True, help="The latest draft, not the active plan.")
@tenant_option
@json_option
def abandon(
    agent: str, goal_name: str, reason: str, a_draft: bool, tenant_slug: str | None, as_json: bool
) -> None:
    """Give up a goal's active plan, and the steps of it that are open.

    \b
    Example: arbor plan abandon Vega "Map the river" --reason "The pilots moved away."
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        goal = find_goal(chosen, goal_name)
        wanted = _latest(goal, PlanStatus.DRAFT if a_draft else PlanStatus.ACTIVE)
        found = abandon_plan(plan_id=wanted.id, reason=reason)
        value = _recorded(chosen, goal, found, f"gave up the plan of goal {goal.title!r}: {reason}")
    show(value, as_json=as_json, people="\n".join(plan_lines(value)))


def _step(written: str) -> StepDraft:
    name, colon, description = written.partition(":")
    action = name.strip().lower()
    if not colon or not description.strip() or action not in ACTIONS:
        possible = ", ".join(ACTIONS)
        raise click.UsageError(f"a step is ACTION: WHAT FOR, with one of {possible}; got {written!r}")
    return StepDraft(action=action, description=description.strip())


def _latest(goal: Goal, status: PlanStatus) -> Plan:
    found = plans_of(goal.id).filter(status=status).first()
    if found is None:
        raise NotFound(f"{goal.title!r} has no plan that is {status}")
    return found


def _recorded(chosen: ChosenAgent, goal: Goal, changed: Plan, message: str) -> dict[str, Any]:
    put_on_record(chosen, goal, message, plan_id=changed.id)
    return plan_value(plans_of(goal.id).get(id=changed.id))
