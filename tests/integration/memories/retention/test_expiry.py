"""Expired memories: archived, audited and counted out once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.models import Memory
from apps.memories.services.retention.forgetting import expire_memories
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.memory.values import MemoryStatus
from tests.integration.memories.conftest import (
    a_memory,
    at_once,
    memories_of,
    store_without_vectors,
    term_counts,
    true_counts,
)


def test_an_expired_memory_is_archived_and_audited(mind: Agent, other_mind: Agent) -> None:
    past, future = (datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (-1, 60))
    store_without_vectors(
        mind,
        a_memory("The code is 4711.", expires_at=past),
        a_memory("The code was painted over.", expires_at=past),
        a_memory("The code is 1147.", expires_at=future),
        a_memory("The door is green."),
    )
    store_without_vectors(other_mind, a_memory("The code is 99.", expires_at=past))
    assert expire_memories().done == 3
    by_status = {memory.content: memory.status for memory in memories_of(mind)}
    assert by_status == {
        "The code is 4711.": MemoryStatus.ARCHIVED,
        "The code was painted over.": MemoryStatus.ARCHIVED,
        "The code is 1147.": MemoryStatus.ACTIVE,
        "The door is green.": MemoryStatus.ACTIVE,
    }
    assert all(memory.archived_at for memory in memories_of(mind) if memory.status == MemoryStatus.ARCHIVED)
    assert term_counts(mind) == true_counts(mind)
    assert term_counts(other_mind) == {}
    with tenant_transaction(mind.tenant_id):
        events = AuditEvent.objects.filter(action=AuditAction.MEMORIES_EXPIRED).order_by("agent_id")
        assert {(event.agent_id, event.message, event.actor) for event in events} == {
            (mind.id, "archived 2 memories: their time was over", "system:maintenance"),
            (other_mind.id, "archived 1 memory: their time was over", "system:maintenance"),
        }
    assert expire_memories().done == 0


def test_expiry_is_audited_in_each_tenant(mind: Agent, foreign_mind: Agent) -> None:
    past = datetime.now(UTC) - timedelta(minutes=1)
    store_without_vectors(mind, a_memory("Ours.", expires_at=past))
    store_without_vectors(foreign_mind, a_memory("Theirs.", expires_at=past))
    assert expire_memories().done == 2
    for agent in (mind, foreign_mind):
        with tenant_transaction(agent.tenant_id):
            assert AuditEvent.objects.filter(action=AuditAction.MEMORIES_EXPIRED).count() == 1


def test_concurrent_expiry_counts_memories_out_once(mind: Agent, other_mind: Agent) -> None:
    past = datetime.now(UTC) - timedelta(minutes=1)
    for agent in (mind, other_mind):
        store_without_vectors(
            agent, *(a_memory(f"Ticket {number}.", expires_at=past) for number in range(20))
        )
        store_without_vectors(agent, a_memory("Ticket office."))
    assert sum(result.done for result in at_once(lambda _: expire_memories(), writers=4)) == 40
    for agent in (mind, other_mind):
        assert term_counts(agent) == true_counts(agent)


def test_expiry_and_storing_at_once_keep_the_counts_right(mind: Agent, tenant: Tenant) -> None:
    past = datetime.now(UTC) - timedelta(minutes=1)
    texts = [f"Ticket {number} is valid." for number in range(12)]
    store_without_vectors(mind, *(a_memory(text, expires_at=past) for text in texts))

    def work(worker: int) -> None:
        if worker % 2:
            expire_memories()
            return
        for text in texts:
            store_without_vectors(mind, a_memory(text))

    at_once(work, writers=6)
    with tenant_transaction(tenant.id):
        assert Memory.objects.filter(status=MemoryStatus.ACTIVE, expires_at=None).count() == len(texts)
    assert term_counts(mind) == true_counts(mind)
