"""Link memories to concepts, recall by concept, and maintain the hierarchy of concepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from apps.memories.models import Concept, Memory
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.statements import change, fetch
from arbor.errors import Invalid, NotFound
from arbor.ids import uuid7
from arbor.memory.concepts import check_strength, concept_key, concept_name, flatten, merged, with_parent
from arbor.memory.forgetting import days_between, relevance
from arbor.memory.values import MemoryStatus

#: The most memories that one recall by concept returns.
MAX_LIMIT = 200

_KNOWN = """
SELECT id FROM memories_memory WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = ANY(%(ids)s::uuid[])
"""
# In the order of their keys, so that two that add the same concepts do not wait for each other crosswise.
_ADD = """
INSERT INTO memories_concept (tenant_id, agent_id, id, name, key, description, ancestors, created_at)
SELECT %(tenant)s, %(agent)s, new.id, new.name, new.key, '', '[]', now()
FROM unnest(%(ids)s::uuid[], %(names)s::text[], %(keys)s::text[]) AS new (id, name, key)
WHERE NOT EXISTS (
    SELECT 1 FROM memories_concept c WHERE c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s AND c.key = new.key
) ORDER BY new.key
ON CONFLICT (tenant_id, agent_id, key) DO NOTHING
"""
_LINK = """
INSERT INTO memories_memoryconcept (tenant_id, concept_id, memory_id, strength, created_at)
SELECT %(tenant)s, c.id, new.memory_id, new.strength, now()
FROM unnest(%(memories)s::uuid[], %(keys)s::text[], %(strengths)s::float8[]) AS new (memory_id, key, strength)
JOIN memories_concept c ON c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s AND c.key = new.key
ORDER BY c.id, new.memory_id
ON CONFLICT (tenant_id, concept_id, memory_id) DO UPDATE SET strength = EXCLUDED.strength
WHERE memories_memoryconcept.strength < EXCLUDED.strength
"""
_CASES = """
SELECT m.id, max(l.strength), m.importance, m.decay_rate, coalesce(a.last_at, m.occurred_at)
FROM memories_concept c
JOIN memories_memoryconcept l ON l.tenant_id = %(tenant)s AND l.concept_id = c.id
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = l.memory_id AND m.status = 'active'
    AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
LEFT JOIN memories_memoryaccess a ON a.tenant_id = %(tenant)s AND a.memory_id = m.id
WHERE c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s
    AND (c.id = %(concept)s OR (%(narrower)s AND c.ancestors @> jsonb_build_array(%(concept)s::text)))
GROUP BY m.id, m.importance, m.decay_rate, a.last_at, m.occurred_at
"""


@dataclass(frozen=True, kw_only=True)
class ConceptLink:
    """A concept that a memory is a case of, and how clearly, from 0 to 1."""

    concept_id: UUID
    name: str
    strength: float


@dataclass(frozen=True, kw_only=True)
class Case:
    """A memory recalled by a concept; it is ordered by `score`, strength times relevance, from 0 to 1."""

    memory_id: UUID
    content: str
    occurred_at: datetime
    strength: float
    relevance: float

    @property
    def score(self) -> float:
        """The score that the ranking uses."""
        return self.strength * self.relevance


@dataclass(frozen=True, kw_only=True)
class ConceptNode:
    """A concept with those below it, in the order of their names, and how many memories are linked to it itself."""

    id: UUID
    name: str
    description: str
    memories: int
    narrower: tuple[ConceptNode, ...] = ()


def link_memory_to_concept(
    *, agent_id: UUID, memory_id: UUID, concept_name: str, strength: float = 1.0
) -> int:
    """Link one memory to a concept by name, which is made if there is none; return 1, or 0 if it was linked so already.

    Raises as `link_memories` does.
    """
    return link_memories(agent_id=agent_id, links={memory_id: [(concept_name, strength)]})


def link_memories(*, agent_id: UUID, links: Mapping[UUID, Iterable[tuple[str, float]]]) -> int:
    """Link memories of one agent to concepts by name, in the open transaction; return how many links are new or stronger.

    `links` holds (name, strength from 0 to 1) by memory id. Names of one concept are one (`concept_key`), and of a
    link that is there or comes twice the greater strength stays. Four statements, however many links.
    Raises Invalid for a name or a strength, NotFound for memories that are not this agent's; nothing is written then.
    """
    names: dict[str, str] = {}
    wanted: dict[tuple[UUID, str], float] = {}
    for memory_id, pairs in links.items():
        for name, strength in pairs:
            key = concept_key(name)
            names.setdefault(key, concept_name(name))
            wanted[memory_id, key] = max(check_strength(strength), wanted.get((memory_id, key), 0.0))
    if not wanted:
        return 0
    # Concepts may not be merged away while they are linked to.
    lock_minds([agent_id])
    _check_memories(agent_id, {memory_id for memory_id, _ in wanted})
    change(_ADD, agent=agent_id, ids=[uuid7() for _ in names], names=list(names.values()), keys=list(names))
    return change(
        _LINK,
        agent=agent_id,
        memories=[memory_id for memory_id, _ in wanted],
        keys=[key for _, key in wanted],
        strengths=list(wanted.values()),
    )


def memories_of_concept(
    *,
    agent_id: UUID,
    name: str,
    include_narrower: bool = True,
    limit: int = 20,
    now: datetime | None = None,
) -> list[Case]:
    """Return the active memories that are cases of a concept, by strength times relevance, best first.

    With `include_narrower`, cases of the concepts below it are its cases too; of a memory's several links the
    strongest counts. Three statements. Raises NotFound for a name, Invalid for a limit outside 1 to 200.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"a recall by concept returns 1 to {MAX_LIMIT} memories, asked for {limit}")
    now = now or datetime.now(UTC)
    concept_id = _id_of(agent_id, name)
    scored = []
    for memory_id, strength, importance, rate, last in fetch(
        _CASES, agent=agent_id, concept=concept_id, narrower=include_narrower, now=now
    ):
        present = relevance(importance=importance, decay_rate=rate, days_since_access=days_between(last, now))
        scored.append((-strength * present, memory_id, strength, present))
    best = sorted(scored)[:limit]
    rows = Memory.objects.filter(id__in=[row[1] for row in best])
    texts = {row[0]: row[1:] for row in rows.values_list("id", "content", "occurred_at")}
    return [
        Case(
            memory_id=memory_id,
            content=texts[memory_id][0],
            occurred_at=texts[memory_id][1],
            strength=strength,
            relevance=present,
        )
        for _, memory_id, strength, present in best
        if memory_id in texts
    ]


def concepts_of(*, memory_id: UUID) -> list[ConceptLink]:
    """Return the concepts of a memory, the clearest first; none for a memory that is not there."""
    rows = fetch(
        "SELECT c.id, c.name, l.strength FROM memories_memoryconcept l"
        " JOIN memories_concept c ON c.tenant_id = %(tenant)s AND c.id = l.concept_id"
        " WHERE l.tenant_id = %(tenant)s AND l.memory_id = %(memory)s ORDER BY l.strength DESC, c.key",
        memory=memory_id,
    )
    return [ConceptLink(concept_id=row[0], name=row[1], strength=row[2]) for row in rows]


def concept_tree(*, agent_id: UUID) -> tuple[ConceptNode, ...]:
    """Return the agent's concepts as a tree, those without a broader one at the top. One statement."""
    rows = fetch(
        "SELECT c.id, c.parent_id, c.name, c.description, count(m.id) FROM memories_concept c"
        " LEFT JOIN memories_memoryconcept l ON l.tenant_id = %(tenant)s AND l.concept_id = c.id"
        " LEFT JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = l.memory_id AND m.status = %(active)s"
        " WHERE c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s"
        " GROUP BY c.id, c.parent_id, c.name, c.description, c.key ORDER BY c.key",
        agent=agent_id,
        active=MemoryStatus.ACTIVE,
    )
    below: dict[UUID | None, list[tuple[UUID, str, str, int]]] = {}
    for concept_id, parent_id, name, description, memories in rows:
        below.setdefault(parent_id, []).append((concept_id, name, description, memories))

    def nodes(parent_id: UUID | None) -> tuple[ConceptNode, ...]:
        return tuple(
            ConceptNode(
                id=concept_id, name=name, description=description, memories=count, narrower=nodes(concept_id)
            )
            for concept_id, name, description, count in below.get(parent_id, ())
        )

    return nodes(None)


def _id_of(agent_id: UUID, name: str) -> UUID:
    found: UUID | None = (
        Concept.objects.filter(agent_id=agent_id, key=concept_key(name)).values_list("id", flat=True).first()
    )
    if found is None:
        raise unknown_concept(name)
    return found


def unknown_concept(name: str) -> NotFound:
    """Return the error for a name that none of the agent's concepts has."""
    return NotFound(f"this agent has no concept {concept_name(name)!r}")


def _check_memories(agent_id: UUID, memory_ids: set[UUID]) -> None:
    known = {row[0] for row in fetch(_KNOWN, agent=agent_id, ids=list(memory_ids))}
    if missing := sorted(map(str, memory_ids - known)):
        raise NotFound(f"this agent has no memory {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}")


_REPOINT_LINKS = """
INSERT INTO memories_memoryconcept (tenant_id, concept_id, memory_id, strength, created_at)
SELECT tenant_id, %(kept)s, memory_id, strength, created_at FROM memories_memoryconcept
WHERE tenant_id = %(tenant)s AND concept_id = %(gone)s ORDER BY memory_id
ON CONFLICT (tenant_id, concept_id, memory_id) DO UPDATE SET strength = EXCLUDED.strength
WHERE memories_memoryconcept.strength < EXCLUDED.strength
"""
# Those that would double another, or tie the concept to itself, go with the concept.
_REPOINT_EDGES = """
WITH moved AS (
    SELECT DISTINCT ON (source, target, relation) * FROM (
        SELECT id, relation, CASE source_id WHEN %(gone)s THEN %(kept)s ELSE source_id END AS source,
            CASE target_id WHEN %(gone)s THEN %(kept)s ELSE target_id END AS target
        FROM memories_edge WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
            AND %(gone)s IN (source_id, target_id)
    ) ends WHERE source <> target ORDER BY source, target, relation, id
)
UPDATE memories_edge e SET source_id = moved.source, target_id = moved.target FROM moved
WHERE e.tenant_id = %(tenant)s AND e.id = moved.id AND NOT EXISTS (
    SELECT 1 FROM memories_edge there WHERE there.tenant_id = %(tenant)s AND there.agent_id = %(agent)s
        AND there.source_id = moved.source AND there.target_id = moved.target AND there.relation = moved.relation
)
"""
_DROP_EDGES = """
DELETE FROM memories_edge WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND %(gone)s IN (source_id, target_id)
"""
_PLACE = """
UPDATE memories_concept c SET parent_id = new.parent, ancestors = new.ancestors::jsonb
FROM unnest(%(ids)s::uuid[], %(parents)s::uuid[], %(ancestors)s::text[]) AS new (id, parent, ancestors)
WHERE c.tenant_id = %(tenant)s AND c.id = new.id
"""


def set_parent(*, agent_id: UUID, concept: str, parent: str | None) -> None:
    """Move a concept below another, or below none, and update the ancestry of all concepts below it.

    Both by name. Raises NotFound for a name, Invalid for a cycle or more than 16 concepts above one.
    """
    lock_minds([agent_id])
    rows = _rows(agent_id)
    moved = _named(rows, concept)
    above = _named(rows, parent) if parent is not None else None
    parents = {row.id: row.parent_id for row in rows}
    try:
        changed = with_parent(parents, moved.id, above.id if above else None)
    except Invalid as error:
        raise Invalid(f"{moved.name!r} cannot be put below {parent!r}: {error}") from error
    _place(rows, changed)


def merge_concepts(*, agent_id: UUID, kept: str, gone: str) -> None:
    """Merge one concept into another of the same agent, both by name: its memories, edges and narrower concepts.

    Raises NotFound for a name, Invalid for a concept and itself, or where the hierarchy would become too deep.
    """
    lock_minds([agent_id])
    rows = _rows(agent_id)
    stays, goes = _named(rows, kept), _named(rows, gone)
    parents = merged({row.id: row.parent_id for row in rows}, kept=stays.id, gone=goes.id)
    change(_REPOINT_LINKS, kept=stays.id, gone=goes.id)
    change(_REPOINT_EDGES, agent=agent_id, kept=stays.id, gone=goes.id)
    change(_DROP_EDGES, agent=agent_id, gone=goes.id)
    _place(rows, parents)
    Concept.objects.filter(id=goes.id).delete()


@dataclass(frozen=True, kw_only=True)
class _ConceptRow:
    id: UUID
    parent_id: UUID | None
    name: str
    key: str
    ancestors: tuple[UUID, ...]


def _rows(agent_id: UUID) -> list[_ConceptRow]:
    fields = ("id", "parent_id", "name", "key", "ancestors")
    return [
        _ConceptRow(id=row[0], parent_id=row[1], name=row[2], key=row[3], ancestors=tuple(map(UUID, row[4])))
        for row in Concept.objects.filter(agent_id=agent_id).values_list(*fields)
    ]


def _named(rows: Sequence[_ConceptRow], name: str) -> _ConceptRow:
    key = concept_key(name)
    for row in rows:
        if row.key == key:
            return row
    raise unknown_concept(name)


def _place(rows: Sequence[_ConceptRow], parents: Mapping[UUID, UUID | None]) -> None:
    """Write parent and ancestry of those concepts where they change, in one statement."""
    ancestry = flatten(parents)
    changed = [
        row.id
        for row in rows
        if row.id in parents and (row.parent_id, row.ancestors) != (parents[row.id], ancestry[row.id])
    ]
    if changed:
        change(
            _PLACE,
            ids=changed,
            parents=[parents[concept_id] for concept_id in changed],
            ancestors=[
                f"[{','.join(f'"{above}"' for above in ancestry[concept_id])}]" for concept_id in changed
            ],
        )
