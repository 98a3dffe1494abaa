"""Memories stored with vectors whose cosines a test chooses."""

from __future__ import annotations

from typing import Any

import numpy as np

from apps.agents.models import Agent
from apps.memories.services.store.placement import StoreResult
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from arbor.memory.values import NewMemory


def store_with(agent: Agent, vectors: Any, *memories: NewMemory) -> StoreResult:
    """Store memories with the vectors given."""
    with tenant_transaction(agent.tenant_id):
        return store(agent_id=agent.id, memories=memories, vectors=vectors)


def unit_vectors(*cosines: float) -> Any:
    """Return unit vectors with these cosines to the first axis, each with an axis of its own."""
    rows = np.zeros((len(cosines), 256), dtype=np.float32)
    for number, cosine in enumerate(cosines):
        rows[number, 0] = cosine
        rows[number, number + 1] = np.sqrt(1 - cosine**2)
    return rows
