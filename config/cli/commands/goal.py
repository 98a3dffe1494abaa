"""The commands about an agent's goals and plans. GOAL is a title, an id, or the end of an id."""

from __future__ import annotations

from typing import Any

import click

from arbor.goals.values import DEFAULT_PRIORITY, MAX_PRIORITY, GoalLayer, GoalSource, GoalState, GoalType
from config.cli.commands.options import limit_option
from config.cli.kit.declarations import agent_command, argument, group, one_of, option
from config.cli.kit.values import MomentType, NumberRange

_OPEN = [state for state in GoalState if state.is_open]


def _goal_command(name: str, summary: str, *params: click.Parameter, **attributes: Any) -> click.Command:
    """Return a command about one goal: AGENT and GOAL come before its own arguments."""
    return agent_command(name, summary, argument("goal_name", metavar="GOAL"), *params, **attributes)


def _deadline() -> click.Option:
    return option("--deadline", type=MomentType(), help="Its deadline: 2026-12-24 or 2026-12-24T18:00 (UTC).")


_plan = group(
    "plan",
    "Manage the plans of a goal: ordered steps towards it.",
    _goal_command(
        "show",
        "Show a goal's plans with their steps, the latest first.",
        run="goals.plans:show_plans",
        examples=('arbor goal plan show Vega "Map the river"',),
    ),
    _goal_command(
        "add",
        "Plan a goal, or add steps to its active plan; the next steps of an active goal become intents.",
        option(
            "--step",
            "steps",
            multiple=True,
            required=True,
            metavar="ACTION: WHAT FOR",
            help="A step; repeat it in order.",
        ),
        option(
            "--draft", "as_draft", is_flag=True, help="Save a draft; `arbor goal plan start` activates it."
        ),
        option("--risk", type=NumberRange(0, 1), help="Its risk, from 0 to 1."),
        option("--heartbeats", "ticks", type=click.IntRange(0, 1_000_000), help="Estimated heartbeats."),
        option("--cost", type=NumberRange(0, 1_000_000), help="Estimated energy."),
        option("--needs", multiple=True, metavar="TEXT", help="An external dependency. Can be repeated."),
        run="goals.plans:add",
        examples=(
            'arbor goal plan add Vega "Map the river" --step "recall: what the pilots said" --step "reflect: on the depth"',
        ),
    ),
    _goal_command(
        "start",
        "Activate the latest draft of a goal's plan.",
        run="goals.plans:start",
        examples=('arbor goal plan start Vega "Map the river"',),
    ),
    _goal_command(
        "met",
        "Record that a dependency of a goal's active plan is met; the plan's steps wait for all dependencies.",
        argument("dependency"),
        run="goals.plans:meet",
        examples=('arbor goal plan met Vega "Map the river" "the pilots are back"',),
    ),
    _goal_command(
        "abandon",
        "Abandon a goal's active plan, or its latest draft, with the open steps.",
        option("--reason", required=True, help="The reason; the agent reads it."),
        option("--draft", "a_draft", is_flag=True, help="Abandon the latest draft, not the active plan."),
        run="goals.plans:abandon",
        examples=('arbor goal plan abandon Vega "Map the river" --reason "The pilots moved away."',),
    ),
)

_goal = group(
    "goal",
    "Manage an agent's goals and plans. GOAL is a title, an id, or the end of an id.",
    agent_command(
        "list",
        "List an agent's open goals, the most important first.",
        option("--all", "with_closed", is_flag=True, help="Include completed and abandoned goals."),
        limit_option(1000, 100),
        run="goals.goals:list_goals",
        examples=("arbor goal list Vega",),
    ),
    _goal_command(
        "show",
        "Show a goal with its parts, plans, memories and satisfaction.",
        run="goals.goals:show_goal",
        examples=('arbor goal show Vega "Map the river"',),
    ),
    agent_command(
        "add",
        "Add a goal; when the wanted state is full, the goal gets the next lower state with room.",
        argument("title"),
        option("--description", default="", help="The condition that completes it."),
        option("--layer", type=one_of(GoalLayer), default="objective", help="Its layer."),
        option("--type", "kind", type=one_of(GoalType), default="achieve", help="Its type."),
        option(
            "--priority",
            type=click.IntRange(0, MAX_PRIORITY),
            default=DEFAULT_PRIORITY,
            help="Its priority, which scales its urgency.",
        ),
        option("--source", type=one_of(GoalSource), default="user_request", help="Its source."),
        option("--state", type=one_of(_OPEN), help="Its state.  [default: the source's]"),
        option("--parent", metavar="GOAL", help="The goal that it is part of."),
        _deadline(),
        option("--blocked-by", default="", metavar="TEXT", help="Its blocker, in words; the agent reads it."),
        run="goals.goals:add",
        examples=('arbor goal add Vega "Map the river" --description "Every ford is on the map."',),
    ),
    _goal_command(
        "move",
        "Move a goal to another state: active, queued, backburner, completed, abandoned.",
        argument("state", type=one_of(GoalState)),
        option("--reason", default="", help="The reason; required to abandon a goal."),
        run="goals.goals:move",
        examples=('arbor goal move Vega "Map the river" completed',),
    ),
    _goal_command(
        "note",
        "Add a progress note to a goal; a goal whose progress is 1 is completed.",
        argument("text"),
        option("--progress", type=NumberRange(0, 1), help="Its progress, from 0 to 1."),
        run="goals.goals:add_note",
        examples=('arbor goal note Vega "Map the river" "Found the second ford." --progress 0.6',),
    ),
    _goal_command(
        "edit",
        "Change a goal's parent and deadline.",
        option("--parent", metavar="GOAL", help="The goal that it becomes part of."),
        option("--no-parent", is_flag=True, help="Remove its parent."),
        _deadline(),
        option("--no-deadline", is_flag=True, help="Remove its deadline."),
        run="goals.goals:edit",
        examples=('arbor goal edit Vega "Map the river" --parent "Map the valley" --deadline 2026-12-24',),
    ),
    _goal_command(
        "block",
        "Block a goal by something it waits for; the agent reads it.",
        option("--by", metavar="TEXT", default="", help="Its blocker, in words."),
        option("--by-goal", metavar="GOAL", help="The goal it waits for; closing that one unblocks it."),
        run="goals.goals:block",
        examples=('arbor goal block Vega "Map the river" --by-goal "Mend the boat"',),
    ),
    _goal_command(
        "unblock",
        "Unblock a goal.",
        run="goals.goals:unblock",
        examples=('arbor goal unblock Vega "Map the river"',),
    ),
    _plan,
)

COMMANDS = (_goal,)
