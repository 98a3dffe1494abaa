"""Explain a recall to a person: the ranking with its score components, and the reasons why a memory is not in it.

Nothing is written: no use is counted and no mind is cached. The caller's transaction is open, so the query is embedded only
where the embedder needs no network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from apps.memories.models import Memory
from apps.memories.services.embedding.embedding import embeds_here
from apps.memories.services.recall import queries
from apps.memories.services.recall.recaller import Recaller, embed_meaning, read_best
from apps.memories.services.recall.scan import Query, ScanResult, filter_conditions, scan, score_inputs
from apps.tenants.statements import fetch
from arbor.embedding.models import is_refused
from arbor.memory.recall.fusion import Background, RankedCandidate, rank
from arbor.memory.recall.recall_request import EVERYTHING, RecallFilter, RecallRequest
from arbor.memory.values import MemoryStatus, Recalled, ScoreComponents


@dataclass(frozen=True, kw_only=True)
class Absence:
    """The reasons why a memory is not among the recalled ones, or its place among them."""

    memory_id: UUID
    reasons: tuple[str, ...]
    #: The components of the memory's score; None if it could not be scored.
    terms: ScoreComponents | None = None


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The recalled memories, best first, and why a memory is not among them, if a person asked for that."""

    recalled: Sequence[Recalled]
    #: Whether vectors were compared; otherwise words alone decided.
    compared: bool
    absence: Absence | None = None


def explain_recall(*, tenant_id: UUID, request: RecallRequest, absent: UUID | None = None) -> Explanation:
    """Recall as a person in the open transaction, and explain why the memory `absent` is not recalled."""
    recaller = Recaller()
    (meaning,) = recaller.meanings([(request.agent_id, request.text)])
    vector = embed_meaning(tenant_id, request.agent_id, meaning) if embeds_here(meaning.model) else None
    request = replace(request, vector=vector, model=meaning.model)
    (query,) = recaller.queries([request])
    found = scan(query)
    (memories,) = read_best([(query, found)])
    return Explanation(
        recalled=memories,
        compared=found.compared,
        absence=_explain_absence(query, found, memories, absent) if absent is not None else None,
    )


def _explain_absence(
    query: Query, found: ScanResult, memories: Sequence[Recalled], memory_id: UUID
) -> Absence:
    request = query.request
    places = [memory.id for memory in memories]
    if memory_id in places:
        place = places.index(memory_id)
        return Absence(
            memory_id=memory_id,
            reasons=(f"it is recalled, as number {place + 1}",),
            terms=memories[place].terms,
        )
    memory = (
        Memory.objects.filter(agent_id=request.agent_id, id=memory_id).defer("embedding", "lexical").first()
    )
    if memory is None:
        return Absence(memory_id=memory_id, reasons=("this agent has no memory with that id",))
    excluded = [
        *_unrecallable(memory, request),
        *_filtered_out(memory, request.only),
        *_outside_groups(memory, request.only),
    ]
    ranking = _rank_all(query, found)
    place, ranked = next(
        ((position, other) for position, other in enumerate(ranking) if other.id == memory_id), (-1, None)
    )
    if ranked is None:
        ranked = _score_alone(query, found.background, memory)
    reasons = list(excluded)
    if not excluded:
        reasons += _outranked(ranked, place, memories, request.limit)
    if is_refused(memory.embedding_model):
        reasons.append("its embedder cannot embed it, so that only its words can match")
    elif not memory.embedding_model:
        reasons.append("it is not embedded yet, so that only its words can match")
    return Absence(memory_id=memory_id, reasons=tuple(reasons), terms=ranked.terms if ranked else None)


def _unrecallable(memory: Memory, request: RecallRequest) -> list[str]:
    if memory.status != MemoryStatus.ACTIVE:
        return [f"it is {memory.status}; restore it to have it recalled"]
    if memory.expires_at is not None and memory.expires_at <= request.now:
        return ["it has expired"]
    return []


def _filtered_out(memory: Memory, only: RecallFilter) -> list[str]:
    reasons = []
    if only.types and memory.type not in only.types:
        reasons.append(f"it is {memory.type}, and the filter asks for {', '.join(sorted(only.types))}")
    if memory.importance < only.min_importance:
        reasons.append(f"its importance is {memory.importance:.2f}, below {only.min_importance:g}")
    if memory.trust < only.min_trust:
        reasons.append(f"its trust is {memory.trust:.2f}, below {only.min_trust:g}")
    if only.since is not None and memory.occurred_at < only.since:
        reasons.append("it is older than the filter allows")
    if only.until is not None and memory.occurred_at >= only.until:
        reasons.append("it is later than the filter allows")
    return reasons


def _outside_groups(memory: Memory, only: RecallFilter) -> list[str]:
    groups = {
        "session": RecallFilter(session=only.session),
        "episode": RecallFilter(episode=only.episode),
        "concept": RecallFilter(concept=only.concept),
        "cluster": RecallFilter(cluster=only.cluster),
    }
    return [
        f"it is not of the {name} that the filter asks for"
        for name, group in groups.items()
        if not _meets(memory, group)
    ]


def _meets(memory: Memory, only: RecallFilter) -> bool:
    conditions, values = filter_conditions(only)
    if not conditions:
        return True
    statement = queries.MEMORY_MEETS_FILTER.format(conditions=conditions)
    return bool(fetch(statement, agent=memory.agent_id, memory=memory.id, **values))


def _outranked(
    ranked: RankedCandidate | None, place: int, memories: Sequence[Recalled], limit: int
) -> list[str]:
    if ranked is None:
        return ["it has neither the words nor the meaning of the query"]
    least = memories[-1].score if memories else 0.0
    where = f"it is outranked by {place}" if place >= 0 else "it is not among the candidates"
    return [
        f"{where}: its score is {ranked.score:.2f}, and the last of the {len(memories)} shown has {least:.2f}"
        + (f"; ask for more than {limit}" if place >= 0 else "")
    ]


def _rank_all(query: Query, found: ScanResult) -> list[RankedCandidate]:
    return rank(score_inputs(query, found), now=query.request.now, limit=len(found.candidates))


def _score_alone(query: Query, background: Background, memory: Memory) -> RankedCandidate | None:
    """Score a memory that is no candidate, without the shares that its neighbors would give it."""
    alone = replace(query, request=replace(query.request, only=EVERYTHING))
    ranking = _rank_all(alone, replace(scan(alone, memory_id=memory.id), background=background))
    return next((ranked for ranked in ranking if ranked.id == memory.id), None)
