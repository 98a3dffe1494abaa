"""Cached minds, which are never stale: after any change, anywhere, the next recall equals the scan."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connections, transaction

from apps.agents.models import Agent
from apps.memories.models import Activation, Memory, MemoryAccess, Upkeep
from apps.memories.services.recall.mind_cache import MindCache
from apps.memories.services.recall.recaller import Recaller
from apps.memories.services.retention.archive import archive, purge, restore
from apps.memories.services.retention.forgetting import expire_memories
from apps.memories.services.store.remember import store
from apps.memories.services.store.revision import change_importance, halve_trust, revise
from apps.tenants.scope import APP, tenant_transaction
from arbor.memory.mind.image import MindImage
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.values import MemoryStatus
from tests.integration.memories.conftest import a_memory, at_once, memories_of, turns
from tests.integration.memories.embedding.moves import LONG, SHORT, move
from tests.integration.memories.recall.cache_and_scan import Checker, caching, recall_both_ways
from tests.support.memories import TALK, store_memories

ACTOR = "cli:test"


def ids_of(agent: Agent, *, status: str = MemoryStatus.ACTIVE) -> list[Any]:
    return [memory.id for memory in memories_of(agent) if memory.status == status]


@contextmanager
def rolled_back(block: AbstractContextManager[Any]) -> Iterator[None]:
    """Run a block in a transaction, or in a savepoint, that is rolled back."""
    with block:
        yield
        transaction.set_rollback(True, using=APP)


# --- Each kind of change -----------------------------------------------------------------------------


def store_more(agent: Agent) -> None:
    store_memories(
        agent, *turns("The boat is called Ines.", "A boat needs a name.", session="names", role="Grace")
    )


def store_unembedded(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        store(agent_id=agent.id, memories=[a_memory("The boat leaks.")], vectors=None)


def archive_some(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        archive(memory_ids=ids_of(agent)[:2], reason="a test", actor=ACTOR)


def archive_and_restore(agent: Agent) -> None:
    archive_some(agent)
    with tenant_transaction(agent.tenant_id):
        restore(memory_ids=ids_of(agent, status=MemoryStatus.ARCHIVED)[:1], reason="a test", actor=ACTOR)


def purge_one(agent: Agent) -> None:
    archive_some(agent)
    with tenant_transaction(agent.tenant_id):
        purge(memory_ids=ids_of(agent, status=MemoryStatus.ARCHIVED), reason="a test", actor=ACTOR)


def revise_one(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        revise(
            agent_id=agent.id,
            memory_id=ids_of(agent)[3],
            revised=a_memory("The boat is blue by now."),
            vectors=None,
            model=None,
            reason="a test",
            actor=ACTOR,
        )


def change_importance_and_trust(agent: Agent) -> None:
    first, second, *_ = ids_of(agent)
    with tenant_transaction(agent.tenant_id):
        change_importance(agent_id=agent.id, memory_id=first, importance=0.95, reason="a test", actor=ACTOR)
        halve_trust(agent_id=agent.id, memory_id=second, reason="a test", actor=ACTOR)


def expire_one(agent: Agent) -> None:
    store_memories(
        agent, a_memory("The paint shop closes.", expires_at=datetime.now(UTC) - timedelta(minutes=1))
    )
    expire_memories()


def remember_again(agent: Agent) -> None:
    archive_some(agent)
    store_memories(agent, *turns(*TALK[:2]), a_memory("The boat is green."), a_memory("The boat is green."))


def reembed(agent: Agent) -> None:
    move(agent, SHORT)


def reembed_there_and_back(agent: Agent) -> None:
    move(agent, SHORT)
    move(agent, LONG)


def edit_by_orm(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        memory = Memory.objects.get(id=ids_of(agent)[0])
        memory.role, memory.importance, memory.emotional_valence = "Grace", 0.9, -0.7
        memory.save()
        Memory.objects.filter(id=ids_of(agent)[1]).update(session="elsewhere", position=7)


CHANGES = (
    store_more,
    store_unembedded,
    archive_some,
    archive_and_restore,
    purge_one,
    revise_one,
    change_importance_and_trust,
    expire_one,
    remember_again,
    reembed,
    reembed_there_and_back,
    edit_by_orm,
)


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_recalled_as_by_scan(
    checker: Checker, mind: Agent, change: Callable[[Agent], None]
) -> None:
    change(mind)
    changed = checker.recall()
    store_memories(mind, a_memory("Afterwards the boat was launched."))
    assert len(checker.recall()) == len(changed) + 1


def test_many_changes_in_any_order_leave_no_trace(checker: Checker, mind: Agent, cache: MindCache) -> None:
    chance = random.Random(4)
    small_changes = [
        store_unembedded,
        archive_some,
        archive_and_restore,
        change_importance_and_trust,
        remember_again,
        edit_by_orm,
    ]
    for number in range(20):
        store_memories(
            mind, *turns(*(f"Boat {number} has {place} masts." for place in range(4)), session=f"{number}")
        )
        chance.choice(small_changes)(mind)
        checker.recall(cache, limit=chance.choice([1, 5, 40]))
    checker.recall(limit=100)


def test_use_and_activation_count_at_once(checker: Checker, mind: Agent) -> None:
    first, second, third, *_ = ids_of(mind)
    now = datetime.now(UTC)
    before = {memory.id: memory.terms for memory in checker.recall(now=now)}
    with tenant_transaction(mind.tenant_id):
        MemoryAccess.objects.create(tenant_id=mind.tenant_id, memory_id=first, count=40, last_at=now)
        Activation.objects.create(
            tenant_id=mind.tenant_id, agent_id=mind.id, memory_id=second, level=0.9, at=now
        )
        Upkeep.objects.filter(memory_id=third).update(neighbors={str(first): 1.8})
    after = {memory.id: memory.terms for memory in checker.recall(now=now)}
    assert after[first].importance > before[first].importance
    assert after[first].recency > before[first].recency
    assert after[second].activation > 0
    assert after[first].association > 0


# --- Concurrent writers ------------------------------------------------------------------------------

RAW = (
    "UPDATE memories_memory SET content = 'Whose boat?', trust = 0.3, revision = 0 WHERE id = %(first)s",
    "UPDATE memories_memory SET status = 'archived', revision = -1 WHERE id = %(first)s",
    "UPDATE memories_memory SET expires_at = now() - interval '1 second' WHERE id = %(first)s",
    "UPDATE memories_memory SET embedding = NULL WHERE id = %(first)s",
    "UPDATE memories_memory SET lexical = NULL WHERE agent_id = %(agent)s",
    "UPDATE memories_memory SET id = gen_random_uuid() WHERE id = %(first)s",
    "UPDATE memories_memory SET agent_id = %(other)s WHERE id = %(first)s",
    "DELETE FROM memories_memory WHERE id = %(first)s",
    "DELETE FROM memories_memory WHERE agent_id = %(agent)s",
    "UPDATE memories_mind SET embedding_model = 'tei/another' WHERE agent_id = %(agent)s",
    "DELETE FROM memories_mind WHERE agent_id = %(agent)s",
)
_COPY = """
INSERT INTO memories_memory (tenant_id, agent_id, id, type, status, content, content_hash, importance, decay_rate, trust,
    emotional_valence, session, position, role, source, detail, retention, sequence, occurred_at, created_at, embedding,
    embedding_model, lexical, revision)
SELECT tenant_id, agent_id, gen_random_uuid(), type, status, content, content_hash, 1, decay_rate, trust, emotional_valence,
    'copied', position, role, source, detail, retention, sequence, occurred_at, created_at, embedding, embedding_model,
    lexical, 0
FROM memories_memory WHERE id = %(first)s
"""


@pytest.mark.parametrize("statement", [*RAW, _COPY])
def test_raw_statements_leave_no_cached_mind_stale(
    checker: Checker, mind: Agent, other_mind: Agent, statement: str
) -> None:
    Checker(other_mind, MindCache(), MindCache()).recall()
    first = ids_of(mind)[0]
    values = {"first": first, "agent": mind.id, "other": other_mind.id}
    with tenant_transaction(mind.tenant_id), connections[APP].cursor() as cursor:
        for table in ("memories_upkeep", "memories_memoryaccess"):
            cursor.execute(f"DELETE FROM {table} WHERE memory_id = %s", [first])
        cursor.execute(statement, values)
        assert cursor.rowcount > 0
    checker.recall(vector=None)
    checker.recall(model=LONG)


def test_rolled_back_changes_are_recalled_before_the_rollback(
    checker: Checker, mind: Agent, cache: MindCache, other_cache: MindCache
) -> None:
    before = checker.recall()
    with rolled_back(tenant_transaction(mind.tenant_id)):
        store(agent_id=mind.id, memories=[a_memory("The boat is a secret.")], vectors=None)
        Memory.objects.filter(id=before[0].id).update(status=MemoryStatus.ARCHIVED)
        request = RecallRequest(agent_id=mind.id, text="boat", limit=10, now=datetime.now(UTC))
        inside, _ = recall_both_ways(request, cache=cache)
        assert "The boat is a secret." in {memory.content for memory in inside}
        assert before[0].id not in {memory.id for memory in inside}
    assert [memory.id for memory in checker.recall()] == [memory.id for memory in before]


def test_a_rolled_back_deletion_has_no_effect(checker: Checker, mind: Agent, cache: MindCache) -> None:
    before = checker.recall()
    with rolled_back(tenant_transaction(mind.tenant_id)):
        Memory.objects.filter(id=before[0].id).delete()
        request = RecallRequest(agent_id=mind.id, text="boat", limit=10, now=datetime.now(UTC))
        inside, _ = recall_both_ways(request, cache=cache)
        assert before[0].id not in {memory.id for memory in inside}
    assert [memory.id for memory in checker.recall()] == [memory.id for memory in before]


def test_a_savepoint_rolled_back_is_not_recalled(checker: Checker, mind: Agent, cache: MindCache) -> None:
    with tenant_transaction(mind.tenant_id):
        request = RecallRequest(agent_id=mind.id, text="boat", limit=10, now=datetime.now(UTC))
        with rolled_back(transaction.atomic(using=APP)):
            store(agent_id=mind.id, memories=[a_memory("The boat is a secret.")], vectors=None)
            assert len(recall_both_ways(request, cache=cache)[0]) == len(TALK) + 1
        assert len(recall_both_ways(request, cache=cache)[0]) == len(TALK)
    checker.recall()


def test_uncommitted_changes_of_a_loaded_mind_are_not_kept(mind: Agent, cache: MindCache) -> None:
    store_memories(mind, *turns(*TALK))
    request = RecallRequest(agent_id=mind.id, text="boat", limit=10, now=datetime.now(UTC))
    with rolled_back(tenant_transaction(mind.tenant_id)):
        Memory.objects.filter(agent_id=mind.id, position=0).update(status=MemoryStatus.ARCHIVED)
        assert len(recall_both_ways(request, cache=cache)[0]) == len(TALK) - 1
    with tenant_transaction(mind.tenant_id):
        assert len(recall_both_ways(request, cache=cache)[0]) == len(TALK)


@pytest.fixture
def writer(checker: Checker, mind: Agent) -> Iterator[psycopg.Connection[Any]]:
    """Return another session of the tenant, whose statements take effect when it commits."""
    settings = connections[APP].settings_dict
    with psycopg.connect(
        dbname=settings["NAME"],
        user=settings["USER"],
        password=settings["PASSWORD"],
        host=settings["HOST"],
        port=settings["PORT"],
    ) as session:
        session.execute("SELECT set_config('arbor.tenant_id', %s, false)", [str(mind.tenant_id)])
        session.commit()
        yield session


def test_an_archival_that_commits_late_takes_effect(
    checker: Checker, mind: Agent, writer: psycopg.Connection[Any]
) -> None:
    early, late = ids_of(mind)[:2]
    archived = "UPDATE memories_memory SET status = 'archived' WHERE id = %s"
    writer.execute(archived, [early])
    # Transactions that began later are committed earlier.
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=late).update(importance=0.9)
    assert early in {memory.id for memory in checker.recall()}
    store_memories(mind, a_memory("Meanwhile the boat dries."))
    checker.recall()
    writer.commit()
    assert early not in {memory.id for memory in checker.recall()}


def test_a_deletion_that_commits_late_takes_effect(
    checker: Checker, mind: Agent, writer: psycopg.Connection[Any]
) -> None:
    early = ids_of(mind)[0]
    writer.execute("DELETE FROM memories_memory WHERE id = %s", [early])
    store_memories(mind, a_memory("Meanwhile the boat dries."))
    assert early in {memory.id for memory in checker.recall()}
    writer.commit()
    assert early not in {memory.id for memory in checker.recall()}


def test_concurrent_writers_and_readers_agree(checker: Checker, mind: Agent, cache: MindCache) -> None:
    def work(worker: int) -> None:
        for number in range(8):
            if worker % 2:
                store_memories(mind, *turns(f"Boat {worker}.{number} sails.", session=f"{worker}.{number}"))
                continue
            request = RecallRequest(agent_id=mind.id, text="boat", limit=5, now=datetime.now(UTC))
            with tenant_transaction(mind.tenant_id):
                assert len(Recaller().recall([request])[0]) == 5

    # Outside of the threads, because it changes settings of the process.
    with caching(cache):
        at_once(work, writers=4)
    checker.recall(limit=50)


def test_rows_restored_from_another_server_are_read_once(
    checker: Checker, superuser: psycopg.Connection[Any], cache: MindCache
) -> None:
    # Revisions are ids of transactions; those of the other server are far beyond those of this one.
    superuser.execute("UPDATE memories_memory SET revision = 1e15")
    superuser.execute("UPDATE memories_mind SET revision = 1e15")
    checker.recall()
    images = [entry.image for entry in cache._entries.values()]
    checker.recall()
    assert [entry.image for entry in cache._entries.values()] == images


def test_a_mind_that_cannot_be_an_image_is_scanned(
    checker: Checker, mind: Agent, cache: MindCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> MindImage:
        raise ValueError("no image")

    monkeypatch.setattr(MindImage, "with_changes", refuse)
    monkeypatch.setattr(MindImage, "of", refuse)
    store_more(mind)
    checker.recall()
    assert len(cache) == 0
