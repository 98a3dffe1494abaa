"""Memories of each type, created from their parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from apps.memories.services.store.create import Creation, create_memories
from arbor.memory.details import Detail, EpisodicDetail, ProceduralDetail, SemanticDetail, StrategicDetail

#: What belongs to a creation, beside the parts of its detail.
_OF_CREATION = ("time", "importance", "source")


def create_episodic_memory(**parts: Any) -> UUID:
    """Remember something that happened."""
    return _create(EpisodicDetail, **parts)


def create_semantic_memory(**parts: Any) -> UUID:
    """Remember a fact."""
    return _create(SemanticDetail, **parts)


def create_procedural_memory(**parts: Any) -> UUID:
    """Remember how something is done."""
    return _create(ProceduralDetail, **parts)


def create_strategic_memory(**parts: Any) -> UUID:
    """Remember a pattern that helps to decide."""
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
    given = {name: parts.pop(name) for name in _OF_CREATION if name in parts}
    detailed = {name: tuple(part) if isinstance(part, list) else part for name, part in parts.items()}
    creation = Creation(
        content=content, detail=detail(**detailed), concepts=dict.fromkeys(concepts, 1.0), **given
    )
    return create_memories(tenant_id=tenant_id, agent_id=agent_id, creations=[creation]).ids[0]
