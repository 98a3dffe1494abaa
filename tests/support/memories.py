"""A conversation to remember, and a short call that stores memories."""

from __future__ import annotations

from apps.agents.models import Agent
from apps.memories.services.store.placement import StoreResult
from apps.memories.services.store.remember import remember
from arbor.memory.values import NewMemory

TALK = (
    "Did you get the boat out of the shed?",
    "Yes, on Sunday. The hull needs two coats of paint.",
    "What colour?",
    "Green, as it was when my father sailed it.",
    "I can lend you my brushes.",
)


def store_memories(agent: Agent, *memories: NewMemory) -> StoreResult:
    return remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories)
