"""Pages of lists by opaque cursors, in a stable order."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import orjson
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from ninja import Query, Schema
from pydantic import Field

from arbor.clock import to_utc
from arbor.errors import Invalid

MAX_PAGE_SIZE = 200
#: Enough for the longest text by which a list is sorted, a resource of 500 letters of any script.
_CURSOR_LENGTH = 4_000
_NOT_OF_LIST = "the cursor is not one of this list; begin without a cursor"


class ListPage[T](Schema):
    """A page of a list."""

    items: list[T] = Field(description="The rows, in the order of the list.")
    next_cursor: str | None = Field(description="The cursor of the next page; null at the end of the list.")


class PageQuery(Schema):
    """The wanted page of a list."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE, description="The most rows of a page.")] = 50
    cursor: Annotated[
        str,
        Field(
            max_length=_CURSOR_LENGTH,
            description="`next_cursor` of the page before; empty: the first page.",
        ),
    ] = ""


#: The parameter of a list operation: `page: Paging`.
Paging = Query[PageQuery]


def page_of[M: Model, T](
    rows: QuerySet[M], page: PageQuery, *, order: str, to_resource: Callable[[M], T]
) -> ListPage[T]:
    """Return a page of rows in the order of a column and, for equal values, of ids; `order` is `column` or `-column`.

    Raises Invalid for a cursor that is not of this list.
    """
    column, descending = order.removeprefix("-"), order.startswith("-")
    sign = "-" if descending else ""
    if page.cursor:
        try:
            rows = rows.filter(after_cursor(column, page.cursor, descending=descending))
        except (TypeError, ValueError, ValidationError) as error:
            # The value or the id has another type than its column.
            raise Invalid(_NOT_OF_LIST) from error
    found = list(rows.order_by(f"{sign}{column}", f"{sign}pk")[: page.limit + 1])
    has_more = len(found) > page.limit
    shown = found[: page.limit]
    return ListPage(
        items=[to_resource(row) for row in shown],
        next_cursor=cursor_of(shown[-1], column) if has_more else None,
    )


def cursor_of(row: Model, column: str) -> str:
    """Return the cursor of the page after a row of a list in the order of a column."""
    value: Any = row
    for name in column.split("__"):
        value = getattr(value, name)
    typed = {"t": value.isoformat()} if isinstance(value, datetime) else {"v": value}
    written = orjson.dumps({"o": column, "id": str(row.pk), **typed})
    return base64.urlsafe_b64encode(written).decode().rstrip("=")


def after_cursor(column: str, cursor: str, *, descending: bool) -> Q:
    """Return the condition of the rows after a cursor. Raises Invalid for a cursor that is not of this list."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        read = orjson.loads(text)
        if read["o"] != column:
            raise ValueError(column)
        value = to_utc(datetime.fromisoformat(read["t"])) if "t" in read else read["v"]
        last_id = str(read["id"])
    except (Invalid, ValueError, KeyError, TypeError) as error:
        raise Invalid(_NOT_OF_LIST) from error
    lookup = "lt" if descending else "gt"
    # The first condition is a range of the column's index; without it, all rows before the cursor would be read again.
    return Q(**{f"{column}__{lookup}e": value}) & (
        Q(**{f"{column}__{lookup}": value}) | Q(**{f"pk__{lookup}": last_id})
    )
