"""Revise memories, and change their importance and trust, on behalf of their agent, each with an audit record of the values before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import Memory
from apps.memories.services.graph.relations import NewRelation, relate
from apps.memories.services.retention.archive import archive, reinforce
from apps.memories.services.retention.pins import move_pin
from apps.memories.services.store.provenance import inherit_practice
from apps.memories.services.store.remember import store
from apps.memories.services.store.term_counts import lock_minds
from apps.signals.services.emission import emit
from arbor.audit.changes import change_of
from arbor.embedding.models import EmbeddingModel
from arbor.embedding.ports import Vectors
from arbor.errors import Invalid, NotFound
from arbor.memory.content import content_hash
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.duplicates import DOUBTED
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.memory.trust import check_unit, max_trust
from arbor.memory.values import MemoryStatus, MemoryType, NewMemory, Retention
from arbor.signals import SignalName, signal

#: The share of a memory's trust that remains after a doubt.
DOUBTED_SHARE = 0.5
_COLUMNS = (
    "type", "content", "content_hash", "importance", "trust", "occurred_at", "emotional_valence", "detail", "retention",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RevisableMemory:
    """An active memory, with the values that a revision changes or copies."""

    type: MemoryType
    content: str
    content_hash: bytes
    importance: float
    trust: float
    occurred_at: datetime
    emotional_valence: float
    #: The JSON of the memory's row.
    detail: dict[str, Any]
    retention: Retention
    #: The successes and failures of a procedure; None without outcomes.
    practice: tuple[int, int] | None
    #: None for a memory that is not pinned.
    pinned_at: datetime | None


def memory_of(*, agent_id: UUID, memory_id: UUID) -> RevisableMemory:
    """Return an active memory of the agent. One statement. Raises NotFound for a memory of another agent, or an archived one."""
    found: dict[str, Any] | None = (
        Memory.objects.filter(agent_id=agent_id, id=memory_id)
        .values(
            *_COLUMNS,
            "status",
            successes=F("practice__successes"),
            failures=F("practice__failures"),
            pinned_at=F("pin__pinned_at"),
        )
        .first()
    )
    if found is None:
        raise NotFound(f"there is no memory {memory_id} of this agent")
    if found.pop("status") != MemoryStatus.ACTIVE:
        raise NotFound(f"memory {memory_id} is archived; a person can bring it back")
    successes, failures = found.pop("successes"), found.pop("failures")
    return RevisableMemory(
        **found
        | {
            "type": MemoryType(found["type"]),
            "content_hash": bytes(found["content_hash"]),
            "retention": Retention(found["retention"]),
            "practice": None if successes is None else (successes, failures),
        }
    )


def confirm(*, agent_id: UUID, memory_id: UUID, reason: str, actor: str) -> None:
    """Confirm a memory without a change, and count it as reinforced. Raises NotFound."""
    memory_of(agent_id=agent_id, memory_id=memory_id)
    reinforce({memory_id: 1})
    _record(agent_id, memory_id, actor, f"kept a memory as it is: {reason}")


def change_importance(*, agent_id: UUID, memory_id: UUID, importance: float, reason: str, actor: str) -> None:
    """Set the importance of a memory, 0 to 1. Raises NotFound, Invalid."""
    check_unit("importance", importance)
    lock_minds([agent_id])
    before = memory_of(agent_id=agent_id, memory_id=memory_id)
    Memory.objects.filter(id=memory_id).update(importance=importance)
    _record(
        agent_id,
        memory_id,
        actor,
        f"changed the importance of a memory: {reason}",
        importance=(before.importance, importance),
    )


def halve_trust(*, agent_id: UUID, memory_id: UUID, reason: str, actor: str) -> float:
    """Halve the trust of a memory, and return the new trust. Raises NotFound.

    A fact is marked as doubted, so that the same source does not undo the doubt by repeating the fact (`duplicates.merge_details`).
    """
    lock_minds([agent_id])
    before = memory_of(agent_id=agent_id, memory_id=memory_id)
    trust = before.trust * DOUBTED_SHARE
    detail = before.detail
    if before.type is MemoryType.SEMANTIC:
        # A fact's trust is at most its confidence. The confidence is lowered too, or its sources would raise the trust again.
        detail = _doubted(detail).to_json()
    Memory.objects.filter(id=memory_id).update(trust=trust, detail=detail)
    _record(agent_id, memory_id, actor, f"doubted a memory: {reason}", trust=(before.trust, trust))
    return trust


def _doubted(detail: Any) -> SemanticDetail:
    """Return the detail of a fact as doubted, with half the confidence that its sources allow."""
    fact = read_detail(MemoryType.SEMANTIC, detail)
    assert isinstance(fact, SemanticDetail)
    confidence = min(fact.confidence, max_trust(fact.sources)) if fact.sources else fact.confidence
    return replace(fact, confidence=DOUBTED_SHARE * confidence, extra={**fact.extra, DOUBTED: True})


def revise(
    *,
    agent_id: UUID,
    memory_id: UUID,
    revised: NewMemory,
    reason: str,
    actor: str,
    vectors: Vectors | None,
    model: EmbeddingModel | None,
) -> UUID:
    """Replace a memory by a revised one in the open transaction, and return the new id.

    The memory is archived unchanged, and related to the memory that it evolved into. Raises NotFound, and Invalid for a text
    that is the same.
    """
    lock_minds([agent_id])
    before = memory_of(agent_id=agent_id, memory_id=memory_id)
    if before.content_hash == content_hash(revised.content):
        raise Invalid(f"memory {memory_id} has this text already; revise it to another text, or keep it")
    # Archive first: otherwise a revised memory with nearly the same words would be merged into this one.
    archive(memory_ids=[memory_id], reason=reason, actor=actor)
    (new_id,) = store(agent_id=agent_id, memories=[revised], vectors=vectors, model=model).ids
    evolution = NewRelation(
        source=GraphNode(GraphNodeKind.MEMORY, memory_id),
        target=GraphNode(GraphNodeKind.MEMORY, new_id),
        relation=Relation.EVOLVED_INTO,
        note=reason,
        origin=revised.source,
    )
    relate(agent_id=agent_id, new=evolution)
    if before.practice and revised.detail.get("steps") == before.detail.get("steps"):
        inherit_practice(old_id=memory_id, new_id=new_id)
    if before.pinned_at:
        move_pin(old_id=memory_id, new_id=new_id)
    _record(
        agent_id,
        memory_id,
        actor,
        f"revised a memory: {reason}",
        # The audit log has hashes instead of the texts, because a purge must delete every copy of a text.
        content_hash=(before.content_hash.hex(), content_hash(revised.content).hex()),
        importance=(before.importance, revised.importance),
        kept_as=(str(memory_id), str(new_id)),
    )
    return new_id


def _record(agent_id: UUID, memory_id: UUID, actor: str, message: str, **changes: tuple[Any, Any]) -> None:
    record(
        action=AuditAction.MEMORIES_REVISED,
        actor=actor,
        agent_id=agent_id,
        message=message,
        detail={
            "memory_id": str(memory_id),
            "changes": {name: {"from": before, "to": after} for name, (before, after) in changes.items()},
        },
        change=change_of(
            {name: before for name, (before, _) in changes.items()},
            {name: after for name, (_, after) in changes.items()},
        ),
    )
    emit(
        signal(SignalName.MEMORY_CORRECTED, agent_id, memory=memory_id, changes=sorted(changes), actor=actor)
    )
