"""Pages of outbox messages."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells, columns
from apps.console.access import holds
from apps.console.listing import OwnPageAdmin
from apps.console.pages.message import MessagePage, read_message
from apps.contacts.models import OutboxMessage
from apps.contacts.services.channels import shown_target
from apps.tenants.models import Role


@admin.register(OutboxMessage)
class OutboxMessageAdmin(OwnPageAdmin):
    """The outbox."""

    page_template = "console/message.html"
    list_display = ("about", "agent_link", "kind", "to", "status_badge", "attempts", "decided", "trouble")
    list_filter = (
        ("agent", AutocompleteSelectFilter),
        ("status", ChoicesDropdownFilter),
        ("kind", ChoicesDropdownFilter),
        ("audience", ChoicesDropdownFilter),
    )
    text_fields = ("subject", "content")

    def get_queryset(self, request: HttpRequest) -> QuerySet[OutboxMessage]:
        """Read the channel's name in the same query, and nothing that is sealed."""
        messages: QuerySet[OutboxMessage] = super().get_queryset(request).select_related("channel")
        return messages.defer(*self.unread, "channel__sealed_secret")

    def read_page(self, row: OutboxMessage) -> MessagePage:
        """Read what the message's page shows."""
        return read_message(row)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the message, with what an operator may do to it."""
        may = {"may_operate": holds(request, Role.OPERATOR)}
        return super().change_view(request, object_id, form_url, {**may, **(extra_context or {})})

    @admin.display(description="message")
    def about(self, message: OutboxMessage) -> SafeString:
        """Begin it."""
        return cells.clipped(message.subject or message.content, 90)

    @admin.display(description="to")
    def to(self, message: OutboxMessage) -> SafeString:
        """Show the receiver."""
        return cells.clipped(shown_target(message) or message.audience, 50)

    decided = columns.moment("created_at", "decided")

    @admin.display(description="trouble")
    def trouble(self, message: OutboxMessage) -> SafeString:
        """Show the beginning of the error."""
        return cells.clipped(message.last_error or "–", 70)
