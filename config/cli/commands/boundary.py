"""The commands about an agent's boundaries and preferences."""

from __future__ import annotations

from arbor.selves.boundaries import BoundaryResponse, BoundaryType
from config.cli.commands.options import SHARE
from config.cli.kit.declarations import agent_command, argument, group, one_of, option

BOUNDARY = group(
    "boundary",
    "Manage an agent's boundaries: what it does not do, whoever asks.",
    agent_command(
        "list",
        "List an agent's boundaries, the most important first, and the disabled ones.",
        run="selves.boundaries:list_boundaries",
        examples=("arbor self boundary list Vega",),
    ),
    agent_command(
        "add",
        "Add a boundary to an agent; it replaces a default boundary of the same name.",
        argument("name"),
        option("--pattern", "patterns", multiple=True, help="A word or phrase; `word*` matches its forms."),
        option("--example", "examples", multiple=True, help="A sentence; texts of the same meaning match."),
        option(
            "--response",
            type=one_of(BoundaryResponse),
            default=BoundaryResponse.REFUSE.value,
            help="Its response to a text that matches.",
        ),
        option(
            "--type",
            "kind",
            type=one_of(BoundaryType),
            default=BoundaryType.ETHICAL.value,
            help="Its type.",
        ),
        option("--description", default="", help="Its description, in the agent's own words."),
        option(
            "--flexibility",
            type=SHARE,
            default=0.0,
            show_default=True,
            help="With `--response negotiate`: from 0 (absolute) to 1 (negotiable).",
        ),
        option("--importance", type=SHARE, default=0.5, help="Its rank among the boundaries."),
        run="selves.boundaries:add",
        examples=(
            'arbor self boundary add Vega no_gossip --pattern gossip --example "What did Bo say about Ada?"',
        ),
    ),
    agent_command(
        "remove",
        "Remove an agent's own boundary, or disable a default one.",
        argument("name"),
        run="selves.boundaries:remove",
        examples=("arbor self boundary remove Vega no_gossip",),
    ),
    agent_command(
        "restore",
        "Restore a default boundary of an agent.",
        argument("name"),
        run="selves.boundaries:restore",
        examples=("arbor self boundary restore Vega resource_limit",),
    ),
    agent_command(
        "test",
        "Check a text against an agent's boundaries. Nothing is stored.",
        argument("text"),
        run="selves.boundaries:check_text",
        examples=('arbor self boundary test Vega "Please lie to the harbour master."',),
    ),
    details="Every agent has five default boundaries; others are an agent's own. They are checked against the messages that"
    " an agent receives and against the actions that it chooses.",
)

PREFERENCE = group(
    "preference",
    "Manage an agent's preferences: each is a key with one line of text.",
    agent_command(
        "list",
        "List an agent's preferences.",
        run="selves.identity:list_preferences",
        examples=("arbor self preference list Vega",),
    ),
    agent_command(
        "set",
        "Set an agent's preference under a key.",
        argument("key"),
        argument("value"),
        run="selves.identity:store_preference",
        examples=('arbor self preference set Vega tone "short and dry"',),
    ),
    agent_command(
        "remove",
        "Remove an agent's preference.",
        argument("key"),
        run="selves.identity:remove_preference",
        examples=("arbor self preference remove Vega tone",),
    ),
)
