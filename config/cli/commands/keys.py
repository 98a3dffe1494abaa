"""The commands that rotate the master key and the System Authority's key."""

from __future__ import annotations

import click

from config.cli.kit.declarations import command, group, option

_authority = group(
    "authority",
    "Rotate the System Authority's key, which endorses agents and signs their capabilities.",
    command(
        "status",
        "Show how many signatures in force each key of the System Authority has made.",
        run="authority_keys:status",
    ),
    command(
        "rotate",
        "Sign all endorsements and capabilities with a new key, while Arbor runs.",
        run="authority_keys:rotate",
        details="With one key in use it makes a new one; with two it continues, so an interrupted run is finished by the next."
        " Both keys are valid until `arbor keys authority retire`. Exit code 1 when rows are left that are not genuine.",
        examples=("arbor keys authority rotate",),
    ),
    command(
        "retire",
        "Delete the private half of the old key, once nothing in force is signed by it.",
        option(
            "--force",
            is_flag=True,
            help="Retire the key although rows in force are signed by it; afterwards these rows authorize nothing.",
        ),
        run="authority_keys:retire",
        details="Nothing that the old key signed is valid any more, so a leaked key or a copy of an old row is useless. Seeds from"
        " before the rotation count as those of another installation. Exit code 1 while it has signed something in force.",
    ),
)
_keys = group(
    "keys",
    "Rotate the master key and the System Authority's key, and show what each key seals or signs.",
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
    _authority,
)

COMMANDS = (_keys,)
