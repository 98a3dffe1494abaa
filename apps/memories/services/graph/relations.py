"""Create and delete relations of the knowledge graph. `walks` answers questions about it."""

from __future__ import annotations

from uuid import UUID

from apps.memories.services.graph.neighborhoods import mark_around
from apps.memories.services.graph.nodes import find_nodes, id_of, require
from apps.memories.services.store.term_counts import lock_minds
from apps.selves.services.alignment import update_fact_trust
from apps.tenants.statements import change, fetch
from arbor.errors import NotFound
from arbor.ids import uuid7
from arbor.memory.relations import NodeKind, Relation
from arbor.memory.traversal import Node, Tie, check_edge

_INSERT = """
INSERT INTO memories_edge AS old (tenant_id, agent_id, id, source_kind, source_id, target_kind, target_id, relation,
    weight, note, origin, created_at)
VALUES (%(tenant)s, %(agent)s, %(id)s, %(source_kind)s, %(source)s, %(target_kind)s, %(target)s, %(relation)s,
    %(weight)s, %(note)s, left(%(origin)s, 200), now())
ON CONFLICT (tenant_id, agent_id, source_id, target_id, relation) DO UPDATE
SET weight = greatest(old.weight, EXCLUDED.weight), note = coalesce(nullif(EXCLUDED.note, ''), old.note)
RETURNING weight
"""
_DELETE = """
DELETE FROM memories_edge WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
    AND source_id = %(source)s AND target_id = %(target)s
    AND (%(relation)s::text IS NULL OR relation = %(relation)s)
"""


def relate(
    *,
    agent_id: UUID,
    source: Node,
    target: Node,
    relation: Relation,
    weight: float = 1.0,
    note: str = "",
    origin: str = "",
) -> Tie:
    """Relate two things of one agent, in the open transaction; the same again raises the weight to the higher one.

    `weight` is how sure, 0 to 1; `note` says why, `origin` who says so. Neighborhoods that change by it become stale.
    Raises NotFound for what is not this agent's, Invalid for a thing and itself. Four statements.
    """
    check_edge(source, target, weight=weight, note=note)
    # Nobody may purge an end between the look and the edge.
    lock_minds([agent_id])
    require(agent_id, (source, target))
    return _insert(agent_id, source, target, relation, weight=weight, note=note, origin=origin)


def connect(
    *, agent_id: UUID, source_id: str, target_id: str, relation: Relation, note: str = "", origin: str = ""
) -> Tie:
    """Relate two things by their ids as text, whatever they are. Four statements.

    Raises NotFound for what is not this agent's, Invalid for a thing and itself.
    """
    ids = (id_of(source_id), id_of(target_id))
    lock_minds([agent_id])
    known = find_nodes(agent_id, ids)
    missing = [str(end_id) for end_id in ids if end_id not in known]
    if missing:
        kinds = ", ".join(NodeKind)
        raise NotFound(f"there is no {kinds} {' or '.join(missing)} of this agent")
    source, target = (known[end_id] for end_id in ids)
    check_edge(source, target, weight=1.0, note=note)
    return _insert(agent_id, source, target, relation, weight=1.0, note=note, origin=origin)


def unrelate(*, agent_id: UUID, source: Node, target: Node, relation: Relation | None = None) -> int:
    """Delete a relation, or all from one node to the other; return how many were deleted. Two statements."""
    _mark_stale(agent_id, source, target)
    deleted = change(
        _DELETE,
        agent=agent_id,
        source=source.id,
        target=target.id,
        relation=None if relation is None else Relation(relation).value,
    )
    _update_trust(agent_id, source, target)
    return deleted


def _insert(
    agent_id: UUID, source: Node, target: Node, relation: Relation, *, weight: float, note: str, origin: str
) -> Tie:
    ((reached,),) = fetch(
        _INSERT,
        agent=agent_id,
        id=uuid7(),
        source_kind=source.kind.value,
        source=source.id,
        target_kind=target.kind.value,
        target=target.id,
        relation=Relation(relation).value,
        weight=weight,
        note=note,
        origin=origin,
    )
    _mark_stale(agent_id, source, target)
    _update_trust(agent_id, source, target)
    return Tie(source=source, target=target, relation=Relation(relation), weight=reached)


def _mark_stale(agent_id: UUID, source: Node, target: Node) -> None:
    ends = (source, target)
    memories = [end.id for end in ends if end.kind is NodeKind.MEMORY]
    # Between two concepts or goals it is three edges from one memory to the next: further than neighborhoods reach.
    if memories:
        mark_around(agent_id, [end.id for end in ends], memories)


def _update_trust(agent_id: UUID, source: Node, target: Node) -> None:
    """Update the trust of a fact that is related to a belief: three more statements, only for such a pair."""
    ends = (source, target)
    if any(end.kind is NodeKind.BELIEF for end in ends):
        update_fact_trust(
            agent_id=agent_id, memory_ids=[end.id for end in ends if end.kind is NodeKind.MEMORY]
        )
