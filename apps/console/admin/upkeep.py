"""Admin classes of maintenance: flags, neighborhoods, activation, vectors, minds, job runs, failing embedders."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.utils.safestring import SafeString

from apps.console import cells, columns
from apps.console.listing import MEMORY_VECTORS, AgentRowsAdmin, PlatformAdmin, filters_by_agent
from apps.memories.models import Activation, EmbedderFault, JobRun, Mind, NextEmbedding, Upkeep
from arbor.embedding.models import is_refused

#: Labels of the maintenance flags of an `Upkeep` row.
MAINTENANCE_FLAGS = {
    "stale": "neighborhood",
    "unclustered": "clusters",
    "unextracted": "concepts",
    "unweighed": "importance",
    "unindexed": "word index",
}


def _pending(upkeep: Upkeep) -> list[str]:
    """Return the labels of the maintenance that a memory waits for; one that its embedder refuses waits for no cluster."""
    done = {flag for flag in MAINTENANCE_FLAGS if not getattr(upkeep, flag)}
    if is_refused(upkeep.memory.embedding_model):
        done.add("unclustered")
    return [label for flag, label in MAINTENANCE_FLAGS.items() if flag not in done]


class _PerMemoryAdmin(AgentRowsAdmin):
    """Columns and filters of tables with at most one row for each memory."""

    list_filter = filters_by_agent()
    ordering = ("-memory_id",)

    joined = (*AgentRowsAdmin.joined, "memory")
    deferred: ClassVar[tuple[str, ...]] = (*AgentRowsAdmin.deferred, *MEMORY_VECTORS)

    memory_link = columns.memory()


@admin.register(Upkeep)
class UpkeepAdmin(_PerMemoryAdmin):
    """List the maintenance flags and the neighborhood of each memory."""

    list_display = ("memory_link", "agent_link", "neighbors_counted", "computed", "waiting")
    fields = ("memory", "agent", "neighbors_shown", "computed_at", "waiting")

    neighbors_counted = columns.cell(
        "neighbors", lambda upkeep: "–" if upkeep.neighbors is None else str(len(upkeep.neighbors))
    )
    neighbors_shown = columns.json("neighbors", "neighbors")
    computed = columns.moment("computed_at", "computed")
    waiting = columns.cell("waits for", lambda upkeep: ", ".join(_pending(upkeep)) or "nothing")


@admin.register(Activation)
class ActivationAdmin(_PerMemoryAdmin):
    """List the activation of memories."""

    list_display = ("memory_link", "agent_link", "level_shown", "moment")
    fields = ("memory", "agent", "level", "at")

    level_shown = columns.share("level", "level at that time")
    moment = columns.moment("at", "when")


@admin.register(NextEmbedding)
class NextEmbeddingAdmin(_PerMemoryAdmin):
    """List the memories that already have a vector by the embedding model that their agent is moving to."""

    list_display = ("memory_link", "agent_link", "embedding_model")
    fields = ("memory", "agent", "embedding_model")

    deferred = (*_PerMemoryAdmin.deferred, "embedding", "lexical")


@admin.register(Mind)
class MindAdmin(AgentRowsAdmin):
    """List the minds of agents, with the times of their last maintenance."""

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

    forgot = columns.moment("forgot_at", "last forgetting")
    clustered = columns.moment("clustered_at", "last reclustering")


@admin.register(JobRun)
class JobRunAdmin(PlatformAdmin):
    """List the last run of each maintenance job."""

    list_display = ("name", "state", "ended", "duration", "done", "failed", "error")
    ordering = ("name",)
    sortable_by = ()
    fields = ("name", "ended_at", "seconds", "succeeded_at", "done", "failed", "error")

    @admin.display(description="state")
    def state(self, run: JobRun) -> SafeString:
        """Return a badge with the result of the run, `off` for a job that is switched off, or `not yet` for one that never ran."""
        if run.period_s <= 0:
            return cells.badge("off", "calm")
        if not run.has_run:
            return cells.badge("not yet", "calm")
        if run.error:
            return cells.badge("failed")
        return cells.badge("partial") if run.failed else cells.badge("done")

    ended = columns.cell("last ended", lambda run: cells.when(run.ended_at if run.has_run else None))
    duration = columns.cell("duration", lambda run: cells.span(run.seconds))


@admin.register(EmbedderFault)
class EmbedderFaultAdmin(PlatformAdmin):
    """List failing embedders, with the time of their next retry."""

    list_display = ("embedding_model", "failures", "since", "retry_at", "error")
    ordering = ("embedding_model",)
    sortable_by = ()
    fields = ("embedding_model", "failures", "since", "retry_at", "error")
