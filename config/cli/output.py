"""What commands print: a table for people, or one JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

#: A table in a file or a pipe is not cut to a terminal's width.
_WIDTH_OF_PIPES = 200

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def console(*, err: bool = False) -> Console:
    """Return the terminal, or what stands in for it."""
    stream = sys.stderr if err else sys.stdout
    return Console(stderr=err, width=None if stream.isatty() else _WIDTH_OF_PIPES, highlight=False)


def show(value: Mapping[str, Any], *, as_json: bool, people: RenderableType | str) -> None:
    """Print the value as JSON, or for people; a text for people may hold rich's markup."""
    if as_json:
        click.echo(json.dumps(value, default=str, ensure_ascii=False))
    else:
        console().print(people)


def note(text: str) -> None:
    """Say something beside the result: on standard error, so that the result can be piped."""
    console(err=True).print(f"[dim]·[/dim] {escape(text)}")


def table(
    columns: Iterable[str], rows: Iterable[Iterable[object]], *, title: str | None = None
) -> RenderableType:
    """Return a table of plain cells."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="dim")
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*(escape(str(cell)) for cell in row))
    return made


def ago(moment: datetime | None) -> str:
    """Say how long ago, or in how long, a moment is: `3 m ago`, `in 2 h`."""
    if moment is None:
        return "never"
    seconds = (moment - datetime.now(UTC)).total_seconds()
    size = abs(seconds)
    unit, length = next(
        (unit, length)
        for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
        if size >= length or length == 1
    )
    span = f"{size / length:.0f} {unit}"
    return f"in {span}" if seconds > 0 else f"{span} ago"
