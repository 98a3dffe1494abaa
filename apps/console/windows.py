"""Filter large lists among their latest rows: a rare value that has no index would be looked for in all rows of the tenant."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

#: The rows of a tenant that a filter without an index looks through.
ROWS_FILTERED = 20_000


def latest_rows(rows: QuerySet[Any], *, order: str, most: int, **among: Any) -> tuple[QuerySet[Any], bool]:
    """Limit rows to those not older than the latest `most` of their tenant, or of the rows with the values `among`.

    Returns also whether there are older ones. `order` is the column by which lists begin with the latest, such as `-id`. It must
    have an index, after `among`. One query: within the statement of the rows, the planner would not know how few rows are left.
    """
    name = order.removeprefix("-")
    others = rows.model._default_manager.filter(**among).order_by(order).values_list(name, flat=True)
    oldest = list(others[most - 1 : most])
    return (rows.filter(**{f"{name}__gte": oldest[0]}), True) if oldest else (rows, False)
