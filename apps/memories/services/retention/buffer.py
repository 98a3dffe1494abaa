"""The buffer of an agent: fill and search it, promote what matters to memories, delete what expired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import BufferItem
from apps.memories.services.embedding.literals import fitting, sparsevec_text
from apps.memories.services.embedding.minds import query_vector
from apps.memories.services.jobs.rounds import Round, make_round
from apps.memories.services.retention.forgetting import ACTOR
from apps.memories.services.store.remember import remember
from apps.tenants.encoding import to_json
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import LimitReached, NotFound
from arbor.ids import uuid7
from arbor.memory.buffer import (
    CAPACITY,
    MATTERS_AFTER,
    MATTERS_FROM,
    NEAR,
    SHARED,
    NewBufferItem,
    shared_words,
)
from arbor.memory.content import content_hash
from arbor.memory.forgetting import effective_importance
from arbor.memory.lexical import document_vector
from arbor.memory.recall_request import check_query
from arbor.memory.values import NewMemory

# Buffered again, a thing stays longer. What makes room, for each agent by itself: what was promoted, then the least
# important, then the oldest.
_ADD = """
WITH incoming AS MATERIALIZED (
    SELECT r.*, decode(content_digest, 'hex') AS content_hash FROM json_to_recordset(%(rows)s::json) AS r(
        agent uuid, id uuid, content text, content_digest text, role text, importance float8, source text,
        lexical sparsevec, lasts float8
    )
), room AS (
    SELECT agent, %(capacity)s - count(*) AS places FROM incoming GROUP BY agent
), cleared AS (
    DELETE FROM memories_bufferitem b USING (
        SELECT o.id FROM (
            SELECT id, agent_id, row_number() OVER (
                PARTITION BY agent_id ORDER BY promoted_to_id IS NULL DESC, importance DESC, created_at DESC, id
            ) AS place
            FROM memories_bufferitem
            WHERE tenant_id = %(tenant)s AND agent_id = ANY(%(agents)s::uuid[])
                AND (agent_id, content_hash) NOT IN (SELECT agent, content_hash FROM incoming)
        ) o JOIN room ON room.agent = o.agent_id WHERE o.place > room.places
    ) extra
    WHERE b.tenant_id = %(tenant)s AND b.id = extra.id RETURNING b.agent_id, b.promoted_to_id
), held AS (
    INSERT INTO memories_bufferitem AS b (tenant_id, agent_id, id, content, content_hash, role, importance, source,
        lexical, embedding_model, accesses, created_at, expires_at)
    SELECT %(tenant)s, agent, id, content, content_hash, role, importance, source, lexical, '', 0, now(),
        now() + lasts * interval '1 second'
    FROM incoming ORDER BY agent, content_hash
    ON CONFLICT (tenant_id, agent_id, content_hash) DO UPDATE
    SET expires_at = greatest(b.expires_at, EXCLUDED.expires_at),
        importance = greatest(b.importance, EXCLUDED.importance)
    RETURNING b.agent_id, b.id, b.content_hash
)
SELECT agent_id, id, content_hash,
    (SELECT count(*) FROM cleared WHERE cleared.agent_id = held.agent_id AND promoted_to_id IS NULL)
FROM held
"""
# The vector of a search counts where it can be compared with the agent's (`minds.QUERY_VECTOR`); else words alone decide.
_SEARCH = """
WITH asked AS MATERIALIZED (
    SELECT r.place, r.agent, r.lexical, r.near, r.shared, r.most, r.counts,
        CASE WHEN k.agent_id IS NULL OR (k.embedding_dimension = r.dimension
            AND k.embedding_model = coalesce(r.model, k.embedding_model)) THEN r.vector END AS vector
    FROM json_to_recordset(%(searches)s::json) AS r(
        place int, agent uuid, lexical sparsevec, near float8, shared float8, most int, counts bool,
        vector halfvec, dimension int, model text
    ) LEFT JOIN memories_mind k
        ON k.tenant_id = %(tenant)s AND k.agent_id = ANY(%(agents)s::uuid[]) AND k.agent_id = r.agent
), chosen AS MATERIALIZED (
    SELECT a.place, a.counts, found.* FROM asked a CROSS JOIN LATERAL (
        SELECT *, meaning + words AS score FROM (
            SELECT id, content, role, source, importance, accesses, created_at, expires_at,
                coalesce(CASE WHEN vector_dims(embedding) = vector_dims(a.vector)
                    THEN -(embedding <#> a.vector) END, 0) AS meaning,
                coalesce(-(lexical <#> a.lexical), 0) AS words
            FROM memories_bufferitem
            WHERE tenant_id = %(tenant)s AND agent_id = a.agent AND expires_at > now() AND promoted_to_id IS NULL
        ) scored WHERE meaning >= a.near OR words >= a.shared
        ORDER BY meaning + words DESC, created_at DESC, id LIMIT a.most
    ) found
), touched AS MATERIALIZED (
    SELECT b.id, counted.times FROM memories_bufferitem b
    JOIN (SELECT id, count(*) AS times FROM chosen WHERE counts GROUP BY id) counted ON counted.id = b.id
    WHERE b.tenant_id = %(tenant)s AND b.id = ANY((SELECT array_agg(id) FROM chosen)::uuid[])
    ORDER BY b.id FOR UPDATE OF b
), accessed AS (
    UPDATE memories_bufferitem b SET accesses = b.accesses + touched.times
    FROM touched WHERE b.tenant_id = %(tenant)s AND b.id = touched.id
)
SELECT place, id, content, role, source, importance, accesses + counts::int, created_at, expires_at, score
FROM chosen ORDER BY place, score DESC, created_at DESC, id
"""


@dataclass(frozen=True, kw_only=True)
class Holding:
    """A buffer item that was found."""

    id: UUID
    content: str
    role: str
    source: str
    importance: float
    #: How often the agent came back to it, this time included.
    accesses: int
    held_at: datetime
    expires_at: datetime
    #: How near its meaning is, and the share of the query's words that it has.
    score: float


def hold(*, agent_id: UUID, things: Sequence[NewBufferItem]) -> list[UUID]:
    """Buffer things of one agent, as `buffer_for_agents` does, and return their ids in order."""
    return buffer_for_agents({agent_id: things})[agent_id]


def buffer_for_agents(things: Mapping[UUID, Sequence[NewBufferItem]]) -> dict[UUID, list[UUID]]:
    """Buffer things of several agents in the transaction that is open, and return their ids in order. One statement.

    What is buffered already stays longer. Each agent's buffer has room for CAPACITY: the least important make room, on
    record. Vectors follow: the embedding backlog reads what has none. Raises LimitReached for more items than that.
    """
    digests = {
        agent_id: [content_hash(thing.content) for thing in of_agent] for agent_id, of_agent in things.items()
    }
    rows: list[dict[str, Any]] = []
    for agent_id, of_agent in things.items():
        by_digest = dict(zip(digests[agent_id], of_agent, strict=True))
        if len(by_digest) > CAPACITY:
            raise LimitReached(f"a buffer holds at most {CAPACITY} things, got {len(by_digest)}")
        rows += [_row(agent_id, digest, thing) for digest, thing in by_digest.items()]
    if not rows:
        return {agent_id: [] for agent_id in things}
    agents = sorted(agent_id for agent_id, of_agent in things.items() if of_agent)
    ids: dict[tuple[UUID, bytes], UUID] = {}
    cleared: dict[UUID, int] = {}
    for agent_id, item_id, digest, lost in fetch(_ADD, rows=to_json(rows), agents=agents, capacity=CAPACITY):
        ids[agent_id, bytes(digest)] = item_id
        cleared[agent_id] = lost
    for agent_id, lost in cleared.items():
        if lost:
            record_cleared(agent_id, lost, "to make room for others")
    return {agent_id: [ids[agent_id, digest] for digest in some] for agent_id, some in digests.items()}


@dataclass(frozen=True, kw_only=True)
class BufferSearch:
    """A search of one agent's buffer. Raises Invalid for what recall would refuse."""

    agent_id: UUID
    text: str
    #: Of the text, made by `model`.
    vector: Sequence[float] | None = None
    model: EmbeddingModel | None = None
    limit: int = 10
    #: The agent itself searches: what is found counts as accessed. A person's look never does.
    counts: bool = False

    def __post_init__(self) -> None:
        check_query(self.text, self.limit)

    def as_json(self, place: int) -> dict[str, Any]:
        """Return what _SEARCH reads."""
        compared = query_vector(self.vector, self.model)
        return {
            "place": place,
            "agent": self.agent_id,
            "lexical": sparsevec_text(shared_words(self.text)),
            "near": NEAR,
            "shared": SHARED,
            "most": self.limit,
            "counts": self.counts,
            "vector": compared["vector"],
            "dimension": compared["vector_dimension"],
            "model": compared["vector_model"],
        }


def search_buffers(searches: Sequence[BufferSearch]) -> list[list[Holding]]:
    """Return for each search what its agent's buffer has that bears on the text, best first. One statement.

    In the transaction that is open; none without a search.
    """
    found: list[list[Holding]] = [[] for _ in searches]
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
            "held_at",
            "expires_at",
            "score",
        )
        for place, *row in fetch(_SEARCH, searches=to_json(written), agents=agents):
            found[place].append(Holding(**dict(zip(names, row, strict=True))))
    return found


def _row(agent_id: UUID, digest: bytes, thing: NewBufferItem) -> dict[str, Any]:
    terms = document_vector(thing.content, speaker=thing.role)
    return {
        "agent": agent_id,
        "id": uuid7(),
        "content": thing.content,
        "content_digest": digest.hex(),
        "role": thing.role,
        "importance": thing.weight,
        "source": thing.source,
        "lexical": sparsevec_text(fitting(terms, session="", dimension=0)),
        "lasts": thing.lasts.total_seconds(),
    }


def record_cleared(agent_id: UUID, count: int, why: str) -> None:
    """Record that things left an agent's buffer for good, and why."""
    things = "thing" if count == 1 else "things"
    record(
        action=AuditAction.BUFFER_CLEARED,
        actor=ACTOR,
        agent_id=agent_id,
        message=f"let go of {count} held {things} {why}",
        detail={"count": count},
    )


_MATTERING = Q(promoted_to=None) & (Q(importance__gte=MATTERS_FROM) | Q(accesses__gte=MATTERS_AFTER))
#: Things that one step promotes: their texts are embedded together.
STEP = 50

# Written out, as it is in the index of what matters.
_MATTERS = f"promoted_to_id IS NULL AND (importance >= {MATTERS_FROM} OR accesses >= {MATTERS_AFTER})"
# Agents with buffer items that expired, or that mattered.
_WAITING = f"""
SELECT agent_id FROM memories_bufferitem WHERE tenant_id = t.id AND expires_at <= now()
UNION
SELECT agent_id FROM memories_bufferitem WHERE tenant_id = t.id AND {_MATTERS}
"""  # noqa: S608


def promote(*, tenant_id: UUID, agent_id: UUID, item_id: UUID, actor: str) -> UUID:
    """Promote a buffer item now, whatever its importance, and return the memory's id. In transactions of its own.

    The audit log records who did. Raises NotFound when this agent has no such item.
    """
    with tenant_transaction(tenant_id):
        items = list(_items(agent_id).filter(id=item_id))
    if not items:
        raise NotFound(f"agent {agent_id} holds no thing {item_id}")
    return _promote(tenant_id, agent_id, items, actor=actor)[0]


def tend_buffers() -> Round:
    """Promote buffer items that mattered and delete expired ones, agent by agent."""
    return make_round("buffer", waiting=_WAITING, tend=_promote_step)


def _promote_step(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        items = list(_items(agent_id).filter(_MATTERING).order_by("id")[:STEP])
    if items:
        _promote(tenant_id, agent_id, items)
    with tenant_transaction(tenant_id):
        expired = BufferItem.objects.filter(agent_id=agent_id, expires_at__lte=Now()).exclude(_MATTERING)
        cleared = dict(expired.select_for_update().values_list("id", "promoted_to_id"))
        BufferItem.objects.filter(id__in=list(cleared)).delete()
        if lost := sum(memory_id is None for memory_id in cleared.values()):
            record_cleared(agent_id, lost, "whose time was over")
    return len(items) + len(cleared)


def _items(agent_id: UUID) -> QuerySet[BufferItem]:
    items: QuerySet[BufferItem] = BufferItem.objects.filter(agent_id=agent_id)
    return items.defer("embedding", "lexical")


def _promote(
    tenant_id: UUID, agent_id: UUID, items: Sequence[BufferItem], *, actor: str | None = None
) -> list[UUID]:
    """Store buffer items as memories, embedded outside any transaction. Interrupted, it can run again to the same effect."""
    memories = [
        NewMemory(
            content=item.content,
            role=item.role,
            source=item.source,
            occurred_at=item.created_at,
            importance=effective_importance(importance=item.importance, uses=item.accesses),
        )
        for item in items
    ]
    ids = list(remember(tenant_id=tenant_id, agent_id=agent_id, memories=memories).ids)
    with tenant_transaction(tenant_id):
        for item, memory_id in zip(items, ids, strict=True):
            item.promoted_to_id = memory_id
        BufferItem.objects.bulk_update(items, ["promoted_to"])
        if actor is not None:
            record(
                action=AuditAction.OPERATOR_ACT,
                actor=actor,
                agent_id=agent_id,
                message="made a memory of what was only held",
                detail={
                    "item_ids": [str(item.id) for item in items],
                    "memory_ids": [str(memory_id) for memory_id in ids],
                },
            )
    return ids
