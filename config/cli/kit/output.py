"""Print tables for people, or one JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from arbor.quotations import clip_line
from config.cli.kit.printable import escaped, printable

#: The width of tables in a file or a pipe.
_WIDTH_OF_PIPES = 200


class _Screen(Console):
    """A console that removes control characters from all texts, so that only Arbor controls the terminal."""

    def render_str(self, text: str, **how: Any) -> Text:
        """Clean plain text before it is measured, so that columns are aligned."""
        return super().render_str(printable(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Clean all other output except rich's own control segments."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def console(*, err: bool = False) -> Console:
    """Return the terminal, a file or a pipe as a console."""
    stream = sys.stderr if err else sys.stdout
    return _Screen(stderr=err, width=None if stream.isatty() else _WIDTH_OF_PIPES, highlight=False)


def show(value: Mapping[str, Any], *, as_json: bool, text: RenderableType | str) -> None:
    """Print the value as JSON, or for people; a text for people may have rich's markup."""
    if as_json:
        click.echo(json_of(value))
    else:
        console().print(text)


def json_of(value: Mapping[str, Any], *, indent: int | None = None) -> str:
    """Return the value as one JSON object, with moments as `stamp` writes them."""
    return escaped(json.dumps(value, default=_serialize, ensure_ascii=False, indent=indent))


def _serialize(value: object) -> str | None:
    return stamp(value) if isinstance(value, datetime) else str(value)


def stamp(moment: datetime | None) -> str | None:
    """Format a moment for programs: `2026-12-24T18:00:00Z`."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None


def print_note(text: str) -> None:
    """Print a note on standard error, so that the result can be piped."""
    console(err=True).print(f"[dim]·[/dim] {escape(text)}")


def table(
    columns: Iterable[str], rows: Iterable[Iterable[object]], *, title: str | None = None
) -> RenderableType:
    """Return a table of plain cells."""
    rich_table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="dim")
    for column in columns:
        rich_table.add_column(column, overflow="fold")
    for row in rows:
        rich_table.add_row(*(escape(str(cell)) for cell in row))
    return rich_table


@contextmanager
def progress_bar(
    title: str, unit: str, *columns: ProgressColumn
) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar if standard error is a terminal; yield the function that updates it with done and total."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        *columns,
        TimeRemainingColumn(),
        console=console(err=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def format_relative_time(moment: datetime | None) -> str:
    """Return the time since or until a moment: `3 m ago`, `in 2 h`."""
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


#: The longest text in a list.
_LONGEST_CELL = 100


def cut(text: str, longest: int = _LONGEST_CELL) -> str:
    """Return a text on one line, its beginning if it is long."""
    return clip_line(text, longest)


#: The length of a short id: lists show the last characters of an id, and commands accept them where they are unique.
SHORT = 8


def short(row_id: UUID | str) -> str:
    """Return a short id: the end of an id."""
    return str(row_id)[-SHORT:]
