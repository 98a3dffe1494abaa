"""Rotate the master key, and show what each key seals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from rich.console import Group, RenderableType
from rich.markup import escape

from apps.fleet.key_rotation import (
    KeyUse,
    key_uses,
    record_retirement,
    require_unused,
    rotate_keys,
    used_by,
)
from apps.fleet.sealed_columns import SESSIONS
from apps.tenants.keys import master_keys
from arbor.sealing import MasterKeys
from config.cli.kit.declarations import ExitCode, Output
from config.cli.kit.output import progress_bar, table
from config.cli.kit.tenancy import actor
from config.keys import KeySource


def status() -> Output:
    """Show which master key seals how many secrets."""
    keys = master_keys()
    uses = key_uses(keys)
    broken = any(use.unreadable for use in uses if use.kind != SESSIONS.kind)
    text = Group(_uses_for_people(keys, uses), _next_step(keys, uses))
    code = ExitCode.FAILED if broken else ExitCode.DONE
    return Output(_value(keys, uses), text=text, code=code)


def rotate(batch: int) -> Output:
    """Seal all secrets under a new master key, while Arbor runs."""
    source: KeySource = settings.ARBOR_MASTER_KEYS
    # Opens a connection before anything changes: without a database there is nothing to rotate.
    present = master_keys()
    key_uses(present)
    keys = present if present.other_id else source.begin_rotation()
    with progress_bar("sealing", "secrets") as progress:
        rotation = rotate_keys(keys=keys, actor=actor(), batch=batch, progress=progress)
    complete = rotation.is_complete(keys)
    return Output(
        {**_value(keys, rotation.uses), "changed": rotation.changed, "complete": complete},
        text=Group(_uses_for_people(keys, rotation.uses), _next_step(keys, rotation.uses)),
        code=ExitCode.DONE if complete else ExitCode.FAILED,
    )


def retire() -> Output:
    """Delete the old master key, once it seals nothing."""
    source: KeySource = settings.ARBOR_MASTER_KEYS
    keys = master_keys()
    retired = require_unused(keys)
    source.drop_other()
    record_retirement(key=retired, actor=actor())
    return Output(
        {"current": keys.current_id, "retired": retired},
        text=f"The master key {retired} is deleted; {keys.current_id} opens everything. Back it up.",
    )


def _value(keys: MasterKeys, uses: Iterable[KeyUse]) -> dict[str, Any]:
    return {
        "current": keys.current_id,
        "other": keys.other_id,
        "secrets": [
            {
                "kind": use.kind,
                "sealed": use.sealed,
                "unreadable": use.unreadable,
                "errors": list(use.errors),
            }
            for use in uses
        ],
    }


def _uses_for_people(keys: MasterKeys, uses: tuple[KeyUse, ...]) -> RenderableType:
    columns = ("", *(f"{key} ({role})" for key, role in zip(keys.ids, ("current", "other"), strict=False)))
    rows = [(use.kind, *(use.sealed.get(key, 0) for key in keys.ids), use.unreadable) for use in uses]
    errors = [escape(error) for use in uses for error in use.errors]
    return Group(table((*columns, "unreadable"), rows), *errors)


def _next_step(keys: MasterKeys, uses: tuple[KeyUse, ...]) -> str:
    if keys.other_id is None:
        return f"One master key is open, {keys.current_id}."
    if used_by(keys.other_id, uses):
        return f"{keys.other_id} still seals something: run [bold]arbor keys rotate[/bold]."
    return f"{keys.other_id} seals nothing any more: [bold]arbor keys retire[/bold] deletes it."
