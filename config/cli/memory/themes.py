"""Show and edit the themes of an agent."""

from __future__ import annotations

from rich.console import Group
from rich.markup import escape

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import Cluster
from apps.memories.services.clusters.clusters import (
    assign_memory_to_clusters,
    cluster_members,
    find_related_clusters,
    name_cluster,
    recalculate_cluster,
)
from apps.memories.services.recall.activation import activated_clusters
from apps.memories.services.recall.partial_recall import partial_recall_about
from arbor.memory.recall_request import check_query
from config.cli.columns import OutputColumn, facts, listing, number, signed, table_of
from config.cli.kit import Output
from config.cli.lookup import find_cluster, find_memories
from config.cli.memory.views import theme_line
from config.cli.output import cut, short
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction, with_agent


def _keywords(theme: Cluster) -> list[str]:
    return [str(word) for word in theme.keywords] if isinstance(theme.keywords, list) else []


THEME = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("size", "memories"),
    OutputColumn("importance", "imp", cell=number),
    OutputColumn("emotional_valence", "feeling", cell=signed),
    OutputColumn("name", "theme", cell=lambda name: cut(name, 40)),
    OutputColumn("keywords", "about", value=_keywords, cell=lambda words: cut(", ".join(words), 60)),
    *(OutputColumn(key) for key in ("emotional_intensity", "activations", "activated_at")),
)
MEMBER = (
    OutputColumn("strength", "fits", cell=number),
    OutputColumn("id", "id", value=lambda member: member.memory_id, cell=short),
    OutputColumn("content", "memory", cell=cut),
)
RELATED = (
    OutputColumn("strength", "strength", cell=number),
    OutputColumn("id", "id", cell=short),
    OutputColumn("relation", "relation"),
    OutputColumn("name", "related theme"),
)


_MOST_ACTIVE = 20


@in_agent_transaction
def list_themes(agent: ChosenAgent, *, limit: int) -> Output:
    """List an agent's themes, the weightiest first."""
    active = {
        theme.id: theme.activation for theme in activated_clusters(agent_id=agent.id, limit=_MOST_ACTIVE)
    }
    in_mind = OutputColumn(
        "in_mind",
        "in mind",
        value=lambda theme: active.get(theme.id, 0.0),
        cell=lambda activation: number(activation) if activation else "",
    )
    themes = Cluster.objects.filter(agent_id=agent.id).defer("centroid").order_by("-importance", "-size")
    return listing(
        "themes",
        list(themes[:limit]),
        (*THEME, in_mind),
        about={"agent": agent.name},
        empty=f"{agent.name} has no theme yet: maintenance finds them among memories that have a vector.",
    )


@in_agent_transaction
def show_theme(agent: ChosenAgent, *, theme: str, limit: int) -> Output:
    """Show a theme with its memories and related themes."""
    cluster = Cluster.objects.defer("centroid").get(id=find_cluster(agent, theme))
    members = cluster_members(cluster_id=cluster.id, limit=limit)
    related = find_related_clusters(cluster_id=cluster.id, limit=limit)
    value = {
        **facts(cluster, THEME),
        "agent": agent.name,
        "memories": [facts(member, MEMBER) for member in members],
        "related": [facts(other, RELATED) for other in related],
    }
    about = escape(", ".join(_keywords(cluster))) or "nothing in particular"
    people = Group(
        f"[bold]{escape(cluster.name)}[/bold]  [dim]{cluster.id}[/dim]",
        f"about {about}; {cluster.size} memories, feeling {cluster.emotional_valence:+.2f}",
        table_of(members, MEMBER),
        table_of(related, RELATED) if related else "",
    )
    return Output(value, people=people)


@with_agent
def show_tip_of_the_tongue(agent: ChosenAgent, *, text: str) -> Output:
    """Show the themes that TEXT brings to mind while no memory of them is clear."""
    check_query(text, 1)
    themes = partial_recall_about(tenant_id=agent.tenant_id, agent_id=agent.id, text=text)
    value = {"agent": agent.name, "text": text, "themes": [theme_line(theme) for theme in themes]}
    names = "; ".join(f"{theme.name} ({theme.strength:.2f})" for theme in themes)
    return Output(value, people=escape(names) or "Nothing is on the tip of the tongue.")


@in_agent_transaction
def name_theme(agent: ChosenAgent, *, theme: str, name: str) -> Output:
    """Name a theme. A named theme stays while it has a memory."""
    theme_id = find_cluster(agent, theme)
    name_cluster(cluster_id=theme_id, name=name)
    _note(agent, f"named the theme {theme_id} {name!r}")
    return Output({"agent": agent.name, "theme": theme_id, "name": name}, people="Named.")


@in_agent_transaction
def refresh_theme(agent: ChosenAgent, *, theme: str) -> Output:
    """Recompute a theme's centre, words and feeling from its memories."""
    theme_id = find_cluster(agent, theme)
    recalculate_cluster(cluster_id=theme_id)
    return Output({"agent": agent.name, "theme": theme_id}, people="Computed anew.")


@in_agent_transaction
def assign_memory(agent: ChosenAgent, *, memory_id: str, most: int) -> Output:
    """Assign a memory to its themes now, before maintenance does."""
    (found,) = find_memories(agent, [memory_id])
    themes = assign_memory_to_clusters(memory_id=found, max_clusters=most)
    value = {
        "agent": agent.name,
        "id": found,
        "themes": {str(theme_id): fit for theme_id, fit in themes.items()},
    }
    return Output(value, people=f"It is in {len(themes)} themes.")


def _note(agent: ChosenAgent, message: str) -> None:
    record(action=AuditAction.OPERATOR_ACT, actor=actor(), agent_id=agent.id, message=message)
