"""Pages of episodes."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from apps.console import cells, columns
from apps.console.listing import OwnPageAdmin
from apps.console.pages.episode import EpisodePage, read_episode
from apps.memories.models import Episode


@admin.register(Episode)
class EpisodeAdmin(OwnPageAdmin):
    """Episodes, each with its members in order and what it came to."""

    list_display = ("beginning", "agent_link", "state", "size", "began", "lasted", "summarized")
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("summary", "session")
    page_template = "console/episode.html"

    def read_page(self, row: Episode) -> EpisodePage:
        """Read what its page shows."""
        return read_episode(row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Episode]:
        """Leave the vectors where they are."""
        episodes: QuerySet[Episode] = super().get_queryset(request)
        return episodes.defer("embedding", "lexical", *self.unread)

    @admin.display(description="episode")
    def beginning(self, episode: Episode) -> SafeString:
        """Show the beginning of the summary, or the session's name."""
        return cells.clipped(episode.summary or cells.words_of_origin(episode.session) or "no session", 90)

    @admin.display(description="state")
    def state(self, episode: Episode) -> SafeString:
        """Show whether the episode is closed."""
        return cells.badge("open", "busy") if episode.ended_at is None else cells.badge("closed", "calm")

    began = columns.moment("started_at", "began")

    @admin.display(description="lasted")
    def lasted(self, episode: Episode) -> str:
        """Show the duration."""
        return cells.duration(episode.last_at - episode.started_at)

    @admin.display(description="summarized by")
    def summarized(self, episode: Episode) -> str:
        """Show the author of the summary."""
        if episode.summarized_at is not None:
            return episode.summarized_by
        return f"failed {episode.failures}×" if episode.failures else "not yet"
