"""Pages of the graph around memories: relations, episodes, clusters and concepts."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.contrib import admin
from django.utils.safestring import SafeString

from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, OwnPageAdmin, filters_by_agent
from apps.console.nodes import NamedNode, name_nodes
from apps.console.pages.graph import read_cluster, read_concept, read_episode
from apps.memories.models import Cluster, Concept, Edge, Episode


@admin.register(Edge)
class EdgeAdmin(AgentRowsAdmin):
    """List typed, directed relations between memories, concepts, beliefs, aspects and goals."""

    list_display = ("source_link", "relation_shown", "target_link", "weight_shown", "agent_link", "drawn")
    list_filter = filters_by_agent()
    list_display_links = ("relation_shown",)
    text_fields = ("relation", "note")
    fields = (
        "agent",
        "source_link",
        "relation_shown",
        "target_link",
        "weight_shown",
        "note",
        "drawn_by",
        "created_at",
    )

    def complete(self, rows: Sequence[Edge]) -> None:
        """Read the texts of both ends of these relations, in one query."""
        ends = {
            end
            for edge in rows
            for end in ((edge.source_kind, edge.source_id), (edge.target_kind, edge.target_id))
        }
        named = name_nodes(None, ends)
        for edge in rows:
            vars(edge)["named"] = named

    source_link = columns.cell("from", lambda edge: _end(edge, edge.source_kind, edge.source_id))
    target_link = columns.cell("to", lambda edge: _end(edge, edge.target_kind, edge.target_id))
    relation_shown = columns.words("relation", "relation")
    weight_shown = columns.share("weight", "weight")
    drawn = columns.moment("created_at", "drawn")
    drawn_by = columns.origin("origin", "drawn by")


def _end(edge: Edge, kind: str, row_id: UUID) -> SafeString:
    named: dict[tuple[str, UUID], NamedNode] = vars(edge)["named"]
    return cells.node(kind, row_id, named[kind, row_id].text)


@admin.register(Episode)
class EpisodeAdmin(OwnPageAdmin):
    """List episodes, and show each with its members in order and its summary."""

    list_display = ("beginning", "agent_link", "state", "size", "began", "lasted", "summarized")
    list_filter = filters_by_agent()
    text_fields = ("summary", "session")
    page_template = "console/episode.html"

    read_page = staticmethod(read_episode)

    deferred = (*OwnPageAdmin.deferred, "embedding", "lexical")

    beginning = columns.cell(
        "episode",
        lambda episode: cells.clipped(
            episode.summary or cells.words_of_origin(episode.session) or "no session", 90
        ),
    )
    state = columns.cell(
        "state",
        lambda episode: (
            cells.badge("open", "busy") if episode.ended_at is None else cells.badge("closed", "calm")
        ),
    )
    began = columns.moment("started_at", "began")
    lasted = columns.cell("lasted", lambda episode: cells.duration(episode.last_at - episode.started_at))

    @admin.display(description="summarized by")
    def summarized(self, episode: Episode) -> str:
        """Show the author of the summary."""
        if episode.summarized_at is not None:
            return episode.summarized_by
        return f"failed {episode.failures}×" if episode.failures else "not yet"


@admin.register(Cluster)
class ClusterAdmin(OwnPageAdmin):
    """List clusters, and show each with its keywords and members."""

    list_display = (
        "name",
        "agent_link",
        "keywords_shown",
        "size",
        "importance_shown",
        "feeling",
        "active",
    )
    list_filter = filters_by_agent()
    text_fields = ("name",)
    page_template = "console/cluster.html"

    read_page = staticmethod(read_cluster)

    deferred = (*OwnPageAdmin.deferred, "centroid")

    keywords_shown = columns.cell(
        "about", lambda cluster: cells.clipped(", ".join(str(word) for word in cluster.keywords) or "–", 70)
    )
    importance_shown = columns.share("importance", "importance")
    feeling = columns.cell(
        "feeling", lambda cluster: cells.feeling(cluster.emotional_valence, cluster.emotional_intensity)
    )
    active = columns.moment("activated_at", "last active")


@admin.register(Concept)
class ConceptAdmin(OwnPageAdmin):
    """List concepts, each with its broader one."""

    list_display = ("name", "agent_link", "broader", "depth", "met")
    list_filter = filters_by_agent()
    text_fields = ("name", "description")
    page_template = "console/concept.html"

    read_page = staticmethod(read_concept)

    joined = (*OwnPageAdmin.joined, "parent")

    @admin.display(description="broader")
    def broader(self, concept: Concept) -> SafeString | str:
        """Link the broader concept."""
        if concept.parent is None:
            return "–"
        return cells.link("memories_concept", concept.parent.id, concept.parent.name)

    depth = columns.cell("depth", lambda concept: len(concept.ancestors))
    met = columns.moment("created_at", "first met")
