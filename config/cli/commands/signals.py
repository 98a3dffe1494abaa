"""The command about signals."""

from __future__ import annotations

import click

from config.cli.kit.declarations import option, tenant_command

_signals = tenant_command(
    "signals",
    "List what changed about agents, or follow it live.",
    option("--agent", metavar="NAME", help="Only this agent's."),
    option(
        "--name",
        "names",
        metavar="NAME",
        multiple=True,
        help="Only signals of this name, or of all that begin so: `memory.goal_*`. Can be repeated.",
    ),
    option("--after", metavar="CURSOR", help="Only signals after this one's id, oldest first."),
    option(
        "--limit",
        type=click.IntRange(1, 1000),
        default=50,
        help="Maximum number of signals.",
    ),
    option("--follow", is_flag=True, help="Go on with each new signal until Ctrl-C; with --json one a line."),
    option("--names", "catalogue", is_flag=True, help="List all names with their meaning and data instead."),
    run="signals:list_signals",
    details="Without --after the latest are listed. Pass the cursor of the answer to the next --after.",
    examples=(
        "arbor signals --agent Vega --follow",
        "arbor signals --name 'memory.goal_*' --json --after 0000000000002af00006a1c5c2d1e001.2",
    ),
)

COMMANDS: tuple[click.Command, ...] = (_signals,)
