"""Rotate the System Authority's key, and show what its keys have signed."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Group
from rich.markup import escape

from apps.fleet.authority_rotation import authority_key_uses, retire_authority, rotate_authority
from arbor.quotations import counted
from config.cli.kit.declarations import ExitCode, Output
from config.cli.kit.output import table
from config.cli.kit.tenancy import actor


def status() -> Output:
    """Show how many signatures in force each key of the System Authority has made."""
    uses = authority_key_uses()
    rows = [
        (
            use.number,
            "signs" if use.signs else "retired" if use.retired else "verifies",
            f"{use.created_at:%Y-%m-%d %H:%M}",
            use.endorsements,
            use.grants,
        )
        for use in uses
    ]
    text = table(("key", "", "created (UTC)", "endorsements", "capabilities"), rows)
    return Output({"keys": [asdict(use) for use in uses]}, text=text)


def rotate() -> Output:
    """Sign all endorsements and capabilities with a new key, while Arbor runs."""
    rotation = rotate_authority(actor=actor())
    text = (
        f"The key {rotation.number} has signed {counted(rotation.endorsements, 'endorsement')} and"
        f" {counted(rotation.grants, 'capability', 'capabilities')}."
        " [bold]arbor keys authority retire[/bold] retires the previous key."
    )
    return Output(
        asdict(rotation),
        text=Group(*map(escape, rotation.refused), text),
        code=ExitCode.FAILED if rotation.refused else ExitCode.DONE,
    )


def retire(force: bool) -> Output:
    """Delete the private half of the old key, once nothing in force is signed by it."""
    numbers = retire_authority(actor=actor(), force=force)
    return Output(
        {"retired": numbers}, text=f"Retired: key {', '.join(map(str, numbers))} of the System Authority."
    )
