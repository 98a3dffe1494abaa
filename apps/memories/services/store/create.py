"""Create memories with their relations (seed 004, "Memory Creation"), or store one memory that a person gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from apps.agents.services.locks import lock_schedule
from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.embedding.embedding import embed_agent_texts
from apps.memories.services.graph.concepts import link_memories
from apps.memories.services.graph.relations import NewRelation, relate
from apps.memories.services.store.appraisal import lasting
from apps.memories.services.store.placement import StoreResult
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid
from arbor.memory.details import Detail, EpisodicDetail, SemanticDetail
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.memory.values import DEFAULT_TRUST, NewMemory, Retention


class TrustUpdate(Protocol):
    """Update the trust of facts by the beliefs that they are related to; beliefs belong to a higher app."""

    def __call__(self, *, agent_id: UUID, memory_ids: Sequence[UUID]) -> int:
        """Return the number of facts whose trust changed."""


@dataclass(frozen=True, kw_only=True)
class Creation:
    """A memory to create, with the concepts and beliefs that it is related to. Its detail decides its type. Raises Invalid."""

    content: str
    detail: Detail
    #: None: now.
    time: datetime | None = None
    #: None: appraised by the text.
    importance: float | None = None
    retention: Retention | None = None
    #: The origin: `heartbeat:ID`, `operator`.
    source: str = ""
    #: Names of concepts, with the degree to which the memory is a case of them, 0 to 1.
    concepts: Mapping[str, float] = field(default_factory=dict)
    #: The beliefs that the memory supports or contradicts.
    beliefs: Mapping[UUID, Relation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if wrong := set(self.beliefs.values()) - {Relation.SUPPORTS, Relation.CONTRADICTS}:
            raise Invalid(f"a memory supports a belief or contradicts it, got {', '.join(sorted(wrong))}")

    def as_memory(self) -> NewMemory:
        """Return the memory to store."""
        detail = self.detail
        emotion = detail.emotion if isinstance(detail, EpisodicDetail) else None
        return NewMemory(
            content=self.content,
            type=detail.type,
            importance=self.importance,
            retention=self.retention,
            # A fact has the trust that its confidence and its sources allow.
            trust=detail.trust if isinstance(detail, SemanticDetail) else DEFAULT_TRUST,
            emotional_valence=emotion.valence if emotion else 0.0,
            occurred_at=self.time or datetime.now(UTC),
            source=self.source,
            detail=detail.to_json(),
        )


def create_memories(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    creations: Sequence[Creation],
    actor: str | None = None,
    update_trust: TrustUpdate | None = None,
) -> StoreResult:
    """Create memories of one agent, with their relations to concepts, contradicted memories and beliefs, in one transaction.

    A memory that exists already is reinforced instead, and gets the relations too. Texts are embedded before the transaction opens.
    In the transaction, the audit log records the `actor`, if there is one, and `update_trust` is called for memories that are
    related to beliefs. Raises Invalid, and NotFound for a contradicted memory or a belief that is not this agent's.
    """
    memories = [creation.as_memory() for creation in creations]
    texts = [memory.content for memory in memories]
    embedded = embed_agent_texts(tenant_id=tenant_id, agent_id=agent_id, texts=texts)
    with tenant_transaction(tenant_id):
        if any(creation.beliefs for creation in creations):
            # Evidence leads to a proposal, which locks the agent's row after the mind.
            lock_schedule(agent_id)
        stored = store(agent_id=agent_id, memories=memories, vectors=embedded.vectors, model=embedded.model)
        links: dict[UUID, list[tuple[str, float]]] = {}
        for memory_id, creation in zip(stored.ids, creations, strict=True):
            if creation.concepts:
                links.setdefault(memory_id, []).extend(creation.concepts.items())
            _relate(agent_id, memory_id, creation, origin=actor or creation.source)
            if creation.beliefs and update_trust is not None:
                update_trust(agent_id=agent_id, memory_ids=[memory_id])
        if links:
            link_memories(agent_id=agent_id, links=links)
        if actor is not None:
            for memory_id in dict.fromkeys(stored.ids):
                _record_addition(
                    agent_id=agent_id,
                    memory_id=memory_id,
                    actor=actor,
                    new=memory_id not in stored.duplicates,
                )
    return stored


def teach_agent(*, tenant_id: UUID, agent_id: UUID, memory: NewMemory, actor: str) -> StoreResult:
    """Store a memory that a person gives, and record the person in the audit log, in one transaction.

    The memory is lasting unless it has a retention, and is embedded before the transaction opens. Raises NotFound for the agent.
    """
    with tenant_transaction(tenant_id):
        agent_by_id(agent_id)
    embedded = embed_agent_texts(tenant_id=tenant_id, agent_id=agent_id, texts=[memory.content])
    with tenant_transaction(tenant_id):
        stored = store(
            agent_id=agent_id, memories=[lasting(memory)], vectors=embedded.vectors, model=embedded.model
        )
        _record_addition(agent_id=agent_id, memory_id=stored.ids[0], actor=actor, new=bool(stored.stored))
    return stored


def _record_addition(*, agent_id: UUID, memory_id: UUID, actor: str, new: bool) -> None:
    """Record in the audit log who gave an agent a memory. Raises NotFound for the agent."""
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"added a memory to {agent_by_id(agent_id).name}",
        detail={"memory_id": str(memory_id), "new": new},
    )


def _relate(agent_id: UUID, memory_id: UUID, creation: Creation, *, origin: str) -> None:
    """Relate a memory to the memories that it contradicts, and to the beliefs that it supports or contradicts."""
    ends = {}
    if isinstance(creation.detail, SemanticDetail):
        others = creation.detail.contradictions
        ends = {GraphNode(GraphNodeKind.MEMORY, other): Relation.CONTRADICTS for other in others}
    for belief, relation in creation.beliefs.items():
        ends[GraphNode(GraphNodeKind.BELIEF, belief)] = relation
    memory = GraphNode(GraphNodeKind.MEMORY, memory_id)
    for end, relation in ends.items():
        new = NewRelation(source=memory, target=end, relation=relation, origin=origin)
        relate(agent_id=agent_id, new=new)
