"""`arbor goal`: an agent's backlog."""

from __future__ import annotations

from datetime import datetime

import click
from rich.markup import escape

from apps.goals.models import Goal
from apps.goals.services.goals import (
    block_goal,
    create_goal,
    move_goal,
    note_progress,
    place_goal,
    set_deadline,
)
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from config.cli.chosen_goal import SHORT, about_a_goal, find_goal, put_on_record
from config.cli.goal_views import goal_lines, goal_rows, goal_table, whole_goal
from config.cli.output import json_option, show
from config.cli.tenancy import ChosenAgent, choose_agent, tenant_option
from config.cli.values import Moment


@click.group()
def goal() -> None:
    """Goals: what an agent wants. GOAL is a title, an id, or the end of an id."""


@goal.command("list")
@click.argument("agent")
@click.option("--all", "with_closed", is_flag=True, help="Completed and abandoned ones, too.")
@tenant_option
@json_option
def list_them(agent: str, with_closed: bool, tenant_slug: str | None, as_json: bool) -> None:
    """List an agent's open goals, most important first.

    \b
    Example: arbor goal list Vega
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        rows = goal_rows(chosen.id, with_closed=with_closed)
    empty = f'{chosen.name} has no open goal. Add one: [bold]arbor goal add {chosen.name} "TITLE"[/bold]'
    show({"agent": chosen.name, "goals": rows}, as_json=as_json, people=goal_table(rows) if rows else empty)


@goal.command("add")
@click.argument("agent")
@click.argument("title")
@click.option("--description", default="", help="What done looks like.")
@click.option(
    "--layer", type=click.Choice([each.value for each in GoalLayer]), default="objective", show_default=True
)
@click.option(
    "--source",
    type=click.Choice([each.value for each in GoalSource]),
    default="user_request",
    show_default=True,
)
@click.option(
    "--state",
    type=click.Choice([each.value for each in GoalState if each.is_open]),
    help="[default: the source's]",
)
@click.option("--parent", metavar="GOAL", help="The goal it is part of.")
@click.option("--deadline", type=Moment(), help="2026-12-24 or 2026-12-24T18:00 (UTC).")
@click.option("--blocked-by", default="", metavar="TEXT", help="What it waits for; the agent is told.")
@tenant_option
@json_option
def add(
    agent: str,
    title: str,
    description: str,
    layer: str,
    source: str,
    state: str | None,
    parent: str | None,
    deadline: datetime | None,
    blocked_by: str,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Give an agent a goal; when the wanted state is full, it gets the next lower one with room.

    \b
    Example: arbor goal add Vega "Map the river" --description "Every ford is on the map."
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        made = create_goal(
            agent_id=chosen.id,
            title=title,
            description=description,
            layer=GoalLayer(layer),
            source=GoalSource(source),
            state=GoalState(state) if state else None,
            parent_id=find_goal(chosen, parent).id if parent else None,
            deadline=deadline,
            blocked_by=blocked_by,
        )
        put_on_record(chosen, made, f"added goal {made.title!r}, {made.state}")
    _show(chosen, made, as_json, f"is {made.state}")


@goal.command("move")
@about_a_goal
@click.argument("state", type=click.Choice([each.value for each in GoalState]))
@click.option("--reason", default="", help="Why; needed to abandon a goal.")
@tenant_option
@json_option
def move(agent: str, goal_name: str, state: str, reason: str, tenant_slug: str | None, as_json: bool) -> None:
    """Move a goal to another state: active, queued, backburner, completed, abandoned.

    \b
    Example: arbor goal move Vega "Map the river" completed
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_goal(chosen, goal_name)
        before = found.state
        moved = move_goal(goal_id=found.id, to=GoalState(state), reason=reason)
        put_on_record(chosen, moved, f"moved goal {moved.title!r} from {before} to {moved.state}")
    _show(chosen, moved, as_json, f"is {moved.state}")


@goal.command("note")
@about_a_goal
@click.argument("text")
@click.option("--progress", type=click.FloatRange(0, 1), help="Share that is done, 0 to 1.")
@tenant_option
@json_option
def note(
    agent: str, goal_name: str, text: str, progress: float | None, tenant_slug: str | None, as_json: bool
) -> None:
    """Note how a goal is going; one that is done is completed, wherever it stands.

    \b
    Example: arbor goal note Vega "Map the river" "Found the second ford." --progress 0.6
    """
    if not text.strip() and progress is None:
        raise click.UsageError("there is nothing to note: say how the goal is going, or give --progress")
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        noted = note_progress(goal_id=find_goal(chosen, goal_name).id, note=text, fraction=progress)
        put_on_record(chosen, noted, f"noted on goal {noted.title!r}: {text}")
    _show(chosen, noted, as_json, f"is {noted.state}, {noted.fraction:.0%} done")


@goal.command("edit")
@about_a_goal
@click.option("--parent", metavar="GOAL", help="The goal it is to be a part of.")
@click.option("--no-parent", is_flag=True, help="It is a part of none.")
@click.option("--deadline", type=Moment(), help="2026-12-24 or 2026-12-24T18:00 (UTC).")
@click.option("--no-deadline", is_flag=True, help="It has none.")
@tenant_option
@json_option
def edit(
    agent: str,
    goal_name: str,
    parent: str | None,
    no_parent: bool,
    deadline: datetime | None,
    no_deadline: bool,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Change what a goal is a part of, and when it is due.

    \b
    Example: arbor goal edit Vega "Map the river" --parent "Map the valley" --deadline 2026-12-24
    """
    if bool(parent) + no_parent + bool(deadline) + no_deadline == 0:
        raise click.UsageError("say what to change: --parent, --no-parent, --deadline or --no-deadline")
    if (parent and no_parent) or (deadline and no_deadline):
        raise click.UsageError("give a parent or none, and a deadline or none, not both")
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        changed = find_goal(chosen, goal_name)
        if parent or no_parent:
            above = find_goal(chosen, parent) if parent else None
            changed = place_goal(goal_id=changed.id, parent_id=above.id if above else None)
            put_on_record(chosen, changed, f"made goal {changed.title!r} a part of {above or 'none'}")
        if deadline or no_deadline:
            changed = set_deadline(goal_id=changed.id, deadline=deadline)
            put_on_record(chosen, changed, f"goal {changed.title!r} is due {deadline or 'never'}")
    _show(chosen, changed, as_json, f"is {changed.state}")


@goal.command("block")
@about_a_goal
@click.option("--by", metavar="TEXT", default="", help="What it waits for, in words.")
@click.option("--by-goal", metavar="GOAL", help="The goal it waits for; it goes on when that one closes.")
@tenant_option
@json_option
def block(
    agent: str, goal_name: str, by: str, by_goal: str | None, tenant_slug: str | None, as_json: bool
) -> None:
    """Say what a goal waits for; the agent is told.

    \b
    Example: arbor goal block Vega "Map the river" --by-goal "Mend the boat"
    """
    if bool(by.strip()) == bool(by_goal):
        raise click.UsageError("say what it waits for: --by TEXT or --by-goal GOAL")
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        what = find_goal(chosen, by_goal) if by_goal else None
        changed = block_goal(goal_id=find_goal(chosen, goal_name).id, by=str(what.id) if what else by)
        put_on_record(chosen, changed, f"goal {changed.title!r} waits for {what or by}")
    _show(chosen, changed, as_json, f"waits for {what or by}")


@goal.command("unblock")
@about_a_goal
@tenant_option
@json_option
def unblock(agent: str, goal_name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Say that a goal waits for nothing any more.

    \b
    Example: arbor goal unblock Vega "Map the river"
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        changed = block_goal(goal_id=find_goal(chosen, goal_name).id, by="")
        put_on_record(chosen, changed, f"goal {changed.title!r} waits for nothing any more")
    _show(chosen, changed, as_json, "waits for nothing")


@goal.command("show")
@about_a_goal
@tenant_option
@json_option
def show_one(agent: str, goal_name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Show a goal with its parts, plans, memories, and what it was worth.

    \b
    Example: arbor goal show Vega "Map the river"
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        whole = whole_goal(find_goal(chosen, goal_name), agent_name=chosen.name)
    show(whole, as_json=as_json, people=goal_lines(whole))


def _show(chosen: ChosenAgent, changed: Goal, as_json: bool, what: str) -> None:
    show(
        {
            "id": changed.id,
            "agent": chosen.name,
            "title": changed.title,
            "state": changed.state,
            "fraction": changed.fraction,
        },
        as_json=as_json,
        people=f"[bold]{escape(changed.title)}[/bold] ({str(changed.id)[-SHORT:]}) {what}.",
    )
