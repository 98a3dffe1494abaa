"""List memories, filtered or by their similarity to a text, and code snippets."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from rich.markup import escape

from apps.memories.models import CodeSnippet, Concept, Memory, MemoryConcept
from apps.memories.services.recall.search import search_similar_memories
from apps.memories.services.store.snippets import find_code
from arbor.memory.values import MemoryStatus, MemoryType
from config.cli.kit.columns import OutputColumn, listing, number, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_concept, find_id
from config.cli.kit.output import cut, format_relative_time, short
from config.cli.kit.tenancy import ChosenAgent, in_agent_transaction, with_agent


def minute(moment: datetime) -> str:
    """Return a moment as a cell, to the minute."""
    return f"{moment:%Y-%m-%d %H:%M}"


MEMORY_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("occurred_at", "when", cell=minute),
    OutputColumn(
        head="type",
        value=lambda memory: (
            memory.type if memory.status == MemoryStatus.ACTIVE else f"{memory.type}, {memory.status}"
        ),
    ),
    OutputColumn("importance", "imp", cell=number),
    OutputColumn("trust", "trust", cell=number),
    OutputColumn("role", "who"),
    OutputColumn("content", "memory", cell=cut),
    *(OutputColumn(key) for key in ("type", "status", "session", "retention", "expires_at")),
)
SIMILAR_COLUMNS = (
    OutputColumn("similarity", "similar", value=lambda memory: round(memory.similarity, 4), cell=number),
    OutputColumn("id", "id", cell=short),
    OutputColumn("occurred_at", "when", cell=minute),
    OutputColumn("type", "type"),
    OutputColumn("role", "who"),
    OutputColumn("content", "memory", cell=cut),
    OutputColumn("session"),
)


@in_agent_transaction
def list_memories(agent: ChosenAgent, /, *, limit: int, **wanted: Any) -> Output:
    """List an agent's memories, the latest first."""
    memories = list(_filter_memories(agent, **wanted).order_by("-occurred_at", "-id")[: limit + 1])
    more = len(memories) > limit
    return listing(
        "memories",
        memories[:limit],
        MEMORY_COLUMNS,
        about={"agent": agent.name, "more": more},
        empty=f"{agent.name} has no such memory.",
        title=f"The latest {limit}; there are more: --limit" if more else None,
    )


def _filter_memories(
    agent: ChosenAgent,
    *,
    types: tuple[str, ...],
    status: str,
    session: str | None,
    role: str | None,
    concept: str | None,
    min_importance: float | None,
    min_trust: float | None,
    pinned: bool,
    since: datetime | None,
    until: datetime | None,
) -> QuerySet[Memory]:
    conditions = {
        "type__in": types or None,
        "status": None if status == "all" else status,
        "session": session,
        "role": role,
        "importance__gte": min_importance,
        "trust__gte": min_trust,
        "pin__isnull": False if pinned else None,
        "occurred_at__gte": since,
        "occurred_at__lt": until,
    }
    filters = {name: value for name, value in conditions.items() if value is not None}
    memories: QuerySet[Memory] = Memory.objects.filter(agent_id=agent.id, **filters)
    memories = memories.defer("embedding", "lexical")
    return memories if concept is None else memories.filter(id__in=_cases(agent, concept))


def _cases(agent: ChosenAgent, name: str) -> Any:
    concept = find_concept(agent, name)
    cases = Concept.objects.filter(Q(id=concept) | Q(ancestors__contains=str(concept)), agent_id=agent.id)
    return MemoryConcept.objects.filter(concept_id__in=cases.values("id")).values("memory_id")


def memory_value(memory: Memory) -> dict[str, Any]:
    """Return a memory as a line of a list, for JSON."""
    return row_to_dict(memory, MEMORY_COLUMNS)


@with_agent
def list_similar(agent: ChosenAgent, *, text: str, limit: int, types: tuple[str, ...]) -> Output:
    """Show the memories nearest to TEXT by meaning alone: words, time and importance do not count."""
    results = search_similar_memories(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        text=text,
        limit=limit,
        types=[MemoryType(name) for name in types],
    )
    return listing(
        "results",
        results,
        SIMILAR_COLUMNS,
        about={"agent": agent.name, "query": text},
        empty=f"{agent.name} has no such memory.",
    )


SNIPPET_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("language", "language", cell=lambda language: language or "-"),
    OutputColumn("created_at", "saved", cell=format_relative_time),
    OutputColumn("source", "from"),
    OutputColumn(head="about", value=lambda snippet: cut(snippet.title or snippet.code)),
    OutputColumn("title"),
    OutputColumn("code"),
)


@in_agent_transaction
def list_code(agent: ChosenAgent, *, about: str | None, limit: int) -> Output:
    """List an agent's code snippets, the latest first."""
    if about is None:
        snippets = list(CodeSnippet.objects.filter(agent_id=agent.id).order_by("-created_at", "-id")[:limit])
    else:
        snippets = find_code(agent_id=agent.id, text=about, limit=limit)
    return listing(
        "code",
        snippets,
        SNIPPET_COLUMNS,
        about={"agent": agent.name},
        empty=f"{escape(agent.name)} has no such code.",
    )


@in_agent_transaction
def show_code(agent: ChosenAgent, *, code_id: str) -> Output:
    """Show a code snippet as it was said."""
    snippet = CodeSnippet.objects.get(id=find_id(agent, CodeSnippet, code_id))
    return Output({"agent": agent.name, **row_to_dict(snippet, SNIPPET_COLUMNS)}, text=escape(snippet.code))
