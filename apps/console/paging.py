"""Page through tables of any size with a limited count."""

from __future__ import annotations

from typing import Any, cast

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from unfold.admin import TabularInline
from unfold.forms import PaginationInlineFormSet

from apps.console.access import access_of
from apps.console.badges import RowCount, count_with_badges
from apps.tenants.scope import APP

#: The most rows of a list, because counting more would scan the table; filters and search find the others.
ROWS_COUNTED = 1_000
#: The rows on a page of a table that belongs to a row.
INLINE_ROWS = 20


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Pages through the first rows of a table of any size, without counting all of them."""

    template_name = "console/parts/pagination.html"
    #: The request of a list within a tenant, for which the badges of the navigation are counted too.
    request: HttpRequest | None = None

    @cached_property
    def row_count(self) -> int:
        """Return the number of rows, up to one more than can be shown."""
        rows = cast("QuerySet[Any]", self.object_list)
        # Unordered: any index will do.
        shown = rows.order_by()[: ROWS_COUNTED + 1]
        if self.request is None or access_of(self.request) is None or rows.db != APP:
            return shown.count()
        # One statement counts for the list and for the navigation.
        (row_count,) = count_with_badges(self.request, RowCount(shown.values("pk")))
        return row_count

    @cached_property
    def count(self) -> int:
        """Return the number of rows that can be shown."""
        return min(self.row_count, ROWS_COUNTED)

    @property
    def has_more(self) -> bool:
        """Return whether there are rows beyond the last page."""
        return self.row_count > ROWS_COUNTED


class BoundedInlineFormSet(PaginationInlineFormSet):  # type: ignore[misc]
    """The first rows of a table that belongs to a row."""

    def get_page(self, paginator: Paginator[Any], page: int) -> Page[Any]:
        """Return a page; Unfold's own paginator would count all rows."""
        self.paginator = BoundedPaginator(paginator.object_list, paginator.per_page)
        return cast("Page[Any]", super().get_page(self.paginator, page))


class BoundedInline(TabularInline):  # type: ignore[misc]
    """A table that belongs to a row, in pages."""

    formset = BoundedInlineFormSet
    per_page = INLINE_ROWS
    show_title = False
