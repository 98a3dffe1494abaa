"""Where facts come from: another source for one that is remembered raises its trust."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.memories.services.nodes import id_of, labels_of
from apps.memories.services.remember import lock_minds
from apps.tenants.statements import change, fetch
from arbor.errors import Invalid, LimitReached, NotFound
from arbor.ids import uuid7
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.relations import NodeKind, Relation
from arbor.memory.trust import MOST_SOURCES, Source
from arbor.memory.values import MemoryType
from arbor.memory.walks import Node

_FACT = """
SELECT type, detail, trust FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = %(memory)s
"""
_SUPPORT = """
UPDATE memories_memory SET detail = %(detail)s::jsonb, trust = %(trust)s
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = %(memory)s
"""
# New memories' neighborhoods wait to be computed anyway; of what was known already, the one marked here is enough.
_LEARNED = """
WITH drawn AS (
    INSERT INTO memories_edge (tenant_id, agent_id, id, source_kind, source_id, target_kind, target_id, relation,
        weight, note, origin, created_at)
    SELECT %(tenant)s, %(agent)s, r.id, %(memory)s, r.learned, %(memory)s, %(source)s, %(relation)s, 1, '',
        left(%(origin)s, 200), now()
    FROM unnest(%(ids)s::uuid[], %(learned)s::uuid[]) AS r(id, learned)
    ON CONFLICT (tenant_id, agent_id, source_id, target_id, relation) DO NOTHING
    RETURNING source_id
)
UPDATE memories_upkeep u SET stale = true FROM drawn
WHERE u.tenant_id = %(tenant)s AND u.memory_id = drawn.source_id
"""

_DERIVED = """
WITH drawn AS (
    INSERT INTO memories_edge (tenant_id, agent_id, id, source_kind, source_id, target_kind, target_id, relation,
        weight, note, origin, created_at)
    SELECT %(tenant)s, %(agent)s, r.id, %(memory)s, %(made)s, %(memory)s, r.material, %(relation)s, 1, '',
        left(%(origin)s, 200), now()
    FROM unnest(%(ids)s::uuid[], %(materials)s::uuid[]) AS r(id, material)
    ON CONFLICT (tenant_id, agent_id, source_id, target_id, relation) DO NOTHING
    RETURNING source_id, target_id
)
UPDATE memories_upkeep u SET stale = true
WHERE u.tenant_id = %(tenant)s AND u.memory_id IN (SELECT source_id FROM drawn UNION SELECT target_id FROM drawn)
"""


def learned_from(*, agent_id: UUID, memory_ids: Sequence[UUID], origin_id: UUID, origin: str) -> None:
    """Tie what was learned to the memory of when, in the transaction that stored both. One statement, none for nothing.

    Unchecked: for ids that `store` has just returned.
    """
    learned = sorted({each for each in memory_ids if each != origin_id})
    if not learned:
        return
    change(
        _LEARNED,
        agent=agent_id,
        memory=NodeKind.MEMORY.value,
        relation=Relation.LEARNED_FROM.value,
        source=origin_id,
        ids=[uuid7() for _ in learned],
        learned=learned,
        origin=origin,
    )


def derived_from(*, agent_id: UUID, memory_id: UUID, materials: Sequence[UUID], origin: str) -> None:
    """Tie what was made to what it was made from, in the open transaction. One statement, none for nothing.

    Unchecked: for what `require_memories` has returned.
    """
    made_from = sorted({each for each in materials if each != memory_id})
    if not made_from:
        return
    change(
        _DERIVED,
        agent=agent_id,
        memory=NodeKind.MEMORY.value,
        relation=Relation.DERIVED_FROM.value,
        made=memory_id,
        ids=[uuid7() for _ in made_from],
        materials=made_from,
        origin=origin,
    )


@dataclass(frozen=True, kw_only=True)
class Tie:
    """A relation between two memories of one agent that are known to exist: LEARNED_FROM or DERIVED_FROM."""

    agent_id: UUID
    source_id: UUID
    target_id: UUID
    relation: Relation
    #: Who drew it: `heartbeat:ID`, `operator`.
    origin: str


def draw_ties(ties: Sequence[Tie]) -> None:
    """Store relations between memories of several agents, and mark the neighborhoods that change with them."""
    for tie in ties:
        if tie.relation is Relation.LEARNED_FROM:
            learned_from(
                agent_id=tie.agent_id, memory_ids=[tie.source_id], origin_id=tie.target_id, origin=tie.origin
            )
        else:
            derived_from(
                agent_id=tie.agent_id, memory_id=tie.source_id, materials=[tie.target_id], origin=tie.origin
            )


def require_memories(*, agent_id: UUID, named: Sequence[str]) -> list[UUID]:
    """Return the ids that these texts are, all of memories of this agent. One statement, none for nothing.

    Raises NotFound, naming those that are not.
    """
    ids = [id_of(each) for each in dict.fromkeys(named)]
    known = labels_of(agent_id, ids, {NodeKind.MEMORY})
    if missing := [str(each) for each in ids if Node(NodeKind.MEMORY, each) not in known]:
        raise NotFound(f"there is no memory {' or '.join(missing)} of this agent")
    return ids


def add_source(*, agent_id: UUID, memory_id: UUID, source: Source) -> float:
    """Note another source of a fact, in the open transaction; return how far it is trusted now. Three statements.

    A source with a reference that is known counts once. Trust never falls by it. Raises NotFound for a memory that is
    not this agent's, Invalid for one that is no fact, LimitReached for more than MOST_SOURCES.
    """
    lock_minds([agent_id])
    rows = fetch(_FACT, agent=agent_id, memory=memory_id)
    if not rows:
        raise NotFound(f"there is no memory {memory_id} of this agent")
    kind, written, trust = rows[0]
    if kind != MemoryType.SEMANTIC:
        raise Invalid(f"only a {MemoryType.SEMANTIC} memory has sources; {memory_id} is {kind}")
    fact = read_detail(MemoryType.SEMANTIC, json.loads(written) if isinstance(written, str) else written)
    assert isinstance(fact, SemanticDetail)
    known = {each.key for each in fact.sources}
    if len(known) >= MOST_SOURCES and source.key not in known:
        raise LimitReached(f"a fact has at most {MOST_SOURCES} sources; {memory_id} has them")
    fact = fact.with_sources([source])
    # A fact whose sources nobody wrote down loses nothing by its first one.
    raised: float = max(trust, fact.trust)
    change(
        _SUPPORT,
        agent=agent_id,
        memory=memory_id,
        detail=json.dumps(fact.to_json(), ensure_ascii=False),
        trust=raised,
    )
    return raised
