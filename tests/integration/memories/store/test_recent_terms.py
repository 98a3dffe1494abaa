"""Terms of new memories: they wait in one row, and are counted when they are many or a memory is archived."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.memories.models import Memory, Term
from apps.memories.services.retention.archive import archive, restore
from apps.memories.services.store import queries
from apps.memories.services.store.placement import StoreRequest
from apps.memories.services.store.remember import MemoryWriter, store
from apps.memories.services.store.term_counts import read_frequencies
from apps.tenants.scope import tenant_transaction
from tests.integration.memories.conftest import a_memory, at_once, term_counts, true_counts


def remember_all(agent: Agent, *texts: str) -> None:
    for text in texts:
        with tenant_transaction(agent.tenant_id):
            store(agent_id=agent.id, memories=[a_memory(text)], vectors=None)


def recent_terms(agent: Agent) -> list[int]:
    with tenant_transaction(agent.tenant_id):
        (recent,) = Term.objects.filter(agent_id=agent.id, term=-1).values_list("recent", flat=True)
        return list(recent or ())


def count_counted_terms(agent: Agent) -> int:
    with tenant_transaction(agent.tenant_id):
        return Term.objects.filter(agent_id=agent.id, term__gte=0).count()


def test_terms_of_few_memories_wait_in_one_row(mind: Agent) -> None:
    remember_all(mind, "The harbour is closed.", "The harbour is open.")
    assert count_counted_terms(mind) == 0
    assert len(recent_terms(mind)) == sum(true_counts(mind).values())
    assert term_counts(mind) == true_counts(mind)


def test_many_recent_terms_are_counted(mind: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_RECENT_TERMS", 8)
    remember_all(mind, "The harbour is closed.", "The harbour is open.", "The harbour is full of boats.")
    assert (count_counted_terms(mind) > 0, recent_terms(mind)) == (True, [])
    remember_all(mind, "Boats.")
    assert len(recent_terms(mind)) == 2
    assert term_counts(mind) == true_counts(mind)
    with tenant_transaction(mind.tenant_id):
        assert read_frequencies(mind.id, true_counts(mind)) == (
            {term: count for term, count in true_counts(mind).items() if term},
            4,
        )


def test_recent_terms_are_counted_when_a_memory_is_archived(mind: Agent) -> None:
    with tenant_transaction(mind.tenant_id):
        (gone, _) = store(
            agent_id=mind.id,
            memories=[a_memory("The tide turns."), a_memory("The tide waits.")],
            vectors=None,
        ).ids
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=[gone], reason="over", actor="test")
    assert recent_terms(mind) == []
    assert term_counts(mind) == true_counts(mind)


def test_a_restored_memory_waits_to_be_counted(mind: Agent) -> None:
    remember_all(mind, "The tide turns.", "The tide waits.")
    with tenant_transaction(mind.tenant_id):
        gone = Memory.objects.filter(agent_id=mind.id).earliest("id").id
        archive(memory_ids=[gone], reason="over", actor="test")
        restore(memory_ids=[gone], reason="not over", actor="test")
    assert recent_terms(mind)
    assert term_counts(mind) == true_counts(mind)


def test_memories_stored_at_once_are_all_counted(mind: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_RECENT_TERMS", 12)
    at_once(
        lambda number: remember_all(mind, f"Boat {number} is late.", f"Boat {number} is here."), writers=4
    )
    assert term_counts(mind) == true_counts(mind)


def test_agents_of_one_statement_are_counted_apart(
    mind: Agent, other_mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Store for two agents together: one agent's terms are counted, the other's wait."""
    monkeypatch.setattr(queries, "MAX_RECENT_TERMS", 8)
    remember_all(mind, "The harbour is closed.", "The harbour is open.")
    with tenant_transaction(mind.tenant_id):
        writer = MemoryWriter()
        writer.place(
            [
                StoreRequest(agent_id=agent.id, memories=[a_memory("The harbour is full.")])
                for agent in (mind, other_mind)
            ]
        )
        writer.write()
    assert (recent_terms(mind), len(recent_terms(other_mind))) == ([], 3)
    for agent in (mind, other_mind):
        assert term_counts(agent) == true_counts(agent)
