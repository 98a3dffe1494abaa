"""`arbor memory similar`: the memories that are nearest to a text, by meaning alone."""

from __future__ import annotations

from typing import Any

import click

from apps.memories.services.recall.search import search_similar_memories
from arbor.memory.recall_request import MAX_LIMIT
from arbor.memory.values import MemoryType
from config.cli.memory.finding import short
from config.cli.memory.listing import cut
from config.cli.output import json_option, show, table
from config.cli.tenancy import choose_agent, tenant_option


@click.command("similar")
@click.argument("agent")
@click.argument("text")
@click.option("-k", "--limit", type=click.IntRange(1, MAX_LIMIT), default=10, show_default=True)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice([each.value for each in MemoryType]),
    help="Of these types.",
)
@tenant_option
@json_option
def similar(
    agent: str, text: str, limit: int, types: tuple[str, ...], tenant_slug: str | None, as_json: bool
) -> None:
    """Show the memories nearest to TEXT by meaning alone: words, time and importance count for nothing.

    Only a look. `arbor recall` says what the agent would recall.

    \b
    Examples:
      arbor memory similar Vega "the river was frozen"
      arbor memory similar Vega "how to read a gauge" --type procedural -k 3
    """
    chosen = choose_agent(agent, tenant_slug)
    found = search_similar_memories(
        tenant_id=chosen.tenant_id,
        agent_id=chosen.id,
        text=text,
        limit=limit,
        types=[MemoryType(each) for each in types],
    )
    told = {
        "agent": chosen.name,
        "query": text,
        "results": [
            {
                "id": each.id,
                "similarity": round(each.similarity, 4),
                "type": each.type,
                "content": each.content,
                "role": each.role,
                "session": each.session,
                "occurred_at": each.occurred_at,
            }
            for each in found
        ],
    }
    people: Any = table(
        ("similar", "id", "when", "type", "who", "memory"),
        (
            (
                f"{each.similarity:.2f}",
                short(each.id),
                f"{each.occurred_at:%Y-%m-%d %H:%M}",
                each.type,
                each.role,
                cut(each.content),
            )
            for each in found
        ),
    )
    show(told, as_json=as_json, people=people if found else f"{chosen.name} has no such memory.")
