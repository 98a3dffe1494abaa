"""Create memories of the four types from their parts (seed 004, "Memory Creation"); embed and store them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from apps.memories.services.graph.concepts import link_memories
from apps.memories.services.graph.relations import relate
from apps.memories.services.store.remember import Remembered, embed_memories, store
from apps.memories.services.store.teaching import record_gift
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid
from arbor.memory.details import (
    Detail,
    Emotion,
    EpisodicDetail,
    ProceduralDetail,
    SemanticDetail,
    StrategicDetail,
)
from arbor.memory.relations import GraphNodeKind, Relation
from arbor.memory.retention import Retention
from arbor.memory.traversal import GraphNode
from arbor.memory.trust import Source
from arbor.memory.values import DEFAULT_TRUST, NewMemory


@dataclass(frozen=True, kw_only=True)
class Creation:
    """A memory to be made, and what it is tied to. Its detail decides its type. Raises Invalid."""

    content: str
    detail: Detail
    #: None: now.
    time: datetime | None = None
    #: None: appraised by what it says.
    importance: float | None = None
    retention: Retention | None = None
    #: Who says so: `heartbeat:ID`, `operator`.
    source: str = ""
    #: Names of concepts, with how strongly it is a case of them, 0 to 1.
    concepts: Mapping[str, float] = field(default_factory=dict)
    #: Beliefs that it bears on: it supports or contradicts them.
    beliefs: Mapping[UUID, Relation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if wrong := set(self.beliefs.values()) - {Relation.SUPPORTS, Relation.CONTRADICTS}:
            raise Invalid(f"a memory supports a belief or contradicts it, got {', '.join(sorted(wrong))}")

    def as_memory(self) -> NewMemory:
        """Return what is stored."""
        detail = self.detail
        emotion = detail.emotion if isinstance(detail, EpisodicDetail) else None
        return NewMemory(
            content=self.content,
            type=detail.type,
            importance=self.importance,
            retention=self.retention,
            # A fact that nobody has said the source of is trusted as far as one can be without any.
            trust=detail.trust if isinstance(detail, SemanticDetail) else DEFAULT_TRUST,
            emotional_valence=emotion.valence if emotion else 0.0,
            occurred_at=self.time or datetime.now(UTC),
            source=self.source,
            detail=detail.to_json(),
        )


def create_memories(
    *, tenant_id: UUID, agent_id: UUID, creations: Sequence[Creation], actor: str | None = None
) -> Remembered:
    """Make memories of one agent, with their concepts, contradictions and beliefs, all of them or none.

    What the agent remembers already is reinforced instead, and tied all the same. Texts are embedded before the
    transaction opens. With an `actor` it is on record who gave them, in the same transaction. Raises Invalid, and
    NotFound for a memory to contradict or a belief that is not this agent's.
    """
    memories = [creation.as_memory() for creation in creations]
    embedded = embed_memories(tenant_id=tenant_id, agent_id=agent_id, memories=memories)
    with tenant_transaction(tenant_id):
        stored = store(agent_id=agent_id, memories=memories, vectors=embedded.vectors, model=embedded.model)
        links: dict[UUID, list[tuple[str, float]]] = {}
        for memory_id, creation in zip(stored.ids, creations, strict=True):
            if creation.concepts:
                links.setdefault(memory_id, []).extend(creation.concepts.items())
            if isinstance(creation.detail, SemanticDetail):
                against = dict.fromkeys(creation.detail.contradictions, Relation.CONTRADICTS)
                _relate(agent_id, memory_id, GraphNodeKind.MEMORY, against, origin=actor or creation.source)
            _relate(
                agent_id, memory_id, GraphNodeKind.BELIEF, creation.beliefs, origin=actor or creation.source
            )
        if links:
            link_memories(agent_id=agent_id, links=links)
        if actor is not None:
            for memory_id in dict.fromkeys(stored.ids):
                record_gift(
                    agent_id=agent_id,
                    memory_id=memory_id,
                    actor=actor,
                    new=memory_id not in stored.duplicates,
                )
    return stored


def create_episodic_memory(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    content: str,
    action: str = "",
    context: str = "",
    result: str = "",
    emotion: Emotion | None = None,
    time: datetime | None = None,
    importance: float | None = None,
    concepts: Iterable[str] = (),
    source: str = "",
) -> UUID:
    """Remember something that happened: in what context, what was done, what came of it and how it felt."""
    detail = EpisodicDetail(context=context, action=action, result=result, emotion=emotion)
    return _create(tenant_id, agent_id, content, detail, time, importance, concepts, source)


def create_semantic_memory(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    content: str,
    confidence: float = 1.0,
    category: str = "",
    concepts: Iterable[str] = (),
    sources: Iterable[Source] = (),
    contradictions: Iterable[UUID] = (),
    alignment: float = 0.0,
    importance: float | None = None,
    source: str = "",
) -> UUID:
    """Remember a fact. It is trusted by `confidence`, but no further than its sources allow: 0.15 without any.

    `contradictions` are memories that cannot be true with it: each gets an edge. `alignment` is how it fits what the
    agent believes, -1 to 1.
    """
    detail = SemanticDetail(
        confidence=confidence,
        category=category,
        sources=tuple(sources),
        contradictions=tuple(contradictions),
        alignment=alignment,
    )
    return _create(tenant_id, agent_id, content, detail, None, importance, concepts, source)


def create_procedural_memory(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    content: str,
    steps: Iterable[str],
    prerequisites: Iterable[str] = (),
    importance: float | None = None,
    concepts: Iterable[str] = (),
    source: str = "",
) -> UUID:
    """Remember how something is done, step by step; `practice.record_outcome` counts how it works out."""
    detail = ProceduralDetail(steps=tuple(steps), prerequisites=tuple(prerequisites))
    return _create(tenant_id, agent_id, content, detail, None, importance, concepts, source)


def create_strategic_memory(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    content: str,
    pattern: str,
    confidence: float = 1.0,
    evidence: Iterable[str] = (),
    applicability: Iterable[str] = (),
    importance: float | None = None,
    concepts: Iterable[str] = (),
    source: str = "",
) -> UUID:
    """Remember a pattern that helps to decide, what it was seen in, and where it applies."""
    detail = StrategicDetail(
        pattern=pattern,
        confidence=confidence,
        evidence=tuple(evidence),
        applicability=tuple(applicability),
    )
    return _create(tenant_id, agent_id, content, detail, None, importance, concepts, source)


def _create(
    tenant_id: UUID,
    agent_id: UUID,
    content: str,
    detail: Detail,
    time: datetime | None,
    importance: float | None,
    concepts: Iterable[str],
    source: str,
) -> UUID:
    creation = Creation(
        content=content,
        detail=detail,
        time=time,
        importance=importance,
        concepts=dict.fromkeys(concepts, 1.0),
        source=source,
    )
    return create_memories(tenant_id=tenant_id, agent_id=agent_id, creations=[creation]).ids[0]


def _relate(
    agent_id: UUID, memory_id: UUID, kind: GraphNodeKind, others: Mapping[UUID, Relation], *, origin: str
) -> None:
    for other, relation in others.items():
        relate(
            agent_id=agent_id,
            source=GraphNode(GraphNodeKind.MEMORY, memory_id),
            target=GraphNode(kind, other),
            relation=relation,
            origin=origin,
        )
