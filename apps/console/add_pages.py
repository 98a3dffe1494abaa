"""Lists of rows that operators add by a form."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse

from apps.console.access import Right, actor_of, has_right
from apps.console.listing import ConsoleAdmin
from apps.console.views import console_page


class AddPageAdmin(ConsoleAdmin):
    """Rows that operators add by a form of the console."""

    #: The form of a new row, its template and its title, where `add_page` is not overridden.
    new_form: ClassVar[type[Any]]
    new_template: ClassVar[str]
    new_title: ClassVar[str]

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Allow operators to add rows."""
        return has_right(request, Right.OPERATE)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the form of a new row, or add the posted row."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return self.add_page(request)

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Show the form of a new row, or add the posted row and show what only this response has, such as its secret.

        No admin view lets a browser cache its response.
        """
        form = self.new_form(request.POST if request.method == "POST" else None)
        created = form.create(actor=actor_of(request)) if form.is_valid() else None
        return console_page(
            request, self.new_template, title=self.new_title, opts=self.opts, form=form, created=created
        )
