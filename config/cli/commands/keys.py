"""The commands that rotate the master key."""

from __future__ import annotations

import click

from config.cli.kit.declarations import command, group, option

_keys = group(
    "keys",
    "Rotate the master key, and show what each key seals.",
    command(
        "status",
        "Show which master key seals how many secrets.",
        run="keys:status",
        details="Every secret is opened. Exit code 1 when some cannot be opened.",
    ),
    command(
        "rotate",
        "Seal all secrets under a new master key, while Arbor runs.",
        option(
            "--batch",
            type=click.IntRange(1, 10_000),
            default=500,
            show_default=True,
            help="Rows per transaction.",
        ),
        run="keys:rotate",
        details="With one key open it makes a new one; with two it continues, so an interrupted run is finished by the next."
        " Both keys stay open until `arbor keys retire`. Exit code 1 when secrets are left that cannot be opened.",
        examples=("arbor keys rotate", "arbor keys rotate --json"),
    ),
    command(
        "retire",
        "Delete the old master key, once it seals nothing.",
        run="keys:retire",
        details="Keep a copy as long as you keep backups from before the rotation: they open under the old key only."
        " Exit code 1 while it still seals something.",
    ),
)

COMMANDS = (_keys,)
