"""Pages of conversations and their turns."""

from __future__ import annotations

import json

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, FoundByIdAdmin
from apps.contacts.models import ChatMessage, ChatSession


@admin.register(ChatSession)
class ChatSessionAdmin(AgentRowsAdmin):
    """Conversations of people with agents."""

    list_display = ("began", "agent_link", "person", "last", "ended", "significance_shown", "said")
    list_filter = (("agent", AutocompleteSelectFilter),)
    fields = ("agent", "person", "started_at", "last_at", "ended_at", "significance_shown", "said")

    began = columns.moment("started_at", "began")
    last = columns.moment("last_at", "last turn")

    @admin.display(description="ended")
    def ended(self, session: ChatSession) -> SafeString:
        """Show the time of the end, if any."""
        return cells.when(session.ended_at) if session.ended_at else cells.badge("open", "busy")

    @admin.display(description="significance")
    def significance_shown(self, session: ChatSession) -> SafeString | str:
        """Show the significance."""
        return "–" if session.significance is None else cells.meter(round(session.significance, 2), 1)

    @admin.display(description="what was said")
    def said(self, session: ChatSession) -> SafeString:
        """Link the agent's conversations."""
        page = reverse("admin:agent-chat", args=[session.agent_id])
        return format_html('<a class="ar-link" href="{}?conversation={}">read it</a>', page, session.id)


@admin.register(ChatMessage)
class ChatMessageAdmin(FoundByIdAdmin):
    """Turns of conversations."""

    agent_path = "session__agent"
    list_display = ("beginning", "agent_named", "speaker", "model", "trouble", "when")
    text_fields = ("content",)
    sortable_by = ()
    fields = ("content", "agent_named", "session_link", "speaker", "model", "error", "detail_shown", "at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ChatMessage]:
        """Read the agents' names in the same query."""
        turns: QuerySet[ChatMessage] = super().get_queryset(request).select_related("session__agent")
        return turns.defer(*(f"session__{name}" for name in AgentRowsAdmin.unread))

    @admin.display(description="said")
    def beginning(self, turn: ChatMessage) -> SafeString:
        """Show the beginning of the turn."""
        return cells.clipped(turn.content or "–")

    @admin.display(description="agent")
    def agent_named(self, turn: ChatMessage) -> SafeString:
        """Show the agent's name."""
        return cells.link("agents_agent", turn.session.agent_id, turn.session.agent.name)

    @admin.display(description="conversation")
    def session_link(self, turn: ChatMessage) -> SafeString:
        """Link the conversation."""
        return cells.link("contacts_chatsession", turn.session_id, str(turn.session))

    @admin.display(description="trouble")
    def trouble(self, turn: ChatMessage) -> SafeString:
        """Show the beginning of the error."""
        return cells.clipped(turn.error or "–", 70)

    @admin.display(description="detail")
    def detail_shown(self, turn: ChatMessage) -> SafeString:
        """Show recalled memories, boundary matches and the agent's thinking."""
        return cells.block(json.dumps(turn.detail, ensure_ascii=False, indent=2))

    when = columns.moment("at", "when")
