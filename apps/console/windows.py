"""Filter large lists among their latest rows: a rare value that has no index would be looked for in all rows of the tenant."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet, Subquery, UUIDField, Value
from django.db.models.functions import Coalesce

#: The rows of a tenant that a filter without an index looks through.
ROWS_FILTERED = 20_000


def latest_rows(rows: QuerySet[Any], *, order: str, most: int | None = None, **among: Any) -> QuerySet[Any]:
    """Limit rows to those not older than the latest `most` of their tenant, or of the rows with the values `among`.

    Without `most`, `ROWS_FILTERED` of them. `order` is the field by which lists begin with the latest, such as `-id`. It must have
    an index, after `among`.
    """
    name = order.removeprefix("-")
    field = rows.model._meta.get_field(name)
    before_all = UUID(int=0) if isinstance(field, UUIDField) else datetime(1, 1, 2, tzinfo=UTC)
    others = rows.model._default_manager.filter(**among).order_by(f"-{name}").values(name)
    most = most or ROWS_FILTERED
    oldest = Subquery(others[most - 1 : most])
    return rows.filter(**{f"{name}__gte": Coalesce(oldest, Value(before_all, output_field=field))})
