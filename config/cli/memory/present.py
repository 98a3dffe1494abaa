"""`arbor memory mind`: what is present in an agent's mind now."""

from __future__ import annotations

from typing import Any

import click

from apps.memories.services.graph.nodes import labels_of
from apps.memories.services.recall.activation import activated_clusters, activated_memories
from apps.tenants.scope import tenant_transaction
from arbor.memory.activation import MOST_KEPT
from arbor.memory.relations import NodeKind
from arbor.memory.walks import Node
from config.cli.memory.finding import short
from config.cli.memory.listing import cut
from config.cli.output import json_option, show, table
from config.cli.tenancy import choose_agent, tenant_option


@click.command("mind")
@click.argument("agent")
@click.option("-k", "--limit", type=click.IntRange(1, MOST_KEPT), default=20, show_default=True)
@tenant_option
@json_option
def mind(agent: str, limit: int, tenant_slug: str | None, as_json: bool) -> None:
    """Show what an agent has recalled lately, what came to mind with it, and its themes. It fades by itself.

    \b
    Example: arbor memory mind Vega
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        present = activated_memories(agent_id=chosen.id, limit=limit)
        texts = labels_of(chosen.id, [each.id for each in present], [NodeKind.MEMORY])
        themes = activated_clusters(agent_id=chosen.id)
    memories = [(each, texts.get(Node(NodeKind.MEMORY, each.id), "")) for each in present]
    told = {
        "agent": chosen.name,
        "memories": [{"id": each.id, "level": round(each.level, 4), "text": text} for each, text in memories],
        "themes": [
            {"id": each.id, "name": each.name, "activation": round(each.activation, 4)} for each in themes
        ],
    }
    people: Any = table(
        ("present", "id", "memory or theme"),
        [(f"{each.activation:.2f}", short(each.id), f"theme: {each.name}") for each in themes]
        + [(f"{each.level:.2f}", short(each.id), cut(text)) for each, text in memories],
    )
    show(told, as_json=as_json, people=people if present else "Nothing: it has not recalled anything lately.")
