"""Pages of maintenance: flags, neighborhoods, activation, vectors, minds, job runs."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, PlatformAdmin
from apps.memories.models import Activation, EmbedderFault, JobRun, Mind, NextEmbedding, Upkeep

#: Labels of the maintenance flags of an `Upkeep` row.
MAINTENANCE_FLAGS = {
    "stale": "neighborhood",
    "unclustered": "clusters",
    "unextracted": "concepts",
    "unweighed": "importance",
}


class _BesideMemoryAdmin(AgentRowsAdmin):
    list_filter = (("agent", AutocompleteSelectFilter),)
    ordering = ("-memory_id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Upkeep | Activation | NextEmbedding]:
        """Read the memory's text alone."""
        rows: QuerySet[Upkeep | Activation | NextEmbedding] = super().get_queryset(request)
        rows = rows.select_related("memory")
        return rows.defer("memory__embedding", "memory__lexical", *self.unread)

    @admin.display(description="memory")
    def memory_link(self, row: Upkeep | Activation | NextEmbedding) -> SafeString:
        """Link the memory by its beginning."""
        return cells.link("memories_memory", row.memory_id, cells.clipped(row.memory.content))


@admin.register(Upkeep)
class UpkeepAdmin(_BesideMemoryAdmin):
    """List the maintenance flags and the neighborhood of each memory."""

    list_display = ("memory_link", "agent_link", "neighbors_counted", "computed", "waiting")
    fields = ("memory", "agent", "neighbors", "computed_at", *MAINTENANCE_FLAGS)

    @admin.display(description="neighbors")
    def neighbors_counted(self, upkeep: Upkeep) -> str:
        """Count the neighbors."""
        return "–" if upkeep.neighbors is None else str(len(upkeep.neighbors))

    computed = columns.moment("computed_at", "computed")

    @admin.display(description="waits for")
    def waiting(self, upkeep: Upkeep) -> str:
        """Show the maintenance flags."""
        return (
            ", ".join(words for chore, words in MAINTENANCE_FLAGS.items() if getattr(upkeep, chore))
            or "nothing"
        )


@admin.register(Activation)
class ActivationAdmin(_BesideMemoryAdmin):
    """List the activation of memories."""

    list_display = ("memory_link", "agent_link", "level_shown", "moment")
    fields = ("memory", "agent", "level", "at")

    level_shown = columns.share("level", "level then")
    moment = columns.moment("at", "when")


@admin.register(NextEmbedding)
class NextEmbeddingAdmin(_BesideMemoryAdmin):
    """Vectors by the model that an agent is being moved to."""

    list_display = ("memory_link", "agent_link", "embedding_model")
    fields = ("memory", "agent", "embedding_model")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Upkeep | Activation | NextEmbedding]:
        """Leave the vectors where they are."""
        return (
            super()
            .get_queryset(request)
            .defer("embedding", "lexical", "memory__embedding", "memory__lexical", *self.unread)
        )


@admin.register(Mind)
class MindAdmin(AgentRowsAdmin):
    """Agents' memories as a whole."""

    list_display = ("agent_link", "embedding_model", "embedding_dimension", "forgot", "clustered")
    ordering = ("-agent_id",)
    fields = (
        "agent",
        "embedding_model",
        "embedding_dimension",
        "forgot_at",
        "cleaned_at",
        "counted_at",
        "clustered_at",
    )

    forgot = columns.moment("forgot_at", "last let it forget")
    clustered = columns.moment("clustered_at", "last put in order")


@admin.register(JobRun)
class JobRunAdmin(PlatformAdmin):
    """List the job runs of maintenance."""

    list_display = ("name", "state", "ended", "took", "done", "failed", "error")
    ordering = ("name",)
    sortable_by = ()
    fields = ("name", "ended_at", "seconds", "succeeded_at", "done", "failed", "error")

    @admin.display(description="state")
    def state(self, run: JobRun) -> SafeString:
        """Show the result."""
        if run.error:
            return cells.badge("failed")
        return cells.badge("partial") if run.failed else cells.badge("done")

    ended = columns.moment("ended_at", "last ended")

    @admin.display(description="took")
    def took(self, run: JobRun) -> str:
        """Show how long it took."""
        return cells.span(run.seconds)


@admin.register(EmbedderFault)
class EmbedderFaultAdmin(PlatformAdmin):
    """Embedders that fail, and until when the backlog leaves them alone."""

    list_display = ("embedding_model", "failures", "since", "retry_at", "error")
    ordering = ("embedding_model",)
    sortable_by = ()
    fields = ("embedding_model", "failures", "since", "retry_at", "error")
