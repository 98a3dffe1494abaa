"""Rows without a vector: conditions of querysets, SQL and values say the same."""

from __future__ import annotations

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.memories.services.embedding.missing_vectors import (
    REFUSED_BY_EMBEDDER,
    REFUSED_BY_EMBEDDER_SQL,
    WAITS_FOR_VECTOR,
    WAITS_FOR_VECTOR_SQL,
)
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import REFUSED, is_refused
from tests.integration.memories.conftest import memories_of, store_without_vectors, turns
from tests.support.memories import store_memories


def test_every_form_of_the_rule_finds_the_same_rows(mind: Agent) -> None:
    store_memories(mind, *turns("The soup is hot."))
    store_without_vectors(mind, *turns("The harbour is full.", "The harbour is empty."))
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(content__contains="empty").update(embedding_model=f"{REFUSED}fake/embedder")
        waiting = set(Memory.objects.filter(WAITS_FOR_VECTOR).values_list("content", flat=True))
        refused = set(Memory.objects.filter(REFUSED_BY_EMBEDDER).values_list("content", flat=True))
        by_sql = [
            {content for (content,) in fetch(f"SELECT content FROM memories_memory WHERE {condition}")}
            for condition in (WAITS_FOR_VECTOR_SQL, REFUSED_BY_EMBEDDER_SQL)
        ]
    assert len(waiting) == len(refused) == 1
    assert by_sql == [waiting, refused]
    assert {memory.content for memory in memories_of(mind) if is_refused(memory.embedding_model)} == refused
