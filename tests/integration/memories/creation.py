"""Memories of each type, created from their parts, and minds without any."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from apps.agents.models import Agent
from apps.memories.models import Mind
from apps.memories.services.embedding.minds import installation_model
from apps.memories.services.store.create import Creation, create_memories
from apps.tenants.scope import current_tenant, tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.memory.details import Detail, EpisodicDetail, ProceduralDetail, SemanticDetail, StrategicDetail

#: Parameters of a creation that are not part of its detail.
_OF_CREATION = ("time", "importance", "source")


def create_episodic_memory(**parts: Any) -> UUID:
    """Store an episodic memory."""
    return _create(EpisodicDetail, **parts)


def create_semantic_memory(**parts: Any) -> UUID:
    """Store a semantic memory."""
    return _create(SemanticDetail, **parts)


def create_procedural_memory(**parts: Any) -> UUID:
    """Store a procedural memory."""
    return _create(ProceduralDetail, **parts)


def create_strategic_memory(**parts: Any) -> UUID:
    """Store a strategic memory."""
    return _create(StrategicDetail, **parts)


def _create(
    detail: type[Detail],
    *,
    tenant_id: UUID,
    agent_id: UUID,
    content: str,
    concepts: Iterable[str] = (),
    **parts: Any,
) -> UUID:
    options = {name: parts.pop(name) for name in _OF_CREATION if name in parts}
    detailed: dict[str, Any] = {
        name: tuple(part) if isinstance(part, list) else part for name, part in parts.items()
    }
    creation = Creation(
        content=content, detail=detail(**detailed), concepts=dict.fromkeys(concepts, 1.0), **options
    )
    return create_memories(tenant_id=tenant_id, agent_id=agent_id, creations=[creation]).ids[0]


def open_mind(agent_id: UUID) -> EmbeddingModel:
    """Give an agent a mind by the installation's model if it has none, and return the model of its vectors."""
    model = installation_model()
    new = {"embedding_model": model.name, "embedding_dimension": model.dimension}
    mind, _ = Mind.objects.get_or_create(tenant_id=current_tenant(), agent_id=agent_id, defaults=new)
    return EmbeddingModel(name=mind.embedding_model, dimension=mind.embedding_dimension)


def create_mind(agent: Agent, model: EmbeddingModel) -> None:
    """Give an agent a mind by this model."""
    with tenant_transaction(agent.tenant_id):
        open_mind(agent.id)
        Mind.objects.filter(agent_id=agent.id).update(
            embedding_model=model.name, embedding_dimension=model.dimension
        )
