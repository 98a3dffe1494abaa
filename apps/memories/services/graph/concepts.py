"""Link memories to concepts, recall by concept, and maintain the hierarchy of concepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.db.models import Count, Max, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from apps.memories.models import Concept, Edge, Memory, MemoryConcept
from apps.memories.services.graph import queries
from apps.memories.services.graph.neighborhoods import mark_around
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.scope import current_tenant
from apps.tenants.statements import change, fetch
from arbor.errors import Invalid, NotFound
from arbor.memory.concepts import (
    check_strength,
    concept_key,
    concept_name,
    flatten,
    with_merged,
    with_parent,
)
from arbor.memory.forgetting import days_between, relevance
from arbor.memory.values import MemoryStatus

#: The most memories that one recall by concept returns.
MAX_LIMIT = 200


@dataclass(frozen=True, kw_only=True)
class ConceptLink:
    """A concept that a memory is a case of, with its strength, 0 to 1."""

    concept_id: UUID
    name: str
    strength: float


@dataclass(frozen=True, kw_only=True)
class ConceptCase:
    """A memory recalled by a concept, ranked by `score`: strength times relevance, 0 to 1."""

    memory_id: UUID
    content: str
    occurred_at: datetime
    strength: float
    relevance: float

    @property
    def score(self) -> float:
        """The strength times the relevance."""
        return self.strength * self.relevance


@dataclass(frozen=True, kw_only=True)
class ConceptNode:
    """A concept with its narrower concepts, sorted by name, and the number of active memories linked to the concept itself."""

    id: UUID
    name: str
    description: str
    memories: int
    narrower: tuple[ConceptNode, ...] = ()


def link_memory_to_concept(
    *, agent_id: UUID, memory_id: UUID, concept_name: str, strength: float = 1.0
) -> int:
    """Link one memory to a concept by name, creating the concept if needed; return 1, or 0 if nothing changed.

    Raises like `link_memories`.
    """
    return link_memories(agent_id=agent_id, links={memory_id: [(concept_name, strength)]})


def link_memories(*, agent_id: UUID, links: Mapping[UUID, Iterable[tuple[str, float]]]) -> int:
    """Link memories of one agent to concepts by name, in the open transaction; return the number of new or stronger links.

    `links` maps memory ids to (name, strength from 0 to 1). Names are compared by `concept_key`; of equal links the
    strongest counts. Four statements for any number of links. Raises Invalid for a name or a strength, NotFound for
    memories of other agents; nothing is written then.
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
    # The lock prevents a concept from being merged into another while memories are linked to it.
    lock_minds([agent_id])
    _check_memories(agent_id, {memory_id for memory_id, _ in wanted})
    # Sorted by key, so that two workers that add the same concepts do not deadlock.
    new = [
        Concept(tenant_id=current_tenant(), agent_id=agent_id, name=name, key=key)
        for key, name in sorted(names.items())
    ]
    Concept.objects.bulk_create(new, ignore_conflicts=True)
    return change(
        queries.LINK_CONCEPTS,
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
) -> list[ConceptCase]:
    """Return the active memories that are cases of a concept, by strength times relevance, best first.

    With `include_narrower`, cases of narrower concepts count too; of several links of a memory the strongest counts.
    Three statements. Raises NotFound for an unknown concept, Invalid for a limit outside 1 to 200.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"a recall by concept returns 1 to {MAX_LIMIT} memories, asked for {limit}")
    now = now or datetime.now(UTC)
    concept_id = _id_of(agent_id, name)
    wanted = Q(concept_id=concept_id)
    if include_narrower:
        wanted |= Q(concept__ancestors__contains=[str(concept_id)])
    links = MemoryConcept.objects.filter(
        wanted, concept__agent_id=agent_id, memory__status=MemoryStatus.ACTIVE
    )
    unexpired = links.filter(Q(memory__expires_at=None) | Q(memory__expires_at__gt=now))
    cases = []
    for row in unexpired.values(
        "memory_id",
        "memory__importance",
        "memory__decay_rate",
        "memory__occurred_at",
        "memory__access__last_at",
    ).annotate(strongest=Max("strength")):
        last = row["memory__access__last_at"] or row["memory__occurred_at"]
        current = relevance(
            importance=row["memory__importance"],
            decay_rate=row["memory__decay_rate"],
            days_since_access=days_between(last, now),
        )
        cases.append((-row["strongest"] * current, row["memory_id"], row["strongest"], current))
    best = sorted(cases)[:limit]
    texts = Memory.objects.only("tenant_id", "content", "occurred_at").in_bulk([case[1] for case in best])
    return [
        ConceptCase(
            memory_id=memory_id,
            content=texts[memory_id].content,
            occurred_at=texts[memory_id].occurred_at,
            strength=strength,
            relevance=current,
        )
        for _, memory_id, strength, current in best
        if memory_id in texts
    ]


def concepts_of(*, memory_id: UUID) -> list[ConceptLink]:
    """Return the concepts of a memory, the strongest first; none for an unknown memory."""
    links = MemoryConcept.objects.filter(memory_id=memory_id).order_by("-strength", "concept__key")
    return [
        ConceptLink(concept_id=concept_id, name=name, strength=strength)
        for concept_id, name, strength in links.values_list("concept_id", "concept__name", "strength")
    ]


def concept_tree(*, agent_id: UUID) -> tuple[ConceptNode, ...]:
    """Return the agent's concepts as trees, whose roots have no broader concept. One statement."""
    links = MemoryConcept.objects.filter(concept_id=OuterRef("id"), memory__status=MemoryStatus.ACTIVE)
    cases = Subquery(links.values("concept_id").annotate(cases=Count("memory_id")).values("cases"))
    concepts = Concept.objects.filter(agent_id=agent_id).annotate(cases=Coalesce(cases, 0)).order_by("key")
    rows = concepts.values_list("id", "parent_id", "name", "description", "cases")
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
    concept_id: UUID | None = (
        Concept.objects.filter(agent_id=agent_id, key=concept_key(name)).values_list("id", flat=True).first()
    )
    if concept_id is None:
        raise unknown_concept(name)
    return concept_id


def unknown_concept(name: str) -> NotFound:
    """Return the error for a concept that the agent does not have."""
    return NotFound(f"this agent has no concept {concept_name(name)!r}")


def _check_memories(agent_id: UUID, memory_ids: set[UUID]) -> None:
    memories = Memory.objects.filter(agent_id=agent_id, id__in=memory_ids)
    known = set(memories.values_list("id", flat=True))
    if missing := sorted(map(str, memory_ids - known)):
        raise NotFound(f"this agent has no memory {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}")


def set_parent(*, agent_id: UUID, concept: str, parent: str | None) -> None:
    """Set or remove the broader concept of a concept, both by name, and update the ancestry of the concepts below.

    Raises NotFound for an unknown concept, Invalid for a cycle or for more than 16 concepts above one.
    """
    lock_minds([agent_id])
    rows = _rows(agent_id)
    moved = _find_row(rows, concept)
    above = _find_row(rows, parent) if parent is not None else None
    parents = {row.id: row.parent_id for row in rows}
    try:
        changed = with_parent(parents, moved.id, above.id if above else None)
    except Invalid as error:
        raise Invalid(f"{moved.name!r} cannot be put below {parent!r}: {error}") from error
    _write_hierarchy(rows, changed)


def merge_concepts(*, agent_id: UUID, retained: str, gone: str) -> None:
    """Merge the concept `gone` into the concept `retained` of the same agent, both by name: memories, relations and narrower concepts.

    Raises NotFound for an unknown concept, Invalid if both are the same concept or the hierarchy would become too deep.
    """
    lock_minds([agent_id])
    rows = _rows(agent_id)
    retained_id, gone_id = _find_row(rows, retained).id, _find_row(rows, gone).id
    parents = with_merged({row.id: row.parent_id for row in rows}, retained=retained_id, gone=gone_id)
    change(queries.MOVE_LINKS, retained=retained_id, gone=gone_id)
    if fetch(queries.MOVE_EDGES, agent=agent_id, retained=retained_id, gone=gone_id):
        # Memories that were related to either concept are neighbors now.
        mark_around(agent_id, ends=[retained_id], memory_ids=[])
    ends = Q(source_id=gone_id) | Q(target_id=gone_id)
    Edge.objects.filter(ends, agent_id=agent_id).delete()
    _write_hierarchy(rows, parents)
    Concept.objects.filter(id=gone_id).delete()


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


def _find_row(rows: Sequence[_ConceptRow], name: str) -> _ConceptRow:
    key = concept_key(name)
    for row in rows:
        if row.key == key:
            return row
    raise unknown_concept(name)


def _write_hierarchy(rows: Sequence[_ConceptRow], parents: Mapping[UUID, UUID | None]) -> None:
    """Write parent and ancestry of the concepts for which they change, in one statement."""
    ancestry = flatten(parents)
    changed = [
        Concept(id=row.id, parent_id=parents[row.id], ancestors=[str(above) for above in ancestry[row.id]])
        for row in rows
        if row.id in parents and (row.parent_id, row.ancestors) != (parents[row.id], ancestry[row.id])
    ]
    Concept.objects.bulk_update(changed, ["parent", "ancestors"])
