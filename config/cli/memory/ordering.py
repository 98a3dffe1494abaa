"""Themes and concepts by a person's hand: named, computed anew, placed, merged."""

from __future__ import annotations

import click
from rich.markup import escape

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.clusters.clusters import (
    assign_memory_to_clusters,
    name_cluster,
    recalculate_cluster,
)
from apps.memories.services.graph.concepts import concepts_of, link_memory_to_concept
from apps.memories.services.graph.ontology import merge_concepts, set_parent
from apps.memories.services.recall.tip_of_the_tongue import tip_of_the_tongue_about
from apps.tenants.scope import tenant_transaction
from arbor.memory.recall_request import check_query
from config.cli.memory.finding import find_memories, find_theme
from config.cli.memory_views import theme_line
from config.cli.output import json_option, show
from config.cli.tenancy import ChosenAgent, actor, choose_agent, tenant_option


@click.command("tip")
@click.argument("agent")
@click.argument("text")
@tenant_option
@json_option
def tip(agent: str, text: str, tenant_slug: str | None, as_json: bool) -> None:
    """Show the themes that TEXT brings to mind while none of their memories is clear: the tip of the tongue.

    \b
    Example: arbor memory tip Vega "who was it that played"
    """
    chosen = choose_agent(agent, tenant_slug)
    check_query(text, 1)
    themes = tip_of_the_tongue_about(tenant_id=chosen.tenant_id, agent_id=chosen.id, text=text)
    told = {"agent": chosen.name, "text": text, "themes": [theme_line(each) for each in themes]}
    names = "; ".join(f"{each.name} ({each.strength:.2f})" for each in themes)
    show(told, as_json=as_json, people=escape(names) or "Nothing is on the tip of the tongue.")


@click.command("name-theme")
@click.argument("agent")
@click.argument("theme")
@click.argument("name")
@tenant_option
@json_option
def name_theme(agent: str, theme: str, name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Name a theme: it keeps the name, and stays while it has a memory.

    \b
    Example: arbor memory name-theme Vega 51b09e3a "Evenings at the club"
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        theme_id = find_theme(chosen, theme)
        name_cluster(cluster_id=theme_id, name=name)
        _note(chosen, f"named the theme {theme_id} {name!r}")
    show({"agent": chosen.name, "theme": theme_id, "name": name}, as_json=as_json, people="Named.")


@click.command("refresh-theme")
@click.argument("agent")
@click.argument("theme")
@tenant_option
@json_option
def refresh_theme(agent: str, theme: str, tenant_slug: str | None, as_json: bool) -> None:
    """Compute a theme's centre, words and feeling now, from the memories that it has.

    \b
    Example: arbor memory refresh-theme Vega 51b09e3a
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        theme_id = find_theme(chosen, theme)
        recalculate_cluster(cluster_id=theme_id)
    show({"agent": chosen.name, "theme": theme_id}, as_json=as_json, people="Computed anew.")


@click.command("assign")
@click.argument("agent")
@click.argument("memory_id", metavar="ID")
@click.option("--most", type=click.IntRange(1, 3), default=3, show_default=True, help="How many themes.")
@tenant_option
@json_option
def assign_one(agent: str, memory_id: str, most: int, tenant_slug: str | None, as_json: bool) -> None:
    """Assign a memory to its themes now, instead of when maintenance comes to it.

    \b
    Example: arbor memory assign Vega 4cd01f7e
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        (found,) = find_memories(chosen, [memory_id])
        themes = assign_memory_to_clusters(memory_id=found, max_clusters=most)
    told = {"agent": chosen.name, "id": found, "themes": {str(each): fit for each, fit in themes.items()}}
    show(told, as_json=as_json, people=f"It is in {len(themes)} themes.")


@click.command("link")
@click.argument("agent")
@click.argument("memory_id", metavar="ID")
@click.argument("concept")
@click.option("--strength", type=click.FloatRange(0, 1), default=1.0, show_default=True)
@tenant_option
@json_option
def link_one(
    agent: str, memory_id: str, concept: str, strength: float, tenant_slug: str | None, as_json: bool
) -> None:
    """Link a memory to a concept by name; it is made if there is none.

    \b
    Example: arbor memory link Vega 4cd01f7e jazz --strength 0.8
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        (found,) = find_memories(chosen, [memory_id])
        link_memory_to_concept(agent_id=chosen.id, memory_id=found, concept_name=concept, strength=strength)
        links = concepts_of(memory_id=found)
        _note(chosen, f"linked the memory {found} to the concept {concept!r}")
    told = {"agent": chosen.name, "id": found, "concepts": {each.name: each.strength for each in links}}
    show(told, as_json=as_json, people=f"A case of {escape(', '.join(each.name for each in links))}.")


@click.command("place-concept")
@click.argument("agent")
@click.argument("concept")
@click.option("--below", "parent", metavar="NAME", help="The broader concept.  [default: none]")
@tenant_option
@json_option
def place_concept(
    agent: str, concept: str, parent: str | None, tenant_slug: str | None, as_json: bool
) -> None:
    """Put a concept, with all that is below it, below another or at the top.

    \b
    Examples:
      arbor memory place-concept Vega jazz --below music
      arbor memory place-concept Vega jazz
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        set_parent(agent_id=chosen.id, concept=concept, parent=parent)
        _note(chosen, f"put the concept {concept!r} {f'below {parent!r}' if parent else 'at the top'}")
    show({"agent": chosen.name, "concept": concept, "below": parent}, as_json=as_json, people="Placed.")


@click.command("merge-concepts")
@click.argument("agent")
@click.argument("kept")
@click.argument("gone")
@tenant_option
@json_option
def merge_two(agent: str, kept: str, gone: str, tenant_slug: str | None, as_json: bool) -> None:
    """Let the concept KEPT take up GONE: its memories, edges and narrower concepts.

    \b
    Example: arbor memory merge-concepts Vega jazz "jazz music"
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        merge_concepts(agent_id=chosen.id, kept=kept, gone=gone)
        _note(chosen, f"merged the concept {gone!r} into {kept!r}")
    show({"agent": chosen.name, "kept": kept, "gone": gone}, as_json=as_json, people="Merged.")


def _note(chosen: ChosenAgent, message: str) -> None:
    record(action=AuditAction.OPERATOR_ACT, actor=actor(), agent_id=chosen.id, message=message)
