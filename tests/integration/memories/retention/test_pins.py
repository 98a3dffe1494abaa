"""Pinned memories: they outlive decay, quotas and an expiry, and get back what they had when they are unpinned."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.models import Memory, MemoryAccess, Pin
from apps.memories.services.retention import pins
from apps.memories.services.retention.archive import archive, purge, restore
from apps.memories.services.retention.forgetting import (
    clean_up_memories,
    enforce_quotas,
    expire_memories,
    fade_memories,
)
from apps.memories.services.retention.pins import MAX_PINS, pin, unpin
from apps.memories.services.store.remember import remember, store
from apps.memories.services.store.revision import revise
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, LimitReached, NotFound
from arbor.ids import uuid7
from arbor.memory.values import MemoryStatus, MemoryType, Retention
from tests.integration.memories.conftest import a_memory
from tests.support.moved_clock import moved_clock

ADA = "user:ada"


def store_memories(agent: Agent, *memories: Any) -> list[UUID]:
    """Store memories as heartbeats do, with a row of the mind."""
    return list(remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories).ids)


def memory_row(agent: Agent, memory_id: UUID) -> Memory:
    with tenant_transaction(agent.tenant_id):
        memory: Memory = Memory.objects.defer("embedding", "lexical").get(id=memory_id)
        return memory


def active_ids(agent: Agent) -> set[UUID]:
    with tenant_transaction(agent.tenant_id):
        return set(
            Memory.objects.filter(agent_id=agent.id, status=MemoryStatus.ACTIVE).values_list("id", flat=True)
        )


def act(agent: Agent, service: Any, *ids: UUID, **values: Any) -> int:
    with tenant_transaction(agent.tenant_id):
        return int(service(memory_ids=ids, actor=ADA, **values))


def test_pinned_memories_outlive_weeks_of_maintenance(
    mind: Agent, settings: Any, superuser: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ARBOR_MEMORY_QUOTA = 2
    settings.ARBOR_KNOWLEDGE_QUOTAS = dict.fromkeys(
        (MemoryType.SEMANTIC, MemoryType.PROCEDURAL, MemoryType.STRATEGIC), 2
    )
    with moved_clock(superuser, monkeypatch) as clock:
        soon = clock.now() + timedelta(days=3)
        names = ("event", "fact", "way", "rule")
        first = {
            kind: store_memories(
                mind,
                a_memory(f"Pinned {name}.", type=kind, importance=0.01, expires_at=soon),
                a_memory(f"Left {name}.", type=kind, importance=0.01),
            )
            for kind, name in zip(MemoryType, names, strict=True)
        }
        pinned = [ids[0] for ids in first.values()]
        assert act(mind, pin, *pinned, reason="the founding papers") == 4
        for week in range(10):
            for kind in MemoryType:
                store_memories(mind, a_memory(f"News {week} of {kind}.", type=kind, importance=0.9))
            clock.advance(timedelta(days=7))
            for job in (expire_memories, fade_memories, clean_up_memories, enforce_quotas):
                assert job().failed == 0
            assert set(pinned) <= active_ids(mind)
    left = {ids[1] for ids in first.values()}
    assert not left & active_ids(mind)
    with tenant_transaction(mind.tenant_id):
        rows = Memory.objects.filter(agent_id=mind.id, status=MemoryStatus.ACTIVE).values_list(
            "type", flat=True
        )
        assert sorted(rows) == sorted(kind.value for kind in MemoryType for _ in range(2))


def test_an_unpinned_memory_regains_its_retention(mind: Agent) -> None:
    later = datetime.now(UTC) + timedelta(days=9)
    past = datetime.now(UTC) - timedelta(days=9)
    ids = store_memories(
        mind,
        a_memory("The harbour opens at six.", expires_at=later, decay_rate=0.03, retention=Retention.TASK),
        a_memory("The tide is out."),
    )
    assert act(mind, pin, *ids) == 2
    assert act(mind, pin, *ids) == 0
    for memory in (memory_row(mind, ids[0]), memory_row(mind, ids[1])):
        assert (memory.decay_rate, memory.retention, memory.expires_at) == (0, Retention.PERMANENT, None)
    with tenant_transaction(mind.tenant_id):
        Pin.objects.filter(memory_id=ids[1]).update(expires_at=past)
    assert act(mind, unpin, *ids) == 2
    assert act(mind, unpin, *ids) == 0
    first, second = (memory_row(mind, memory_id) for memory_id in ids)
    assert (first.decay_rate, first.retention, first.expires_at) == (0.03, Retention.TASK, later)
    assert second.expires_at is None
    with tenant_transaction(mind.tenant_id):
        access = MemoryAccess.objects.get(memory_id=ids[0])
        assert (access.count, access.reinforced) == (0, 0)
        assert access.reinforced_at is not None
        messages = list(
            AuditEvent.objects.filter(action=AuditAction.OPERATOR_ACT, actor=ADA)
            .order_by("id")
            .values_list("message", flat=True)
        )
    assert messages == ["pinned 2 memories", "unpinned 2 memories"]


def test_a_pin_outlasts_the_archive_and_goes_with_a_purge(mind: Agent) -> None:
    (memory_id,) = store_memories(mind, a_memory("The lamp is green.", retention=Retention.TASK))
    act(mind, pin, memory_id)
    act(mind, archive, memory_id, reason="a mistake")
    with (
        tenant_transaction(mind.tenant_id),
        pytest.raises(Invalid, match="restore memories before you pin them"),
    ):
        pin(memory_ids=[memory_id], actor=ADA)
    act(mind, restore, memory_id, reason="no mistake", for_good=True)
    act(mind, unpin, memory_id)
    assert memory_row(mind, memory_id).retention == Retention.PERMANENT
    act(mind, pin, memory_id)
    act(mind, archive, memory_id, reason="a mistake")
    act(mind, purge, memory_id, reason="asked to be forgotten")
    with tenant_transaction(mind.tenant_id):
        assert not Pin.objects.exists()


def revise_lamp(mind: Agent, memory_id: UUID) -> UUID:
    return revise(
        agent_id=mind.id,
        memory_id=memory_id,
        revised=a_memory("The lamp is red."),
        reason="it was painted",
        actor="heartbeat:1",
        vectors=None,
        model=None,
    )


def test_a_revision_of_a_pinned_memory_is_pinned(mind: Agent) -> None:
    (memory_id,) = store_memories(mind, a_memory("The lamp is green.", decay_rate=0.02))
    act(mind, pin, memory_id)
    with tenant_transaction(mind.tenant_id):
        new_id = revise_lamp(mind, memory_id)
        assert list(Pin.objects.values_list("memory_id", flat=True)) == [new_id]
    assert (memory_row(mind, new_id).decay_rate, memory_row(mind, new_id).retention) == (
        0,
        Retention.PERMANENT,
    )
    act(mind, unpin, new_id)
    assert memory_row(mind, new_id).decay_rate == 0.02


def test_a_revised_memory_is_no_longer_permanent_by_its_pin(mind: Agent) -> None:
    (memory_id,) = store_memories(mind, a_memory("The lamp is green.", decay_rate=0.02))
    before = memory_row(mind, memory_id).retention
    act(mind, pin, memory_id)
    with tenant_transaction(mind.tenant_id):
        revise_lamp(mind, memory_id)
    act(mind, restore, memory_id, reason="it is green again")
    restored = memory_row(mind, memory_id)
    assert (restored.decay_rate, restored.retention) == (0.02, before)


def test_pins_are_limited_and_unknown_memories_refused(mind: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_PINS == 500
    monkeypatch.setattr(pins, "MAX_PINS", 2)
    ids = store_memories(mind, *(a_memory(f"Stone {number}.") for number in range(3)))
    act(mind, pin, *ids[:2])
    with tenant_transaction(mind.tenant_id):
        with pytest.raises(LimitReached, match="at most 2 pinned memories, this would make 3"):
            pin(memory_ids=[ids[2]], actor=ADA)
        with pytest.raises(NotFound):
            pin(memory_ids=[uuid7()], actor=ADA)
        with pytest.raises(Invalid, match="a reason must have at most"):
            pin(memory_ids=ids, actor=ADA, reason="x" * 501)
        assert store(agent_id=mind.id, memories=[a_memory("Stone 0.")], vectors=None).reinforced == {ids[0]}
    assert memory_row(mind, ids[0]).retention == Retention.PERMANENT


def test_a_pinned_memory_stored_again_as_permanent_stays_so(mind: Agent) -> None:
    lasting = a_memory("The lamp is green.", retention=Retention.TASK)
    (memory_id,) = store_memories(mind, lasting)
    act(mind, pin, memory_id)
    assert store_memories(mind, replace(lasting, retention=Retention.PERMANENT)) == [memory_id]
    act(mind, unpin, memory_id)
    unpinned = memory_row(mind, memory_id)
    assert (unpinned.retention, unpinned.expires_at) == (Retention.PERMANENT, None)
