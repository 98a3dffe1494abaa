"""Show and edit the themes of an agent."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.markup import escape

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import Cluster
from apps.memories.services.activation import activated_clusters
from apps.memories.services.clusters import (
    assign_memory_to_clusters,
    cluster_members,
    find_related_clusters,
    name_cluster,
    recalculate_cluster,
)
from apps.memories.services.partial import tip_of_the_tongue_about
from arbor.memory.recall_request import check_query
from config.cli.kit import Output
from config.cli.lookup import find_memories, find_theme
from config.cli.memory.views import theme_line
from config.cli.output import cut, short, table
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction, with_agent

_MOST_ACTIVE = 20


@in_agent_transaction
def list_themes(agent: ChosenAgent, *, limit: int) -> Output:
    """List an agent's themes, the weightiest first."""
    active = {
        theme.id: theme.activation for theme in activated_clusters(agent_id=agent.id, limit=_MOST_ACTIVE)
    }
    found = Cluster.objects.filter(agent_id=agent.id).defer("centroid").order_by("-importance", "-size")
    rows = [{**_line(theme), "in_mind": active.get(theme.id, 0.0)} for theme in found[:limit]]
    people: Any = table(
        ("id", "memories", "imp", "feeling", "in mind", "theme", "about"),
        (
            (
                short(row["id"]),
                row["size"],
                f"{row['importance']:.2f}",
                f"{row['emotional_valence']:+.2f}",
                f"{row['in_mind']:.2f}" if row["in_mind"] else "",
                cut(row["name"], 40),
                cut(", ".join(row["keywords"]), 60),
            )
            for row in rows
        ),
    )
    empty = f"{agent.name} has no theme yet: maintenance finds them among memories that have a vector."
    return Output({"agent": agent.name, "themes": rows}, people=people if rows else empty)


@in_agent_transaction
def show_theme(agent: ChosenAgent, *, theme: str, limit: int) -> Output:
    """Show a theme with its memories and related themes."""
    found = Cluster.objects.defer("centroid").get(id=find_theme(agent, theme))
    members = cluster_members(cluster_id=found.id, limit=limit)
    related = find_related_clusters(cluster_id=found.id, limit=limit)
    told = {
        **_line(found),
        "agent": agent.name,
        "memories": [
            {"id": member.memory_id, "strength": member.strength, "content": member.content}
            for member in members
        ],
        "related": [
            {"id": other.id, "name": other.name, "relation": other.relation, "strength": other.strength}
            for other in related
        ],
    }
    keywords = ", ".join(told["keywords"])
    people = Group(
        f"[bold]{escape(found.name)}[/bold]  [dim]{found.id}[/dim]",
        f"about {escape(keywords) or 'nothing in particular'}; {found.size} memories, feeling {found.emotional_valence:+.2f}",
        table(
            ("fits", "id", "memory"),
            ((f"{member.strength:.2f}", short(member.memory_id), cut(member.content)) for member in members),
        ),
        table(
            ("strength", "id", "relation", "related theme"),
            ((f"{other.strength:.2f}", short(other.id), other.relation, other.name) for other in related),
        )
        if related
        else "",
    )
    return Output(told, people=people)


def _line(theme: Cluster) -> dict[str, Any]:
    return {
        "id": theme.id,
        "name": theme.name,
        "keywords": [str(word) for word in theme.keywords] if isinstance(theme.keywords, list) else [],
        "size": theme.size,
        "importance": theme.importance,
        "emotional_valence": theme.emotional_valence,
        "emotional_intensity": theme.emotional_intensity,
        "activations": theme.activations,
        "activated_at": theme.activated_at,
    }


@with_agent
def show_tip_of_the_tongue(agent: ChosenAgent, *, text: str) -> Output:
    """Show the themes that TEXT brings to mind while no memory of them is clear."""
    check_query(text, 1)
    themes = tip_of_the_tongue_about(tenant_id=agent.tenant_id, agent_id=agent.id, text=text)
    told = {"agent": agent.name, "text": text, "themes": [theme_line(theme) for theme in themes]}
    names = "; ".join(f"{theme.name} ({theme.strength:.2f})" for theme in themes)
    return Output(told, people=escape(names) or "Nothing is on the tip of the tongue.")


@in_agent_transaction
def name_theme(agent: ChosenAgent, *, theme: str, name: str) -> Output:
    """Name a theme. A named theme stays while it has a memory."""
    theme_id = find_theme(agent, theme)
    name_cluster(cluster_id=theme_id, name=name)
    _note(agent, f"named the theme {theme_id} {name!r}")
    return Output({"agent": agent.name, "theme": theme_id, "name": name}, people="Named.")


@in_agent_transaction
def refresh_theme(agent: ChosenAgent, *, theme: str) -> Output:
    """Recompute a theme's centre, words and feeling from its memories."""
    theme_id = find_theme(agent, theme)
    recalculate_cluster(cluster_id=theme_id)
    return Output({"agent": agent.name, "theme": theme_id}, people="Computed anew.")


@in_agent_transaction
def assign_memory(agent: ChosenAgent, *, memory_id: str, most: int) -> Output:
    """Assign a memory to its themes now, before maintenance does."""
    (found,) = find_memories(agent, [memory_id])
    themes = assign_memory_to_clusters(memory_id=found, max_clusters=most)
    told = {
        "agent": agent.name,
        "id": found,
        "themes": {str(theme_id): fit for theme_id, fit in themes.items()},
    }
    return Output(told, people=f"It is in {len(themes)} themes.")


def _note(agent: ChosenAgent, message: str) -> None:
    record(action=AuditAction.OPERATOR_ACT, actor=actor(), agent_id=agent.id, message=message)
