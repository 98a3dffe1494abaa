"""Move a test's agent to another embedding model, and read its vectors."""

from __future__ import annotations

from typing import Any

from apps.agents.models import Agent
from apps.memories.models import NextEmbedding
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.embedding.reembed import ModelSwitch, Reembedding, find_moves
from apps.tenants.scope import tenant_transaction
from arbor.embedding.models import EmbeddingModel
from tests.integration.memories.conftest import memories_of

#: The installation's model, and the same model with shorter vectors.
LONG = EmbeddingModel(name="wordllama", dimension=256)
SHORT = EmbeddingModel(name="wordllama", dimension=64)
#: Texts of which some mean nearly the same.
STATEMENTS = [
    f"The {what} of ship {number} is {state}."
    for number in range(12)
    for what, state in (("anchor", "rusty"), ("cook", "asleep"), ("harbour fee", "unpaid"))
]


def move(agent: Agent, model: EmbeddingModel, **parts: Any) -> ModelSwitch:
    """Move an agent to an embedding model, and return the switch."""
    moves = find_moves(model=model, actor="cli:test", tenant_id=agent.tenant_id, agent_id=agent.id)
    (switch,) = Reembedding(model=model, actor="cli:test", pause=lambda _: None, **parts).run(moves)
    return switch


def vectors_of(agent: Agent) -> dict[str, list[float]]:
    return {
        memory.content: list(memory.embedding)
        for memory in memories_of(agent)
        if memory.embedding is not None
    }


def count_next_embeddings(agent: Agent) -> int:
    with tenant_transaction(agent.tenant_id):
        return NextEmbedding.objects.filter(agent_id=agent.id).count()


def current_model(agent: Agent) -> EmbeddingModel:
    with tenant_transaction(agent.tenant_id):
        return model_of(agent.id)
