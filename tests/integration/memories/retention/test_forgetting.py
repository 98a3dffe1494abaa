"""Forgetting: the rules in SQL equal the rules in Python, and no agent waits for another."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.goals.models import Goal
from apps.goals.services.goals import link_memories
from apps.memories.models import Edge, Memory, MemoryAccess, Mind
from apps.memories.services.retention import forgetting
from apps.memories.services.retention.forgetting import (
    ForgettingPlan,
    clean_up_memories,
    enforce_quotas,
    expire_memories,
    fade_memories,
    plan_forgetting,
    try_lock_mind,
)
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from arbor.goals.plans import GoalLink, LinkKind
from arbor.memory.forgetting import ForgettingPolicy, ForgettingReason
from arbor.memory.values import MemoryStatus, MemoryType, Retention
from tests.integration.memories.conftest import a_memory, at_once, memories_of, term_counts, true_counts


def store_memories(agent: Agent, *memories: dict[str, Any]) -> list[UUID]:
    """Store memories, and the row of their mind, and return their ids.

    A memory is `days` old and was used `uses` times, the last time `idle` days ago; other keys are fields of the memory.
    """
    values = [
        {
            name: value
            for name, value in memory.items()
            if name in ("content", "importance", "type", "expires_at")
        }
        for memory in memories
    ]
    with tenant_transaction(agent.tenant_id):
        ids = list(
            store(
                agent_id=agent.id,
                memories=[
                    a_memory(**{"content": f"Memory {place}.", **fields})
                    for place, fields in enumerate(values)
                ],
                vectors=None,
            ).ids
        )
        Mind.objects.get_or_create(
            agent_id=agent.id,
            defaults={
                "tenant_id": agent.tenant_id,
                "embedding_model": "wordllama",
                "embedding_dimension": 256,
            },
        )
        now = datetime.now(UTC)
        for memory_id, memory in zip(ids, memories, strict=True):
            changes: dict[str, Any] = {"created_at": now - timedelta(days=memory.get("days", 2))}
            if "retention" in memory:
                changes["retention"] = memory["retention"]
            Memory.objects.filter(id=memory_id).update(**changes)
            if memory.get("uses"):
                used_at = now - timedelta(days=memory.get("idle", 0))
                MemoryAccess.objects.create(
                    tenant_id=agent.tenant_id,
                    memory_id=memory_id,
                    count=memory["uses"],
                    last_at=used_at,
                    reinforced=0,
                )
    return ids


def plan_of(agent: Agent, **limits: Any) -> ForgettingPlan:
    with tenant_transaction(agent.tenant_id):
        return plan_forgetting(agent_id=agent.id, limits=ForgettingPolicy(**limits) if limits else None)


def archived_ids(agent: Agent) -> set[UUID]:
    return {memory.id for memory in memories_of(agent) if memory.status == MemoryStatus.ARCHIVED}


def audit_messages(agent: Agent) -> list[str]:
    with tenant_transaction(agent.tenant_id):
        acts = [AuditAction.MEMORIES_ARCHIVED, AuditAction.MEMORIES_EXPIRED]
        rows = AuditEvent.objects.filter(agent_id=agent.id, action__in=acts).order_by("id")
        return list(rows.values_list("message", flat=True))


def make_due_again(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        Mind.objects.filter(agent_id=agent.id).update(forgot_at=None, cleaned_at=None, counted_at=None)


def random_memories(seed: int, count: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    kinds = [MemoryType.EPISODIC] * 3 + [MemoryType.SEMANTIC]
    return [
        {
            "importance": round(chance.random() ** 2, 3),
            "type": chance.choice(kinds),
            "days": chance.choice([0.2, 2, 30, 200, 900]) * chance.uniform(0.5, 1.5),
            "uses": chance.choice([0, 0, 0, 1, 4, 300]),
            "idle": chance.uniform(0, 300),
            "retention": chance.choice([Retention.LASTING] * 4 + [Retention.PERMANENT]),
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_jobs_archive_exactly_what_the_rules_say(
    seed: int, mind: Agent, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "STEP", 7)
    settings.ARBOR_MEMORY_QUOTA = 30
    settings.ARBOR_MAINTENANCE_SHARE = 1.0
    past = datetime.now(UTC) - timedelta(hours=1)
    store_memories(mind, *random_memories(seed, 150), {"content": "Over.", "expires_at": past})
    plan = plan_of(mind)
    reasons = Counter(memory.reason for memory in plan.memories)
    assert set(reasons) == set(ForgettingReason), "each rule finds something"
    archived_by_job = {
        ForgettingReason.EXPIRED: expire_memories().done,
        ForgettingReason.FADED: fade_memories().done,
        ForgettingReason.TRIVIAL: clean_up_memories().done,
        ForgettingReason.CROWDED: enforce_quotas().done,
    }
    assert archived_by_job == reasons
    assert archived_ids(mind) == {memory.memory_id for memory in plan.memories}
    assert term_counts(mind) == true_counts(mind)
    assert plan_of(mind).memories == ()
    make_due_again(mind)
    assert fade_memories().done + clean_up_memories().done + enforce_quotas().done == 0


def test_each_step_is_audited_with_its_reason(mind: Agent, settings: Any) -> None:
    settings.ARBOR_MEMORY_QUOTA = 1
    store_memories(
        mind,
        {"importance": 0.5, "days": 400},
        {"importance": 0.15},
        {"importance": 0.5},
        {"importance": 0.6},
    )
    assert [fade_memories().done, clean_up_memories().done, enforce_quotas().done] == [1, 1, 1]
    assert audit_messages(mind) == [
        "archived 1 memory: faded below 0.1, decayed since they were last used",
        "archived 1 memory: trivial, of an importance below 0.2 that use has not raised",
        "archived 1 memory: crowded, the least important above the quota of 1 episodic memories",
    ]


def test_the_least_important_make_room_and_of_equals_the_oldest(mind: Agent, settings: Any) -> None:
    settings.ARBOR_MEMORY_QUOTA = 3
    ids = store_memories(
        mind,
        {"importance": 0.5, "days": 3},
        {"importance": 0.5, "days": 5},
        {"importance": 0.5, "days": 4},
        {"importance": 0.3, "uses": 1000},
        {"importance": 0.4},
        {"importance": 0.3, "type": MemoryType.SEMANTIC},
    )
    assert enforce_quotas().done == 2
    assert archived_ids(mind) == {ids[4], ids[1]}


def test_boosted_memories_do_not_hide_forgettable_ones(
    mind: Agent, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "STEP", 2)
    settings.ARBOR_MEMORY_QUOTA = 4
    used = [{"importance": 0.3, "uses": 5000} for _ in range(4)]
    ids = store_memories(mind, *used, {"importance": 0.5}, {"importance": 0.6})
    assert enforce_quotas().done == 2
    assert archived_ids(mind) == {ids[4], ids[5]}


def test_permanent_and_needed_memories_stay_and_count(mind: Agent, settings: Any) -> None:
    settings.ARBOR_MEMORY_QUOTA = 1
    ids = store_memories(
        mind,
        {"importance": 0.0, "days": 900, "retention": Retention.PERMANENT},
        {"importance": 0.0, "days": 900},
        {"importance": 0.9},
    )
    with tenant_transaction(mind.tenant_id):
        goal = Goal.objects.create(
            tenant_id=mind.tenant_id,
            agent_id=mind.id,
            title="Find out",
            state="active",
            touched_at=datetime.now(UTC),
        )
        Edge.objects.create(
            tenant_id=mind.tenant_id, agent_id=mind.id, source_kind="memory", source_id=ids[1], target_kind="goal",
            target_id=goal.id, relation="supports",
        )  # fmt: skip
    assert [fade_memories().done, clean_up_memories().done, enforce_quotas().done] == [0, 0, 1]
    assert archived_ids(mind) == {ids[2]}
    with tenant_transaction(mind.tenant_id):
        Goal.objects.filter(id=goal.id).update(state="abandoned")
    make_due_again(mind)
    assert fade_memories().done == 1
    assert archived_ids(mind) == {ids[1], ids[2]}


@pytest.mark.parametrize("kind", LinkKind)
def test_memories_linked_to_open_goals_stay(mind: Agent, settings: Any, kind: LinkKind) -> None:
    settings.ARBOR_MEMORY_QUOTA = 1
    faded, crowded = store_memories(mind, {"importance": 0.0, "days": 900}, {"importance": 0.9})
    with tenant_transaction(mind.tenant_id):
        goal = Goal.objects.create(
            tenant_id=mind.tenant_id,
            agent_id=mind.id,
            title="Map the reef",
            state="queued",
            touched_at=datetime.now(UTC),
        )
        link_memories([GoalLink(goal_id=goal.id, memory_id=faded, kind=kind)])
        planned = {memory.memory_id for memory in plan_forgetting(agent_id=mind.id).memories}
    assert planned == {crowded}
    assert [fade_memories().done, clean_up_memories().done, enforce_quotas().done] == [0, 0, 1]
    assert archived_ids(mind) == {crowded}
    with tenant_transaction(mind.tenant_id):
        Goal.objects.filter(id=goal.id).update(state="completed")
    make_due_again(mind)
    assert fade_memories().done == 1
    assert archived_ids(mind) == {faded, crowded}


def test_an_agent_is_checked_daily_and_soon_after_growth(mind: Agent, settings: Any) -> None:
    settings.ARBOR_MEMORY_QUOTA = 30
    store_memories(mind, {"importance": 0.5})
    assert enforce_quotas().steps == 1
    assert enforce_quotas().steps == 0
    with tenant_transaction(mind.tenant_id):
        memories = [a_memory(f"Imported {number}.") for number in range(40)]
        store(agent_id=mind.id, memories=memories, vectors=None)
    grown = enforce_quotas()
    assert (grown.done, enforce_quotas().steps) == (11, 0)


def test_few_new_memories_bring_no_check(mind: Agent, settings: Any) -> None:
    settings.ARBOR_MEMORY_QUOTA = 1
    store_memories(mind, {"importance": 0.5})
    enforce_quotas()
    store_memories(mind, *({"content": f"A heartbeat's memory {number}."} for number in range(3)))
    assert enforce_quotas().steps == 0


def test_a_check_dated_in_the_future_does_not_block_the_next(mind: Agent) -> None:
    store_memories(mind, {"importance": 0.0})
    with tenant_transaction(mind.tenant_id):
        Mind.objects.update(cleaned_at=datetime.now(UTC) + timedelta(days=400))
    assert clean_up_memories().done == 1


def test_future_memories_stay_and_ancient_ones_fade(mind: Agent) -> None:
    store_memories(mind, {"importance": 0.0, "days": -4000}, {"importance": 0.5, "days": 4_000_000 / 7})
    assert clean_up_memories().done == 0
    assert fade_memories().done == 1


def test_a_locked_mind_is_left_for_later(mind: Agent, other_mind: Agent) -> None:
    store_memories(mind, {"importance": 0.0})
    store_memories(other_mind, {"importance": 0.0})
    with tenant_transaction(mind.tenant_id):
        assert try_lock_mind(mind.id)
        (cleaned,) = at_once(lambda _: clean_up_memories().done, writers=1)
    assert cleaned == 1
    assert len(archived_ids(other_mind)) == 1
    assert clean_up_memories().done == 1


def test_a_plan_reads_and_changes_nothing(mind: Agent, statements: list[str]) -> None:
    store_memories(mind, {"importance": 0.0, "content": "Hm. " * 200}, {"importance": 0.9})
    statements.clear()
    plan = plan_of(mind)
    assert len(statements) == 1
    assert (plan.active, plan.count(ForgettingReason.FADED), plan.count(ForgettingReason.CROWDED)) == (
        2,
        1,
        0,
    )
    (planned,) = plan.memories
    assert planned.reason is ForgettingReason.FADED
    assert len(planned.content) == 160
    assert planned.decayed_importance == planned.importance == 0
    assert archived_ids(mind) == set()
    assert (
        plan_of(mind, quota=1, cleanup_below=0, archive_below=0).memories[0].reason
        is ForgettingReason.CROWDED
    )


def test_a_plan_for_an_empty_mind_is_empty(mind: Agent) -> None:
    assert plan_of(mind).memories == ()


def test_workers_that_forget_at_once_archive_once(mind: Agent, other_mind: Agent) -> None:
    agents: Sequence[Agent] = (mind, other_mind)
    for agent in agents:
        store_memories(agent, *({"importance": 0.0} for _ in range(20)))
    assert sum(at_once(lambda _: clean_up_memories().done, writers=4)) == 40
    for agent in agents:
        assert term_counts(agent) == true_counts(agent)


@pytest.mark.usefixtures("unprepared")
def test_the_rules_read_the_index_alone(mind: Agent, vacuum: Any) -> None:
    store_memories(mind, *({"importance": 0.9} for _ in range(300)))
    vacuum()
    sent: list[tuple[str, Any]] = []

    def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append((sql, params))
        return execute(sql, params, many, context)

    with connections["default"].execute_wrapper(record):
        clean_up_memories()
    sql, params = next(call for call in sent if "memories_memoryaccess" in call[0])
    with tenant_transaction(mind.tenant_id), connections["default"].cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + sql, params)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Only Scan using memories_memory_forgettable" in plan, plan
