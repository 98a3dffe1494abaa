"""Relations between memories."""

from __future__ import annotations

from uuid import UUID

from apps.memories.models import Edge, Memory
from apps.tenants.scope import current_tenant
from arbor.errors import Invalid, NotFound
from arbor.memory.relations import NodeKind


def connect_memories(*, agent_id: UUID, source_id: str, target_id: str, relation: str) -> Edge:
    """Relate two memories of one agent; the same relation twice is one. Two statements.

    Raises NotFound for a memory that is not this agent's, Invalid for a memory and itself.
    """
    wanted = [_id(source_id), _id(target_id)]
    if wanted[0] == wanted[1]:
        raise Invalid(f"a memory cannot be tied to itself: {source_id}")
    known = set(Memory.objects.filter(agent_id=agent_id, id__in=wanted).values_list("id", flat=True))
    missing = [str(each) for each in wanted if each not in known]
    if missing:
        raise NotFound(f"there is no memory {', '.join(missing)} of this agent")
    edge = Edge(
        tenant_id=current_tenant(),
        agent_id=agent_id,
        source_kind=NodeKind.MEMORY,
        source_id=wanted[0],
        target_kind=NodeKind.MEMORY,
        target_id=wanted[1],
        relation=relation,
    )
    Edge.objects.bulk_create([edge], ignore_conflicts=True)
    return edge


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFound(f"{text!r} is no memory's id") from error
