"""`arbor memory themes` and `arbor memory concepts`: what an agent's memories are about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from rich.console import Group
from rich.markup import escape
from rich.tree import Tree

from apps.memories.models import Cluster
from apps.memories.services.clusters.clusters import cluster_members, find_related_clusters
from apps.memories.services.graph.concepts import ConceptNode, concept_tree, memories_of_concept
from apps.memories.services.recall.activation import activated_clusters
from apps.tenants.scope import tenant_transaction
from config.cli.memory.finding import find_theme, short
from config.cli.memory.listing import cut
from config.cli.output import json_option, show, table
from config.cli.tenancy import ChosenAgent, choose_agent, tenant_option

_MOST_ACTIVE = 20


@click.command("themes")
@click.argument("agent")
@click.argument("theme_id", metavar="[THEME]", required=False)
@click.option("-k", "--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@tenant_option
@json_option
def themes(agent: str, theme_id: str | None, limit: int, tenant_slug: str | None, as_json: bool) -> None:
    """List an agent's themes, the weightiest first; or show one with its memories and related themes.

    \b
    Examples:
      arbor memory themes Vega
      arbor memory themes Vega 51b09e3a
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        if theme_id is None:
            _show_all(chosen, limit, as_json)
        else:
            _show_one(chosen, theme_id, limit, as_json)


def _show_all(chosen: ChosenAgent, limit: int, as_json: bool) -> None:
    active = {each.id: each.activation for each in activated_clusters(agent_id=chosen.id, limit=_MOST_ACTIVE)}
    found = Cluster.objects.filter(agent_id=chosen.id).defer("centroid").order_by("-importance", "-size")
    rows = [{**_line(each), "in_mind": active.get(each.id, 0.0)} for each in found[:limit]]
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
    empty = f"{chosen.name} has no theme yet: maintenance finds them among memories that have a vector."
    show({"agent": chosen.name, "themes": rows}, as_json=as_json, people=people if rows else empty)


def _show_one(chosen: ChosenAgent, theme_id: str, limit: int, as_json: bool) -> None:
    theme = Cluster.objects.defer("centroid").get(id=find_theme(chosen, theme_id))
    members = cluster_members(cluster_id=theme.id, limit=limit)
    related = find_related_clusters(cluster_id=theme.id, limit=limit)
    told = {
        **_line(theme),
        "agent": chosen.name,
        "memories": [
            {"id": each.memory_id, "strength": each.strength, "content": each.content} for each in members
        ],
        "related": [
            {"id": each.id, "name": each.name, "relation": each.relation, "strength": each.strength}
            for each in related
        ],
    }
    keywords = ", ".join(told["keywords"])
    people = Group(
        f"[bold]{escape(theme.name)}[/bold]  [dim]{theme.id}[/dim]",
        f"about {escape(keywords) or 'nothing in particular'}; {theme.size} memories, feeling {theme.emotional_valence:+.2f}",
        table(
            ("fits", "id", "memory"),
            ((f"{each.strength:.2f}", short(each.memory_id), cut(each.content)) for each in members),
        ),
        table(
            ("strength", "id", "relation", "related theme"),
            ((f"{each.strength:.2f}", short(each.id), each.relation, each.name) for each in related),
        )
        if related
        else "",
    )
    show(told, as_json=as_json, people=people)


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


@click.command("concepts")
@click.argument("agent")
@click.option("--memories", "name", metavar="NAME", help="The memories that are cases of a concept.")
@click.option("-k", "--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@tenant_option
@json_option
def concepts(agent: str, name: str | None, limit: int, tenant_slug: str | None, as_json: bool) -> None:
    """Show an agent's concepts as a tree, the broader above the narrower; or the memories of one.

    \b
    Examples:
      arbor memory concepts Vega
      arbor memory concepts Vega --memories water
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        if name is not None:
            _show_cases(chosen, name, limit, as_json)
            return
        tree = concept_tree(agent_id=chosen.id)
    told = {"agent": chosen.name, "concepts": [_branch(each) for each in tree]}
    show(told, as_json=as_json, people=_drawn(tree) if tree else f"{chosen.name} has no concept yet.")


def _show_cases(chosen: ChosenAgent, name: str, limit: int, as_json: bool) -> None:
    cases = memories_of_concept(agent_id=chosen.id, name=name, limit=limit)
    told = {
        "agent": chosen.name,
        "concept": name,
        "memories": [
            {
                "id": each.memory_id,
                "score": round(each.score, 4),
                "strength": each.strength,
                "relevance": round(each.relevance, 4),
                "occurred_at": each.occurred_at,
                "content": each.content,
            }
            for each in cases
        ],
    }
    people: Any = table(
        ("score", "id", "when", "memory"),
        (
            (f"{each.score:.2f}", short(each.memory_id), f"{each.occurred_at:%Y-%m-%d}", cut(each.content))
            for each in cases
        ),
    )
    show(told, as_json=as_json, people=people if cases else f"No memory is a case of {escape(name)}.")


def _branch(node: ConceptNode) -> dict[str, Any]:
    return {
        "id": node.id,
        "name": node.name,
        "description": node.description,
        "memories": node.memories,
        "narrower": [_branch(each) for each in node.narrower],
    }


def _drawn(nodes: Iterable[ConceptNode]) -> Tree:
    root = Tree("concepts", hide_root=True)

    def grow(above: Tree, several: Iterable[ConceptNode]) -> None:
        for node in several:
            grow(above.add(f"{escape(node.name)} [dim]{node.memories}[/dim]"), node.narrower)

    grow(root, nodes)
    return root
