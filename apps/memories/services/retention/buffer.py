"""Fill and search the buffers of agents, promote items that matter to memories, delete expired items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from apps.agents.services.locks import lock_schedule
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import BufferItem
from apps.memories.services.embedding.embedding import embed_agent_texts
from apps.memories.services.embedding.literals import fit_terms, sparsevec_text
from apps.memories.services.embedding.minds import query_vector
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.memories.services.retention import queries
from apps.memories.services.retention.forgetting import ACTOR
from apps.memories.services.store.appraisal import word_lists
from apps.memories.services.store.remember import store
from apps.memories.services.store.term_counts import lock_minds
from apps.signals.services.emission import emit
from apps.tenants.encoding import to_json
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import LimitReached, NotFound
from arbor.ids import uuid7
from arbor.memory.buffer import (
    CAPACITY,
    MIN_COSINE,
    MIN_WORD_SHARE,
    PROMOTION_ACCESSES,
    PROMOTION_IMPORTANCE,
    SHARE_ROUNDING,
    NewBufferItem,
    stored_weights,
    word_share_weights,
)
from arbor.memory.content import content_hash
from arbor.memory.forgetting import effective_importance
from arbor.memory.recall.recall_request import check_query
from arbor.memory.text.lexical import document_vector
from arbor.memory.values import NewMemory
from arbor.quotations import counted
from arbor.signals import SignalName, memory_data, signal

_MATTERING = Q(promoted_to=None) & (
    Q(importance__gte=PROMOTION_IMPORTANCE) | Q(accesses__gte=PROMOTION_ACCESSES)
)
#: The most items that one step promotes; their texts are embedded together.
STEP = 50


@dataclass(frozen=True, kw_only=True)
class FoundBufferItem:
    """A buffer item that a search found."""

    id: UUID
    content: str
    role: str
    source: str
    importance: float
    #: The number of the agent's own searches that found the item, including this one if it counts.
    accesses: int
    created_at: datetime
    expires_at: datetime
    #: The similarity in meaning plus the share of the query's words that occur in the item.
    score: float
    #: How far the content is believed, 0 to 1.
    trust: float


def add_buffer_items(*, agent_id: UUID, items: Sequence[NewBufferItem]) -> list[UUID]:
    """Add items to one agent's buffer, like `add_to_buffers`, and return their ids in order."""
    return add_to_buffers({agent_id: items})[agent_id]


def add_to_buffers(items: Mapping[UUID, Sequence[NewBufferItem]]) -> dict[UUID, list[UUID]]:
    """Add items to the buffers of several agents in the open transaction, and return their ids in order. One statement.

    An item that is added again gets the later of the two expiries. Each agent's buffer has at most CAPACITY items: the least important ones are
    deleted, which the audit log records. The embedding backlog adds the vectors. Raises LimitReached for more than CAPACITY items.
    """
    digests = {
        agent_id: [content_hash(item.content) for item in of_agent] for agent_id, of_agent in items.items()
    }
    rows: list[dict[str, Any]] = []
    for agent_id, of_agent in items.items():
        # Of two items with the same text, the one with the higher trust is stored.
        pairs = sorted(zip(digests[agent_id], of_agent, strict=True), key=lambda pair: pair[1].trust)
        by_digest = dict(pairs)
        if len(by_digest) > CAPACITY:
            raise LimitReached(f"a buffer has at most {CAPACITY} items, got {len(by_digest)}")
        rows += [_row(agent_id, digest, item) for digest, item in by_digest.items()]
    if not rows:
        return {agent_id: [] for agent_id in items}
    agents = sorted(agent_id for agent_id, of_agent in items.items() if of_agent)
    ids: dict[tuple[UUID, bytes], UUID] = {}
    cleared: dict[UUID, int] = {}
    for agent_id, item_id, digest, deleted in fetch(
        queries.ADD_TO_BUFFER, rows=to_json(rows), agents=agents, capacity=CAPACITY
    ):
        ids[agent_id, bytes(digest)] = item_id
        cleared[agent_id] = deleted
    for agent_id, deleted in cleared.items():
        if deleted:
            record_cleared(agent_id, count=deleted, why="to make room for others")
    return {
        agent_id: [ids[agent_id, digest] for digest in of_agent] for agent_id, of_agent in digests.items()
    }


@dataclass(frozen=True, kw_only=True)
class BufferSearch:
    """A search of one agent's buffer. Raises Invalid for a text or limit that recall refuses."""

    agent_id: UUID
    text: str
    #: The vector of the text, by `model`.
    vector: Sequence[float] | None = None
    model: EmbeddingModel | None = None
    limit: int = 10
    #: Whether found items count as accessed: true for searches of the agent, never for those of people.
    counts: bool = False

    def __post_init__(self) -> None:
        check_query(self.text, self.limit)

    def as_json(self, place: int) -> dict[str, Any]:
        """Return the values of SEARCH_BUFFER for this search."""
        compared = query_vector(self.vector, self.model)
        return {
            "place": place,
            "agent": self.agent_id,
            "lexical": sparsevec_text(word_share_weights(self.text)),
            "near": MIN_COSINE,
            "shared": MIN_WORD_SHARE - SHARE_ROUNDING,
            "most": self.limit,
            "counts": self.counts,
            "vector": compared["vector"],
            "dimension": compared["vector_dimension"],
            "model": compared["vector_model"],
        }


def search_buffers(searches: Sequence[BufferSearch]) -> list[list[FoundBufferItem]]:
    """Return the matching buffer items for each search, best first, in the open transaction. At most one statement."""
    found: list[list[FoundBufferItem]] = [[] for _ in searches]
    if searches:
        written = [search.as_json(place) for place, search in enumerate(searches)]
        agents = sorted({search.agent_id for search in searches})
        names = (
            "id",
            "content",
            "role",
            "source",
            "importance",
            "accesses",
            "created_at",
            "expires_at",
            "score",
            "trust",
        )
        for place, *row in fetch(queries.SEARCH_BUFFER, searches=to_json(written), agents=agents):
            found[place].append(FoundBufferItem(**dict(zip(names, row, strict=True))))
    return found


def _row(agent_id: UUID, digest: bytes, item: NewBufferItem) -> dict[str, Any]:
    terms = fit_terms(document_vector(item.content, speaker=item.role), session="", dimension=0)
    return {
        "agent": agent_id,
        "id": uuid7(),
        "content": item.content,
        "content_digest": digest.hex(),
        "role": item.role,
        "importance": item.appraised_importance(word_lists()),
        "trust": item.trust,
        "source": item.source,
        "lexical": sparsevec_text(stored_weights(terms)),
        "lasts": item.lasts.total_seconds(),
    }


def record_cleared(agent_id: UUID, *, count: int, why: str) -> None:
    """Record items deleted from an agent's buffer in the audit log, with the reason."""
    record(
        action=AuditAction.BUFFER_CLEARED,
        actor=ACTOR,
        agent_id=agent_id,
        message=f"deleted {counted(count, 'buffer item')} {why}",
        detail={"count": count},
    )


def promote(*, tenant_id: UUID, agent_id: UUID, item_id: UUID, actor: str) -> UUID:
    """Promote a buffer item of any importance in transactions of its own, and return the memory's id.

    The audit log records the actor. Raises NotFound if this agent has no such item.
    """
    with tenant_transaction(tenant_id):
        items = list(_items(agent_id).filter(id=item_id))
    ids = _promote(tenant_id, agent_id, items, actor=actor) if items else []
    if not ids:
        raise NotFound(f"agent {agent_id} has no buffer item {item_id}")
    return ids[0]


def promote_buffers() -> JobRunResult:
    """Promote buffer items that mattered and delete expired ones, agent by agent."""
    return run_job("buffer", waiting=queries.AGENTS_WITH_BUFFER_WORK, step=_promote_step)


def _promote_step(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        items = list(_items(agent_id).filter(_MATTERING).order_by("id")[:STEP])
    if items:
        _promote(tenant_id, agent_id, items)
    with tenant_transaction(tenant_id):
        # Heartbeats lock buffer items in two orders, of ids and of contents, so the schedule is locked first.
        lock_schedule(agent_id)
        expired = BufferItem.objects.filter(agent_id=agent_id, expires_at__lte=Now()).exclude(_MATTERING)
        cleared = dict(expired.select_for_update().values_list("id", "promoted_to_id"))
        BufferItem.objects.filter(id__in=list(cleared)).delete()
        if lost := sum(memory_id is None for memory_id in cleared.values()):
            record_cleared(agent_id, count=lost, why="that had expired")
    return len(items) + len(cleared)


def _items(agent_id: UUID) -> QuerySet[BufferItem]:
    items: QuerySet[BufferItem] = BufferItem.objects.filter(agent_id=agent_id)
    return items.defer("embedding", "lexical")


def _promote(
    tenant_id: UUID, agent_id: UUID, items: Sequence[BufferItem], *, actor: str | None = None
) -> list[UUID]:
    """Store buffer items as memories in one transaction, embedded before it; return their ids.

    An item that was deleted meanwhile is left out: a purge deletes the items with a memory's text, which must not be stored again.
    """
    texts = [item.content for item in items]
    embedded = embed_agent_texts(tenant_id=tenant_id, agent_id=agent_id, texts=texts)
    with tenant_transaction(tenant_id):
        lock_schedule(agent_id)
        # A purge has the mind locked until it has deleted the items.
        lock_minds([agent_id])
        present = set(
            _items(agent_id).filter(id__in=[item.id for item in items]).values_list("id", flat=True)
        )
        places = [place for place, item in enumerate(items) if item.id in present]
        promoted = [items[place] for place in places]
        stored = store(
            agent_id=agent_id,
            memories=list(map(_as_memory, promoted)),
            vectors=None if embedded.vectors is None else embedded.vectors[places],
            model=embedded.model,
        )
        ids = list(stored.ids)
        for item, memory_id in zip(promoted, ids, strict=True):
            item.promoted_to_id = memory_id
        BufferItem.objects.bulk_update(promoted, ["promoted_to"])
        if ids:
            emit(signal(SignalName.MEMORY_PROMOTED, agent_id, **memory_data(ids)))
        if actor is not None and ids:
            record(
                action=AuditAction.OPERATOR_ACT,
                actor=actor,
                agent_id=agent_id,
                message="promoted a buffer item to a memory",
                detail={
                    "item_ids": [str(item.id) for item in promoted],
                    "memory_ids": [str(memory_id) for memory_id in ids],
                },
            )
    return ids


def _as_memory(item: BufferItem) -> NewMemory:
    return NewMemory(
        content=item.content,
        role=item.role,
        source=item.source,
        trust=item.trust,
        occurred_at=item.created_at,
        importance=effective_importance(importance=item.importance, uses=item.accesses),
    )
