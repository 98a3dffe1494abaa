"""Provenance and practice: relate memories to their sources, add sources to facts, and count the outcomes of procedures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from apps.memories.models import Memory, Practice
from apps.memories.services.graph.relations import id_of
from apps.memories.services.store import queries
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.encoding import to_json
from apps.tenants.scope import current_tenant
from apps.tenants.statements import change
from arbor.errors import Invalid, LimitReached, NotFound
from arbor.heartbeat.sources import own_source
from arbor.ids import read_id, uuid7
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.relations import GraphNodeKind, Relation
from arbor.memory.trust import MAX_SOURCES, Evidence, Source, is_own_note
from arbor.memory.values import MemoryStatus, MemoryType


@dataclass(frozen=True, kw_only=True)
class ProvenanceRelation:
    """A relation between two memories of one agent, usually LEARNED_FROM or DERIVED_FROM.

    The ids are not checked: they must come from `store` or `require_evidence`.
    """

    agent_id: UUID
    source_id: UUID
    target_id: UUID
    relation: Relation
    #: The author of the relation: `heartbeat:ID`, `operator`.
    origin: str


def store_provenance(relations: Sequence[ProvenanceRelation]) -> None:
    """Store relations between memories of several agents, in the transaction that stored the memories. One statement.

    Existing relations, and relations of a memory to itself, are skipped; if no relation is left, no statement runs. The changed
    neighborhoods are marked stale: that of the source for LEARNED_FROM, those of both memories for any other relation.
    """
    ends = {
        (relation.agent_id, relation.source_id, relation.target_id, relation.relation): relation
        for relation in relations
    }
    new = sorted(end for end, relation in ends.items() if relation.source_id != relation.target_id)
    if not new:
        return
    rows = [
        {
            "agent": agent_id,
            "id": uuid7(),
            "source": source_id,
            "target": target_id,
            "relation": relation,
            "origin": ends[agent_id, source_id, target_id, relation].origin,
        }
        for agent_id, source_id, target_id, relation in new
    ]
    change(
        queries.INSERT_PROVENANCE,
        memory=GraphNodeKind.MEMORY.value,
        learned=Relation.LEARNED_FROM.value,
        rows=to_json(rows),
        ends=sorted({end for _, source_id, target_id, _ in new for end in (source_id, target_id)}),
    )


def add_source(*, agent_id: UUID, memory_id: UUID, source: Source) -> float:
    """Add a source to a fact, in the open transaction; return the fact's new trust. Three statements.

    Two sources with the same reference count as one. The trust never falls. Raises NotFound for a memory of another agent,
    Invalid for a memory that is no fact, LimitReached for more than MAX_SOURCES.
    """
    lock_minds([agent_id])
    memories = Memory.objects.filter(agent_id=agent_id, id=memory_id)
    row = memories.values_list("type", "detail", "trust").first()
    if row is None:
        raise NotFound(f"there is no memory {memory_id} of this agent")
    kind, written, trust = row
    if kind != MemoryType.SEMANTIC:
        raise Invalid(f"only a {MemoryType.SEMANTIC} memory has sources; {memory_id} is {kind}")
    fact = read_detail(MemoryType.SEMANTIC, written)
    assert isinstance(fact, SemanticDetail)
    known = {other.key for other in fact.sources}
    if len(known) >= MAX_SOURCES and source.key not in known:
        raise LimitReached(f"a fact has at most {MAX_SOURCES} sources; {memory_id} has them")
    fact = fact.with_sources([source])
    # A first source does not lower the trust of a fact without sources.
    raised: float = max(trust, fact.trust)
    memories.update(detail=fact.to_json(), trust=raised)
    return raised


def require_evidence(*, agent_id: UUID, named: Sequence[str]) -> dict[UUID, Evidence]:
    """Return the memories with these ids, given as texts, archived ones too, as evidence by id. One statement; none without texts.

    Raises NotFound, with the ids, for memories that this agent does not have.
    """
    ids = [id_of(text) for text in dict.fromkeys(named)]
    rows = Memory.objects.filter(agent_id=agent_id, id__in=ids).values_list(*_EVIDENCE)
    found = {row[0]: _evidence(agent_id, *row) for row in rows}
    if missing := [str(memory_id) for memory_id in ids if memory_id not in found]:
        raise NotFound(f"there is no memory {' or '.join(missing)} of this agent")
    return {memory_id: found[memory_id] for memory_id in ids}


def evidence_of(*, agent_id: UUID, memory_ids: Sequence[str]) -> list[Evidence]:
    """Return the agent's active memories among these ids as evidence. One statement."""
    ids = [memory_id for text in memory_ids if (memory_id := read_id(str(text)))]
    rows = Memory.objects.filter(agent_id=agent_id, id__in=ids, status=MemoryStatus.ACTIVE).order_by("id")
    return [_evidence(agent_id, *row) for row in rows.values_list(*_EVIDENCE)]


_EVIDENCE = ("id", "type", "trust", "role", "source", "detail")


def _evidence(
    agent_id: UUID, memory_id: UUID, kind: str, trust: float, role: str, source: str, detail: Any
) -> Evidence:
    speaker = Source(kind="memory", reference=role or str(memory_id), trust=1.0)
    if is_own_note(role=role, source=source):
        speaker = own_source(agent_id)
    fact = read_detail(MemoryType.SEMANTIC, detail) if kind == MemoryType.SEMANTIC else None
    sources = fact.sources if isinstance(fact, SemanticDetail) else ()
    return Evidence(trust=trust, speaker=speaker, sources=sources)


@dataclass(frozen=True, kw_only=True)
class ProcedureOutcomes:
    """The outcomes of a procedure so far."""

    successes: int
    failures: int

    @property
    def success_rate(self) -> float:
        """The share of successes, 0 to 1."""
        return self.successes / (self.successes + self.failures)


def record_outcome(*, agent_id: UUID, memory_id: UUID, success: bool) -> ProcedureOutcomes:
    """Count an outcome of a procedure, in the open transaction. Up to four statements.

    Raises NotFound for a memory of another agent, Invalid for a memory that is no procedure.
    """
    # The memory's row is locked, so that two transactions do not both insert the first count.
    memories = Memory.objects.filter(agent_id=agent_id, id=memory_id).select_for_update(no_key=True)
    kind = memories.values_list("type", flat=True).first()
    if kind is None:
        raise NotFound(f"there is no memory {memory_id} of this agent")
    if kind != MemoryType.PROCEDURAL:
        raise Invalid(f"only a {MemoryType.PROCEDURAL} memory has outcomes; {memory_id} is {kind}")
    practice = Practice.objects.filter(memory_id=memory_id).first() or Practice(
        tenant_id=current_tenant(), memory_id=memory_id
    )
    practice.successes += int(success)
    practice.failures += int(not success)
    practice.last_at = datetime.now(UTC)
    practice.save()
    return ProcedureOutcomes(successes=practice.successes, failures=practice.failures)


def count_outcomes(outcomes: Sequence[tuple[UUID, UUID, bool]]) -> None:
    """Count outcomes of procedures of several agents, each as agent, memory and success. One statement; none without outcomes.

    Memories that are not the agent's, or no procedures, are skipped.
    """
    counts: Counter[tuple[UUID, UUID, bool]] = Counter(outcomes)
    if not counts:
        return
    rows = [
        {
            "agent": agent_id,
            "id": memory_id,
            "successes": counts[agent_id, memory_id, True],
            "failures": counts[agent_id, memory_id, False],
        }
        for agent_id, memory_id in sorted({(agent_id, memory_id) for agent_id, memory_id, _ in counts})
    ]
    change(queries.COUNT_OUTCOMES, rows=to_json(rows))


def inherit_practice(*, old_id: UUID, new_id: UUID) -> None:
    """Copy a procedure's outcomes to the procedure it evolved into, unless the new one has outcomes. At most three statements."""
    practice = Practice.objects.filter(memory_id=old_id).first()
    if practice is not None:
        counts = {name: getattr(practice, name) for name in ("successes", "failures", "last_at")}
        Practice.objects.get_or_create(tenant_id=current_tenant(), memory_id=new_id, defaults=counts)
