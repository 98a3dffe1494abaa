"""The hierarchy of an agent's concepts: set a broader concept, and merge concepts that are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.memories.models import Concept
from apps.memories.services.graph.concepts import unknown_concept
from apps.memories.services.store.remember import lock_minds
from apps.tenants.statements import change
from arbor.errors import Invalid
from arbor.memory.concepts import concept_key, flatten, merged, with_parent

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
