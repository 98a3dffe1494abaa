"""List memories: filtered, or by their similarity to a text."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from apps.memories.models import Concept, Memory, MemoryConcept
from apps.memories.services.search import search_similar_memories
from arbor.memory.values import MemoryType
from config.cli.kit import Output
from config.cli.lookup import find_concept
from config.cli.output import cut, short, table
from config.cli.tenancy import ChosenAgent, in_agent_transaction, with_agent


@in_agent_transaction
def list_memories(agent: ChosenAgent, /, *, limit: int, **wanted: Any) -> Output:
    """List an agent's memories, the latest first."""
    found = list(_chosen(agent, **wanted).order_by("-occurred_at", "-id")[: limit + 1])
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
    told = {"agent": agent.name, "memories": rows, "more": len(found) > limit}
    return Output(told, people=people if rows else f"{agent.name} has no such memory.")


def _chosen(
    agent: ChosenAgent,
    *,
    types: tuple[str, ...],
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
        "type__in": types or None,
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


@with_agent
def list_similar(agent: ChosenAgent, *, text: str, limit: int, types: tuple[str, ...]) -> Output:
    """Show the memories nearest to TEXT by meaning alone: words, time and importance do not count."""
    found = search_similar_memories(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        text=text,
        limit=limit,
        types=[MemoryType(each) for each in types],
    )
    told = {
        "agent": agent.name,
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
    return Output(told, people=people if found else f"{agent.name} has no such memory.")
