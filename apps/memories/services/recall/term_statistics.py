"""Term statistics for a query: document frequencies among an agent's memories, and the model of their vectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from apps.memories.services.store.term_counts import ALL_MEMORIES
from apps.tenants.encoding import to_json
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel

# A mind's row has no term: the model of its vectors. LATERAL: one range of the key for each agent.
_STATISTICS = """
SELECT asked.agent_id, found.term, found.memories, NULL
FROM json_to_recordset(%(asked)s::json) AS asked (agent_id uuid, terms int[])
CROSS JOIN LATERAL (
    SELECT term, memories FROM memories_term t
    WHERE t.tenant_id = %(tenant)s AND t.agent_id = asked.agent_id AND t.term = ANY(asked.terms)
) found
UNION ALL
SELECT agent_id, NULL, embedding_dimension, embedding_model FROM memories_mind
WHERE tenant_id = %(tenant)s AND agent_id = ANY(%(agents)s::uuid[])
"""


@dataclass(frozen=True, kw_only=True)
class TermStatistics:
    """The statistics of some terms among one agent's memories."""

    #: In how many memories each term occurs; a term that occurs in none is missing.
    df: Mapping[int, int] = field(default_factory=dict)
    #: How many memories there are.
    documents: int = 0
    #: The model of their vectors; None while the agent remembers nothing.
    model: EmbeddingModel | None = None


def asked_terms(terms: Collection[int] | None) -> list[int]:
    """Return what a statement asks for to know the statistics of these terms; nothing where no statistics are wanted."""
    return [] if terms is None else [*terms, ALL_MEMORIES]


def term_statistics(counts: Iterable[tuple[int, int]], model: EmbeddingModel | None) -> TermStatistics:
    """Return statistics from pairs of a term and in how many memories it occurs, the term of all memories among them."""
    df: dict[int, int] = dict(counts)
    return TermStatistics(documents=df.pop(ALL_MEMORIES, 0), df=df, model=model)


def read_term_statistics(terms: Mapping[UUID, Collection[int]]) -> dict[UUID, TermStatistics]:
    """Return the statistics of these terms, by agent, in the open transaction. One statement; none for no agent."""
    if not terms:
        return {}
    asked = [{"agent_id": str(agent_id), "terms": asked_terms(wanted)} for agent_id, wanted in terms.items()]
    counts: dict[UUID, list[tuple[int, int]]] = {agent_id: [] for agent_id in terms}
    models: dict[UUID, EmbeddingModel] = {}
    for agent_id, term, number, name in fetch(_STATISTICS, asked=to_json(asked), agents=list(terms)):
        if term is None:
            models[agent_id] = EmbeddingModel(name=name, dimension=number)
        else:
            counts[agent_id].append((term, number))
    return {agent_id: term_statistics(found, models.get(agent_id)) for agent_id, found in counts.items()}
