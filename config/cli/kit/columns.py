"""Columns: one list defines the table and the JSON of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet
from rich.console import RenderableType

from config.cli.kit.declarations import Output
from config.cli.kit.output import table


@dataclass(frozen=True)
class OutputColumn:
    """One value of a row: under `key` in JSON and under `head` in a table.

    Without a `key` the value is not in the JSON, without a `head` not in the table.
    """

    key: str = ""
    head: str | None = None
    #: Computes the value from the row. Default: the row's attribute or entry named `key`.
    value: Callable[[Any], Any] | None = None
    #: Computes the cell of a table from the value, as plain text: the table escapes markup. Default: the value itself.
    cell: Callable[[Any], object] | None = None

    def value_of(self, row: Any) -> Any:
        """Return the value of a row."""
        if self.value is not None:
            return self.value(row)
        return row[self.key] if isinstance(row, Mapping) else getattr(row, self.key)

    def cell_of(self, row: Any) -> object:
        """Return the cell of a row."""
        value = self.value_of(row)
        return self.cell(value) if self.cell else value


def row_to_dict(row: Any, columns: Iterable[OutputColumn]) -> dict[str, Any]:
    """Return a row as an object of JSON."""
    return {column.key: column.value_of(row) for column in columns if column.key}


def table_of(
    rows: Iterable[Any], columns: Sequence[OutputColumn], *, title: str | None = None
) -> RenderableType:
    """Return rows as a table."""
    shown = [column for column in columns if column.head is not None]
    cells = ([column.cell_of(row) for column in shown] for row in rows)
    return table((str(column.head) for column in shown), cells, title=title)


def listing(
    name: str,
    rows: Sequence[Any],
    columns: Sequence[OutputColumn],
    *,
    empty: str,
    about: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> Output:
    """Return rows as the output of a command: `name` is their key in JSON, `about` are further keys."""
    value = {**(about or {}), name: [row_to_dict(row, columns) for row in rows]}
    return Output(value, text=table_of(rows, columns, title=title) if rows else empty)


#: The most rows that a bounded listing shows; the console shows all.
MAX_ROWS = 100


def bounded_listing(
    name: str,
    rows: QuerySet[Any],
    columns: Sequence[OutputColumn],
    *,
    empty: str,
    about: Mapping[str, Any] | None = None,
) -> Output:
    """Return the first rows as the output of a command, with the number of all rows as `total`."""
    shown, total = first_rows(rows)
    return listing(
        name, shown, columns, empty=empty, about={**(about or {}), "total": total}, title=part_title(total)
    )


def first_rows(rows: QuerySet[Any]) -> tuple[list[Any], int]:
    """Return the first rows, at most MAX_ROWS, and the number of all."""
    shown = list(rows[:MAX_ROWS])
    return shown, rows.count() if len(shown) == MAX_ROWS else len(shown)


def part_title(total: int) -> str | None:
    """Return the title of a table that shows the first MAX_ROWS of all rows."""
    return f"{MAX_ROWS:,} of {total:,}" if total > MAX_ROWS else None


def columns_for(columns: Sequence[OutputColumn], *, one_tenant: bool) -> Sequence[OutputColumn]:
    """Return the columns for rows of one tenant or of several; of one, the table has no column for the tenant."""
    return [
        replace(column, head=None) if one_tenant and column.key == "tenant" else column for column in columns
    ]


def number(value: float) -> str:
    """Return a number from 0 to 1 as a cell."""
    return f"{value:.2f}"


def signed(value: float) -> str:
    """Return a number from -1 to 1 as a cell."""
    return f"{value:+.2f}"
