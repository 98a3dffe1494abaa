"""`arbor memory list`: an agent's memories, filtered."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from django.db.models import Q, QuerySet

from apps.memories.models import Concept, Memory, MemoryConcept
from apps.tenants.scope import tenant_transaction
from arbor.memory.values import MemoryStatus, MemoryType
from config.cli.memory.finding import find_concept, short
from config.cli.output import json_option, show, table
from config.cli.tenancy import ChosenAgent, choose_agent, tenant_option
from config.cli.values import Moment

#: Longer texts are cut in a list.
_SHOWN = 100


@click.command("list")
@click.argument("agent")
@click.option("--type", "kinds", multiple=True, type=click.Choice([each.value for each in MemoryType]))
@click.option(
    "--status",
    type=click.Choice([*(each.value for each in MemoryStatus), "all"]),
    default=MemoryStatus.ACTIVE.value,
    show_default=True,
)
@click.option("--session", help="Of one session.")
@click.option("--role", help="Said by one speaker.")
@click.option("--concept", metavar="NAME", help="Cases of a concept, or of one below it.")
@click.option("--min-importance", type=click.FloatRange(0, 1))
@click.option("--min-trust", type=click.FloatRange(0, 1))
@click.option("--since", type=Moment(), help="That happened since: 2026-05-01.")
@click.option("--until", type=Moment(), help="That happened before.")
@click.option("-k", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@tenant_option
@json_option
def list_them(agent: str, limit: int, tenant_slug: str | None, as_json: bool, **wanted: Any) -> None:
    """List an agent's memories, the latest first. Only a look: it does not count as a recall.

    \b
    Examples:
      arbor memory list Vega
      arbor memory list Vega --type procedural --type strategic --min-trust 0.5
      arbor memory list Vega --concept water --since 2026-01-01 --json
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = list(_chosen(chosen, **wanted).order_by("-occurred_at", "-id")[: limit + 1])
    rows = [memory_line(memory) for memory in found[:limit]]
    people: Any = table(
        ("id", "when", "type", "imp", "trust", "who", "memory"),
        (
            (
                short(row["id"]),
                f"{row['occurred_at']:%Y-%m-%d %H:%M}",
                row["type"] if row["status"] == "active" else f"{row['type']}, {row['status']}",
                f"{row['importance']:.2f}",
                f"{row['trust']:.2f}",
                row["role"],
                cut(row["content"]),
            )
            for row in rows
        ),
        title=f"The latest {limit}; there are more: --limit" if len(found) > limit else None,
    )
    told = {"agent": chosen.name, "memories": rows, "more": len(found) > limit}
    show(told, as_json=as_json, people=people if rows else f"{chosen.name} has no such memory.")


def _chosen(
    agent: ChosenAgent,
    *,
    kinds: tuple[str, ...],
    status: str,
    session: str | None,
    role: str | None,
    concept: str | None,
    min_importance: float | None,
    min_trust: float | None,
    since: datetime | None,
    until: datetime | None,
) -> QuerySet[Memory]:
    asked = {
        "type__in": kinds or None,
        "status": None if status == "all" else status,
        "session": session,
        "role": role,
        "importance__gte": min_importance,
        "trust__gte": min_trust,
        "occurred_at__gte": since,
        "occurred_at__lt": until,
    }
    filters = {name: value for name, value in asked.items() if value is not None}
    memories: QuerySet[Memory] = Memory.objects.filter(agent_id=agent.id, **filters)
    memories = memories.defer("embedding", "lexical")
    return memories if concept is None else memories.filter(id__in=_cases(agent, concept))


def _cases(agent: ChosenAgent, name: str) -> Any:
    concept = find_concept(agent, name)
    its = Concept.objects.filter(Q(id=concept) | Q(ancestors__contains=str(concept)), agent_id=agent.id)
    return MemoryConcept.objects.filter(concept_id__in=its.values("id")).values("memory_id")


def memory_line(memory: Memory) -> dict[str, Any]:
    """Return a memory as a line of a list, for JSON."""
    return {
        "id": memory.id,
        "type": memory.type,
        "status": memory.status,
        "content": memory.content,
        "role": memory.role,
        "session": memory.session,
        "occurred_at": memory.occurred_at,
        "importance": memory.importance,
        "trust": memory.trust,
        "retention": memory.retention,
        "expires_at": memory.expires_at,
    }


def cut(text: str, longest: int = _SHOWN) -> str:
    """Return a text on one line, its beginning if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"
