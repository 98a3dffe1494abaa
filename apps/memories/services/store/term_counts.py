"""The term counts of an agent's memories, and the lock under which its mind changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.memories.services.store import queries
from apps.tenants.encoding import to_json
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel

#: The row of `memories_term` that counts the agent's memories.
ALL_MEMORIES = 0

#: The terms of each of some memories: a lexical vector, or the terms alone.
type _TermsOfMemories = Iterable[Mapping[int, float] | Sequence[int]]


def lock_minds(agent_ids: Iterable[UUID]) -> None:
    """Lock the minds of agents against other transactions that change them. One statement.

    Otherwise two transactions that store the same memory could deadlock, and would count its terms twice.
    """
    keys = sorted({int.from_bytes(agent_id.bytes[8:], signed=True) for agent_id in agent_ids})
    fetch(queries.LOCK_MINDS, keys=keys)


def count_terms(agent_id: UUID, *, terms: _TermsOfMemories, sign: int) -> None:
    """Add (`sign` 1) or subtract (-1) the terms of an agent's memories. One statement; the caller has locked the mind."""
    count_terms_of({agent_id: terms}, sign=sign)


def count_terms_of(terms: Mapping[UUID, _TermsOfMemories], *, sign: int) -> None:
    """Add or subtract the terms of several agents' memories. One statement; none without memories. The caller has locked the minds."""
    values = term_count_rows(terms, sign=sign)
    if values["terms"]:
        fetch(queries.COUNT_TERMS_ALONE, **values)


def term_count_rows(terms_of_agents: Mapping[UUID, _TermsOfMemories], *, sign: int) -> dict[str, Any]:
    """Return the values of COUNT_TERMS: the number of memories of each agent with each term, in the order of the locks."""
    agents = sorted(terms_of_agents)
    numbers: list[int] = []
    terms: list[int] = []
    changes: list[int] = []
    for number, agent_id in enumerate(agents, start=1):
        counts = _counts(terms_of_agents[agent_id])
        in_order = sorted(counts)
        numbers += [number] * len(in_order)
        terms += in_order
        changes += [sign * counts[term] for term in in_order]
    return {
        "counted_agents": agents,
        "agent_numbers": numbers,
        "terms": terms,
        "changes": changes,
        "most_recent": queries.MAX_RECENT_TERMS,
    }


def _counts(terms_of_memories: _TermsOfMemories) -> Counter[int]:
    counts: Counter[int] = Counter()
    memories = 0
    for terms in terms_of_memories:
        counts.update(terms.keys() if isinstance(terms, Mapping) else set(terms))
        memories += 1
    if memories:
        counts[ALL_MEMORIES] = memories
    return counts


def terms_of(lexical: Any) -> list[int]:
    """Return the terms of a stored lexical vector: pgvector counts places from 0 here, and from 1 in the database."""
    return [place + 1 for place in lexical.indices()] if lexical else []


@dataclass(frozen=True, kw_only=True)
class TermStatistics:
    """The statistics of some terms among one agent's memories."""

    #: The number of memories with each term; terms without a memory are missing.
    df: Mapping[int, int] = field(default_factory=dict)
    #: The number of all memories.
    documents: int = 0
    #: The model of the memories' vectors; None while the agent has no memories.
    model: EmbeddingModel | None = None


def terms_to_count(terms: Collection[int] | None) -> list[int]:
    """Return the terms that a statement must count for the statistics of some terms; none if no statistics are wanted."""
    return [] if terms is None else [*terms, ALL_MEMORIES]


def term_statistics(counts: Iterable[tuple[int, int]], model: EmbeddingModel | None) -> TermStatistics:
    """Build statistics from pairs of a term and its number of memories; ALL_MEMORIES counts all memories."""
    df: dict[int, int] = dict(counts)
    return TermStatistics(documents=df.pop(ALL_MEMORIES, 0), df=df, model=model)


def read_term_statistics(terms: Mapping[UUID, Collection[int]]) -> dict[UUID, TermStatistics]:
    """Return the statistics of terms by agent, in the open transaction. One statement; none without agents."""
    if not terms:
        return {}
    requests = [
        {"agent_id": str(agent_id), "terms": terms_to_count(wanted)} for agent_id, wanted in terms.items()
    ]
    counts: dict[UUID, list[tuple[int, int]]] = {agent_id: [] for agent_id in terms}
    models: dict[UUID, EmbeddingModel] = {}
    for agent_id, term, number, name in fetch(
        queries.TERM_STATISTICS, requests=to_json(requests), agents=list(terms)
    ):
        if term is None:
            models[agent_id] = EmbeddingModel(name=name, dimension=number)
        else:
            counts[agent_id].append((term, number))
    return {agent_id: term_statistics(found, models.get(agent_id)) for agent_id, found in counts.items()}


def read_frequencies(agent_id: UUID, terms: Iterable[int]) -> tuple[dict[int, int], int]:
    """Return the number of the agent's memories with each term, and the number of all of them. One statement."""
    rows = fetch(queries.TERM_FREQUENCIES, agent=agent_id, terms=[ALL_MEMORIES, *sorted(terms)])
    df: dict[int, int] = dict(map(tuple, rows))
    return df, df.pop(ALL_MEMORIES, 0)
