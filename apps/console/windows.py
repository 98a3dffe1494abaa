"""Lists that read a limited number of rows, because a filter without an index would scan all rows of the tenant."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.text import capfirst
from unfold.views import ChangeList

from apps.console.export import ROWS_EXPORTED

#: The rows of a tenant that a filter without an index looks through.
ROWS_FILTERED = 20_000


def latest_rows(rows: QuerySet[Any], *, order: str, most: int, **among: Any) -> tuple[QuerySet[Any], bool]:
    """Limit rows to the latest `most` rows of their tenant that have the values `among`; return also whether older rows may exist.

    `order` is a column, such as `-id`, with an index after `among`; without a minus, the rows with the least values count as the
    latest. The bound is read by a query of its own, because within the statement of the rows the planner would not know how few
    rows are left.
    """
    name = order.removeprefix("-")
    others = rows.model._default_manager.filter(**among).order_by(order).values_list(name, flat=True)
    oldest = list(others[most - 1 : most])
    within = "lte" if name == order else "gte"
    return (rows.filter(**{f"{name}__{within}": oldest[0]}), True) if oldest else (rows, False)


class BoundedList(ChangeList):  # type: ignore[misc]
    """A list whose filters look through a limited number of rows; without "show all", titled by the plural of its model."""

    #: Unfold's templates look this up several times on each page, which is slow for a name that is missing.
    is_dataset = False
    #: The number of latest rows that the filters look through; 0: all rows.
    rows_filtered = 0
    rows_exported = ROWS_EXPORTED
    #: Whether the rows can be filtered by agent, which has an index.
    has_agent_filter = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.title = capfirst(self.opts.verbose_name_plural)
        self.has_agent_filter = any(
            isinstance(entry, tuple) and entry[0] == "agent" for entry in self.list_filter
        )

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        """Return the filtered rows; of the latest rows only, if the filters have no index."""
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        if not self.model_admin.filters_latest or not self._reads_whole_tenant():
            return rows
        latest, has_older = latest_rows(rows, order=self.model_admin.ordering[0], most=ROWS_FILTERED)
        self.rows_filtered = ROWS_FILTERED if has_older else 0
        return latest

    def get_ordering_field(self, field_name: Any) -> Any:
        """Return the field to sort by for a column; None for a column that cannot be sorted, which an address may name."""
        return super().get_ordering_field(field_name) if field_name in self.sortable_by else None

    def _reads_whole_tenant(self) -> bool:
        """Return whether there is a filter, and none of them has an index."""
        lookups = {(name, value) for name, values in self.filter_params.items() for value in values}
        has_index = any(
            name.startswith(("agent__", "agent_id__")) or (name, value) in self.model_admin.indexed_lookups
            for name, value in lookups
        )
        return bool(lookups) and not has_index

    def get_results(self, request: HttpRequest) -> None:
        """Read the page's rows, and complete them with data that no join can read."""
        super().get_results(request)
        self.full_result_count = self.result_count
        self.model_admin.complete(list(self.result_list))
