"""Details of memories: found by their words, and returned with recalled memories."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.memories.models import Memory, Upkeep
from apps.memories.services.embedding.literals import sparsevec_text
from apps.memories.services.jobs.reindexing import reindex_words
from apps.memories.services.recall import cached_recall
from apps.memories.services.recall.recaller import recall
from apps.memories.services.retention.archive import archive, flag_for_reindexing
from apps.memories.services.store.provenance import record_outcome
from apps.memories.services.store.remember import store
from apps.memories.services.store.term_counts import count_terms, read_frequencies, terms_of
from apps.tenants.scope import tenant_transaction
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.text.lexical import document_vector, term_index, term_of
from arbor.memory.values import Recalled
from tests.integration.memories.conftest import NOON, a_memory
from tests.integration.memories.creation import create_procedural_memory, create_semantic_memory
from tests.integration.memories.embedding.moves import SHORT, move

STEPS = ["Drain the bilge", "Grease the winch"]


def find(agent: Agent, text: str) -> list[Recalled]:
    request = RecallRequest(agent_id=agent.id, text=text, limit=3, now=NOON)
    return recall(tenant_id=agent.tenant_id, request=request)


def store_procedure(agent: Agent, **parts: Any) -> UUID:
    return create_procedural_memory(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        content="How to lay up the boat",
        **({"steps": STEPS} | parts),
    )


def indexed_terms(agent: Agent, memory_id: UUID) -> set[int]:
    with tenant_transaction(agent.tenant_id):
        return set(terms_of(Memory.objects.get(id=memory_id).lexical))


def document_frequency(agent: Agent, word: str) -> int:
    with tenant_transaction(agent.tenant_id):
        term = term_index(term_of(word))
        return read_frequencies(agent.id, [term])[0].get(term, 0)


def unindexed_ids(agent: Agent) -> set[UUID]:
    with tenant_transaction(agent.tenant_id):
        rows = Upkeep.objects.filter(agent_id=agent.id, unindexed=True)
        return set(rows.values_list("memory_id", flat=True))


@pytest.mark.parametrize("max_contents", [128, 0])
def test_a_recalled_procedure_has_steps_and_outcomes(
    mind: Agent, monkeypatch: pytest.MonkeyPatch, max_contents: int
) -> None:
    """Read the texts together with the state of a small mind, and in a statement of their own."""
    monkeypatch.setattr(cached_recall, "MAX_CONTENTS", max_contents)
    memory_id = store_procedure(mind)
    assert find(mind, "lay up the boat")[0].details == (
        "steps: 1. Drain the bilge; 2. Grease the winch",
        "not tried yet",
    )
    with tenant_transaction(mind.tenant_id):
        for success in (True, True, False):
            record_outcome(agent_id=mind.id, memory_id=memory_id, success=success)
    assert find(mind, "lay up the boat")[0].details[-1] == "worked 2 of 3 times"


def test_a_recalled_fact_has_its_confidence(mind: Agent) -> None:
    create_semantic_memory(
        tenant_id=mind.tenant_id, agent_id=mind.id, content="The reef is three metres deep", confidence=0.6
    )
    assert find(mind, "How deep is the reef?")[0].details == ("confidence 60%",)


def test_a_plain_memory_has_no_details_and_its_own_words(mind: Agent) -> None:
    text = "We talked about the harbour."
    with tenant_transaction(mind.tenant_id):
        store(
            agent_id=mind.id,
            memories=[a_memory(text, session="talk", role="Ada", detail={"source_id": "D1:3"})],
            vectors=None,
        )
        (stored,) = Memory.objects.filter(agent_id=mind.id)
    assert (
        stored.lexical.to_text()
        == type(stored.lexical).from_text(sparsevec_text(document_vector(text, speaker="Ada"))).to_text()
    )
    assert find(mind, "What about the harbour?")[0].details == ()


def test_a_memory_is_found_by_the_words_of_its_steps(mind: Agent) -> None:
    memory_id = store_procedure(mind)
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=[a_memory(f"Note {number}") for number in range(5)], vectors=None)
    best = find(mind, "grease the winch")[0]
    assert (best.id, best.components.words > 0.5) == (memory_id, True)
    assert document_frequency(mind, "winch") == 1


def test_memories_of_an_older_version_are_indexed_again(mind: Agent) -> None:
    memory_id, plain = store_procedure(mind), "The tide turns at six."
    with tenant_transaction(mind.tenant_id):
        (plain_id,) = store(agent_id=mind.id, memories=[a_memory(plain)], vectors=None).ids
        known = Memory.objects.get(id=memory_id)
        before = document_vector(known.content)
        count_terms(mind.id, terms=[terms_of(known.lexical)], sign=-1)
        count_terms(mind.id, terms=[before], sign=1)
        Memory.objects.filter(id=memory_id).update(
            lexical=type(known.lexical).from_text(sparsevec_text(before))
        )
        Upkeep.objects.filter(agent_id=mind.id).update(unindexed=True)
    assert find(mind, "grease the winch")[0].components.words == 0
    words_of_plain = indexed_terms(mind, plain_id)

    assert reindex_words().done == 2

    assert find(mind, "grease the winch")[0].id == memory_id
    assert (document_frequency(mind, "winch"), document_frequency(mind, "boat")) == (1, 1)
    assert indexed_terms(mind, plain_id) == words_of_plain
    assert (unindexed_ids(mind), reindex_words().steps) == (set(), 0)


def test_steps_that_are_added_later_are_indexed(mind: Agent) -> None:
    memory_id = store_procedure(mind, steps=[])
    assert unindexed_ids(mind) == set()
    assert store_procedure(mind) == memory_id
    assert unindexed_ids(mind) == {memory_id}
    assert term_index(term_of("winch")) not in indexed_terms(mind, memory_id)
    reindex_words()
    assert term_index(term_of("winch")) in indexed_terms(mind, memory_id)
    assert document_frequency(mind, "winch") == 1


def test_an_archived_memory_is_indexed_without_being_counted(mind: Agent) -> None:
    memory_id = store_procedure(mind)
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=[memory_id], reason="over", actor="test")
        flag_for_reindexing([memory_id])
    reindex_words()
    assert document_frequency(mind, "winch") == 0
    assert term_index(term_of("winch")) in indexed_terms(mind, memory_id)


def test_re_embedding_keeps_the_words_of_details(mind: Agent) -> None:
    memory_id = store_procedure(mind)
    before = indexed_terms(mind, memory_id)
    move(mind, SHORT)
    assert term_index(term_of("winch")) in before
    assert indexed_terms(mind, memory_id) == before
    assert document_frequency(mind, "winch") == 1
