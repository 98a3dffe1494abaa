"""Pages of delivery channels, webhooks, outbox messages, conversations and their turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.console import cells, columns
from apps.console.add_pages import AddPageAdmin
from apps.console.forms import NewChannelForm
from apps.console.listing import (
    AgentRowsAdmin,
    FoundByIdAdmin,
    OwnPageAdmin,
    filters,
    filters_by_agent,
)
from apps.console.operator.hook_forms import NewWebhookForm
from apps.console.pages.contacts import read_message
from apps.console.pages.hooks import read_webhook_deliveries
from apps.contacts.models import Channel, ChatMessage, ChatSession, OutboxMessage, SignalWebhook
from apps.contacts.services.channels import redact_target
from arbor.adapters.webhook import redact_url


@admin.register(Channel)
class ChannelAdmin(AddPageAdmin, OwnPageAdmin):
    """List a tenant's channels. The secrets of webhooks are never read from the database."""

    page_template = "console/channel.html"
    list_display = ("name", "kind", "audience", "of_agent", "target_shown", "state")
    list_filter = filters("kind", "audience")
    ordering = ("name",)
    deferred = (*OwnPageAdmin.deferred, "sealed_secret")
    exported_as: ClassVar[Mapping[str, Callable[[Any], Any]]] = MappingProxyType({"target": redact_target})

    new_form = NewChannelForm
    new_template = "console/channel_new.html"
    new_title = "New channel"

    of_agent = columns.agent_or_all()
    target_shown = columns.cell(
        "to", lambda channel: cells.clipped(redact_target(channel) or "the inbox", 70)
    )
    state = columns.cell("state", lambda channel: cells.badge("enabled" if channel.enabled else "disabled"))


@admin.register(SignalWebhook)
class SignalWebhookAdmin(AddPageAdmin, OwnPageAdmin):
    """List a tenant's webhooks. Their secrets are never read from the database."""

    page_template = "console/webhook.html"
    list_display = ("name", "of_agent", "wanted", "to", "state", "delivered", "failures", "problem")
    list_filter = filters_by_agent()
    ordering = ("name",)
    deferred = (*OwnPageAdmin.deferred, "sealed_secret")
    exported_as: ClassVar[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
        {"url": lambda webhook: redact_url(webhook.url)}
    )
    when_empty = "A webhook gets signals by signed requests."
    when_empty_command = "arbor contact webhook create --help"

    def page_context(self, request: HttpRequest, row: SignalWebhook) -> dict[str, Any]:
        """Add the latest deliveries."""
        return super().page_context(request, row) | {"deliveries": read_webhook_deliveries(row)}

    new_form = NewWebhookForm
    new_template = "console/webhook_new.html"
    new_title = "New webhook"

    of_agent = columns.agent_or_all()
    wanted = columns.cell("signals", lambda webhook: cells.clipped(", ".join(webhook.signals) or "all", 60))
    to = columns.cell("to", lambda webhook: cells.clipped(redact_url(webhook.url), 60))
    state = columns.cell("state", lambda webhook: cells.badge("active" if webhook.active else "paused"))
    delivered = columns.moment("delivered_at", "last confirmed")
    problem = columns.error("last_error")


@admin.register(OutboxMessage)
class OutboxMessageAdmin(OwnPageAdmin):
    """List the messages of the outbox."""

    page_template = "console/message.html"
    list_display = ("about", "agent_link", "kind", "to", "status_badge", "attempts", "decided", "problem")
    list_filter = filters_by_agent("status", "kind", "audience")
    text_fields = ("subject", "content")

    joined = (*OwnPageAdmin.joined, "channel")
    deferred = (*OwnPageAdmin.deferred, "channel__sealed_secret")
    exported_as: ClassVar[Mapping[str, Callable[[Any], Any]]] = MappingProxyType({"target": redact_target})

    read_page = staticmethod(read_message)

    about = columns.cell("message", lambda message: cells.clipped(message.subject or message.content, 90))
    to = columns.cell("to", lambda message: cells.clipped(redact_target(message) or message.audience, 50))
    decided = columns.moment("created_at", "decided")
    problem = columns.error("last_error")


@admin.register(ChatSession)
class ChatSessionAdmin(AgentRowsAdmin):
    """List conversations of people with agents."""

    list_display = ("began", "agent_link", "person", "last", "ended", "significance_shown", "turns")
    list_filter = filters_by_agent()
    fields = ("agent", "person", "started_at", "last_at", "ended_at", "significance_shown", "turns")

    began = columns.moment("started_at", "began")
    last = columns.moment("last_at", "last turn")
    ended = columns.cell(
        "ended",
        lambda session: cells.when(session.ended_at) if session.ended_at else cells.badge("open", "busy"),
    )
    significance_shown = columns.cell(
        "significance",
        lambda session: (
            "–" if session.significance is None else cells.meter(round(session.significance, 2), 1)
        ),
    )

    @admin.display(description="what was said")
    def turns(self, session: ChatSession) -> SafeString:
        """Link to the conversation's turns."""
        page = reverse("admin:agent-chat", args=[session.agent_id])
        return format_html('<a class="ar-link" href="{}?conversation={}">read it</a>', page, session.id)


@admin.register(ChatMessage)
class ChatMessageAdmin(FoundByIdAdmin):
    """List turns of conversations."""

    agent_path = "session__agent"
    list_display = ("beginning", "agent_named", "speaker", "model", "problem", "when")
    text_fields = ("content",)
    sortable_by = ()
    fields = ("content", "agent_named", "session_link", "speaker", "model", "error", "detail_shown", "at")

    joined = ("session__agent",)
    deferred = tuple(f"session__{name}" for name in AgentRowsAdmin.deferred)

    beginning = columns.cell("said", lambda turn: cells.clipped(turn.content or "–"))
    agent_named = columns.cell(
        "agent", lambda turn: cells.link("agents_agent", turn.session.agent_id, turn.session.agent.name)
    )
    session_link = columns.cell(
        "conversation", lambda turn: cells.link("contacts_chatsession", turn.session_id, str(turn.session))
    )
    problem = columns.error("error")
    detail_shown = columns.json("detail", "detail")
    when = columns.moment("at", "when")
