"""Search all sources of an agent, and documents alone."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.markup import escape
from rich.text import Text

from apps.knowledge.services.passage_search import PassageQuery, search_passages
from apps.knowledge.services.search import search_my_memories
from arbor.knowledge.found_passages import FoundPassage
from arbor.knowledge.merging import MemorySearch, SourceResult
from config.cli.kit.declarations import Output
from config.cli.kit.output import table
from config.cli.kit.tenancy import ChosenAgent, choose_tenant, with_agent

#: Characters of a text in a table.
_SHOWN = 100


@with_agent
def search_all(agent: ChosenAgent, /, *, query: str, term: str, limit: int) -> Output:
    """Search all that an agent may know."""
    found = search_my_memories(
        tenant_id=agent.tenant_id, agent_id=agent.id, text=query, term=term, limit=limit
    )
    value = {
        "agent": agent.name,
        "tenant": agent.tenant_slug,
        "query": query,
        "term": found.term,
        "results": [_result_value(result) for result in found.results],
        "missing": found.notes,
        "forbidden": [source.value for source in found.forbidden],
    }
    return Output(value, text=_table(agent.name, found))


def _result_value(result: SourceResult) -> dict[str, Any]:
    return {
        "source": result.source.value,
        "id": result.id,
        "score": round(result.score, 4),
        "similarity": round(result.similarity, 4),
        "recency": round(result.recency, 4),
        "importance": round(result.importance, 4),
        "source_priority": result.source_priority,
        "citation": result.citation,
        "at": result.at.isoformat(),
        "content": result.content,
    }


def _table(name: str, found: MemorySearch) -> Group:
    notes = [Text(f"Incomplete: {note}.") for note in found.notes]
    if not found.results:
        return Group(f"{escape(name)} knows nothing that fits.", *notes)
    shown = table(
        ("score", "source", "text", "citation"),
        (
            (
                f"{result.score:.2f}",
                result.source.value,
                " ".join(result.content.split())[:_SHOWN],
                result.citation[:_SHOWN],
            )
            for result in found.results
        ),
    )
    return Group(shown, *notes)


def search_documents(query: str, category: str | None, limit: int, tenant_slug: str | None) -> Output:
    """Search the published documents of a tenant."""
    tenant = choose_tenant(tenant_slug)
    found = search_passages(
        tenant_id=tenant.id, query=PassageQuery(text=query, category=category, limit=limit)
    )
    value = {
        "tenant": tenant.slug,
        "query": query,
        "by_meaning": found.by_meaning,
        "missing": found.notes,
        "results": [_passage_value(passage) for passage in found.passages],
    }
    notes = [] if found.by_meaning else ["Words alone were compared: the embedder did not answer."]
    notes += [escape(f"{note}.") for note in found.notes]
    if not found.passages:
        return Output(value, text=Group("No published document has anything about that.", *notes))
    shown = table(
        ("document", "place", "text"),
        (
            (passage.title or passage.name, passage.place, " ".join(passage.text.split())[:_SHOWN])
            for passage in found.passages
        ),
    )
    return Output(value, text=Group(shown, *notes))


def _passage_value(passage: FoundPassage) -> dict[str, Any]:
    return {
        "id": str(passage.id),
        "document_id": str(passage.document_id),
        "document": passage.name,
        "title": passage.title,
        "version": passage.version,
        "category": passage.category,
        "place": passage.place,
        "similarity": None if passage.similarity is None else round(passage.similarity, 4),
        "words": round(passage.words, 4),
        "text": passage.text,
    }
