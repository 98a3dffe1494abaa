"""The questions of `arbor memory` to the knowledge graph: causes, evidence, connections, paths, contradictions."""

from __future__ import annotations

from typing import Any

import click

from apps.memories.services.graph.walks import (
    EVIDENCE_HOPS,
    find_causes,
    find_connected,
    find_contradictions,
    find_path,
    find_supporting_evidence,
)
from apps.tenants.scope import tenant_transaction
from arbor.memory.relations import Relation
from arbor.memory.walks import MAX_HOPS, MAX_NODES
from config.cli.memory.finding import find_node, short
from config.cli.memory.listing import cut
from config.cli.memory.ties import bounded_note, found_value, show_found, tie_text
from config.cli.output import json_option, show, table
from config.cli.tenancy import choose_agent, tenant_option

hops_range = click.IntRange(1, MAX_HOPS)


@click.command("causes")
@click.argument("agent")
@click.argument("what", metavar="ID")
@click.option("--hops", type=hops_range, default=MAX_HOPS, show_default=True, help="How many edges far.")
@tenant_option
@json_option
def causes(agent: str, what: str, hops: int, tenant_slug: str | None, as_json: bool) -> None:
    """Show what brought something about, and what brought that about.

    \b
    Example: arbor memory causes Vega 4cd01f7e
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_causes(agent_id=chosen.id, node=find_node(chosen, what), hops=hops)
    show_found(chosen.name, found, as_json, "Nothing is known to have brought it about.")


@click.command("evidence")
@click.argument("agent")
@click.argument("what", metavar="ID")
@click.option("--hops", type=hops_range, default=EVIDENCE_HOPS, show_default=True, help="How many edges far.")
@tenant_option
@json_option
def evidence(agent: str, what: str, hops: int, tenant_slug: str | None, as_json: bool) -> None:
    """Show what speaks for something, and what speaks for that.

    \b
    Example: arbor memory evidence Vega belief:0c5512aa
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_supporting_evidence(agent_id=chosen.id, node=find_node(chosen, what), hops=hops)
    show_found(chosen.name, found, as_json, "Nothing speaks for it.")


@click.command("connected")
@click.argument("agent")
@click.argument("what", metavar="ID")
@click.option("--hops", type=hops_range, default=2, show_default=True, help="How many edges far.")
@click.option(
    "--relation",
    "relations",
    multiple=True,
    type=click.Choice([each.value for each in Relation]),
    help="Along these only.",
)
@tenant_option
@json_option
def connected(
    agent: str, what: str, hops: int, relations: tuple[str, ...], tenant_slug: str | None, as_json: bool
) -> None:
    """Show everything within some edges of something, along any relation, either way.

    \b
    Example: arbor memory connected Vega concept:water --hops 2
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_connected(
            agent_id=chosen.id,
            node=find_node(chosen, what),
            hops=hops,
            relations=[Relation(each) for each in relations] or None,
        )
    show_found(chosen.name, found, as_json, "Nothing is tied to it.")


@click.command("path")
@click.argument("agent")
@click.argument("start")
@click.argument("end")
@click.option("--directed", is_flag=True, help="Only in the direction of relations.")
@tenant_option
@json_option
def path(agent: str, start: str, end: str, directed: bool, tenant_slug: str | None, as_json: bool) -> None:
    """Show how two things are tied together: a shortest path. Exit code 1 when there is none.

    \b
    Example: arbor memory path Vega 4cd01f7e concept:water
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_path(
            agent_id=chosen.id,
            start=find_node(chosen, start),
            end=find_node(chosen, end),
            directed=directed,
        )
    way = found.found[0] if found.found else None
    told = {"agent": chosen.name, "path": found_value(way) if way else None, "bounded": found.bounded}
    if way is not None:
        people = "\n".join(tie_text(tie) for tie in way.path) or "They are the same."
    elif found.bounded:
        people = f"Not found within the bound: {MAX_NODES:,} things were looked at, and there are more."
    else:
        people = f"No path of at most {MAX_HOPS} edges joins them."
    show(told, as_json=as_json, people=people)
    if way is None:
        raise click.exceptions.Exit(1)


@click.command("contradictions")
@click.argument("agent")
@click.argument("what", metavar="[ID]", required=False)
@tenant_option
@json_option
def contradictions(agent: str, what: str | None, tenant_slug: str | None, as_json: bool) -> None:
    """Show what cannot both be true: of all that the agent knows, or about one thing.

    \b
    Examples:
      arbor memory contradictions Vega
      arbor memory contradictions Vega belief:0c5512aa
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        about = find_node(chosen, what) if what else None
        found = find_contradictions(agent_id=chosen.id, about=about)
    told = {
        "agent": chosen.name,
        "contradictions": [
            {
                "first": {"kind": each.first.kind, "id": each.first.id, "text": each.first.label},
                "second": {"kind": each.second.kind, "id": each.second.id, "text": each.second.label},
                "weight": each.weight,
                "note": each.note,
            }
            for each in found.found
        ],
        "bounded": found.bounded,
    }
    people: Any = table(
        ("sure", "id", "this", "id", "or this", "note"),
        (
            (
                f"{each.weight:.2f}",
                short(each.first.id),
                cut(each.first.label, 70),
                short(each.second.id),
                cut(each.second.label, 70),
                cut(each.note, 60),
            )
            for each in found.found
        ),
        title=bounded_note(found),
    )
    show(told, as_json=as_json, people=people if found.found else "Nothing contradicts anything.")
