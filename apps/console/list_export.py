"""The export of lists of the admin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path

from apps.console.access import access_of
from apps.console.export import answer_with_lines, export_columns, export_lines, read_format


class ListExport:
    """Adds the export of a list to its admin class, with the filters and the permissions of the list."""

    #: Columns that are never read, because they are wide or secret, and columns that are read only for the page of a row.
    deferred: ClassVar[tuple[str, ...]] = ()
    deferred_in_list: ClassVar[tuple[str, ...]] = ()
    #: The exported values of fields that pages show in another form.
    exported_as: ClassVar[Mapping[str, Callable[[Any], Any]]] = MappingProxyType({})
    # Of the admin class that inherits from this class.
    model: Any
    opts: Any
    admin_site: Any
    has_view_permission: Callable[..., bool]
    get_changelist_instance: Callable[..., Any]

    def get_urls(self) -> list[URLPattern]:
        """Add the URL of the list's export."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        export = path("export/<str:kind>/", self.admin_site.admin_view(self.export_view), name=name)
        return [export, *super().get_urls()]  # type: ignore[misc]

    def export_view(self, request: HttpRequest, kind: str) -> HttpResponseBase:
        """Send the rows of the list, filtered and sorted as its address says, as CSV or JSON."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        export = read_format(kind)
        try:
            rows = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters:
            raise BadRequest("a filter of the address cannot be read") from None
        access = access_of(request)
        columns = export_columns(rows, shown=self.exported_as)
        lines = export_lines(rows, columns, tenant_id=access.tenant_id if access else None)
        name = str(self.opts.verbose_name_plural).replace(" ", "-")
        return answer_with_lines(lines, [column.name for column in columns], kind=export, name=name)
