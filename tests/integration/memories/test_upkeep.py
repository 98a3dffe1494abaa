"""Upkeep: vectors follow, what has had its time is archived, and nothing is decided."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.models import Memory
from apps.memories.services import upkeep
from apps.memories.services.recall import recall
from apps.memories.services.remember import store
from apps.memories.services.upkeep import embed_backlog, expire_memories
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.memory.values import MemoryStatus, NewMemory
from tests.integration.memories.conftest import (
    RemoteEmbedder,
    a_memory,
    at_once,
    memories_of,
    term_counts,
    true_counts,
    turns,
)


def keep(agent: Agent, *memories: NewMemory) -> None:
    with tenant_transaction(agent.tenant_id):
        store(agent_id=agent.id, memories=memories, vectors=None)


def unembedded(agent: Agent) -> list[str]:
    return [memory.content for memory in memories_of(agent) if memory.embedding is None]


# --- Vectors that follow -----------------------------------------------------------------------------


def test_a_memory_is_found_by_its_words_at_once_and_by_its_meaning_when_it_is_embedded(mind: Agent) -> None:
    keep(
        mind,
        *turns("The physician examined my knee.", "The soup was too salty.", "Trains run late on Sundays."),
    )

    def found(text: str) -> list[tuple[str, float, float]]:
        memories = recall(tenant_id=mind.tenant_id, agent_id=mind.id, text=text, limit=1)
        return [(each.content, each.terms.words, each.terms.meaning) for each in memories]

    ((content, words, meaning),) = found("salty soup")
    assert content == "The soup was too salty."
    assert words > 0
    assert meaning == 0
    assert found("a doctor's visit") == []
    assert embed_backlog() == 3
    ((content, words, meaning),) = found("a doctor's visit")
    assert content == "The physician examined my knee."
    assert words == 0
    assert meaning > 0


def test_the_backlog_is_embedded_chunk_by_chunk_for_all_tenants(
    mind: Agent, foreign_mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "CHUNK", 12)
    monkeypatch.setattr(upkeep, "CHUNK_OF_TENANT", 10)
    keep(mind, *turns(*(f"Fish {number}." for number in range(35))))
    keep(foreign_mind, *turns("Bird 1.", "Bird 2."))
    assert embed_backlog() == 37
    assert unembedded(mind) == unembedded(foreign_mind) == []
    assert {memory.embedding_model for memory in memories_of(mind)} == {"wordllama/l2_supercat_256"}
    assert embed_backlog() == 0


def test_one_tenants_long_backlog_does_not_keep_another_waiting(
    mind: Agent, foreign_mind: Agent, monkeypatch: pytest.MonkeyPatch, remote: RemoteEmbedder
) -> None:
    monkeypatch.setattr(upkeep, "CHUNK_OF_TENANT", 5)
    keep(mind, *turns(*(f"Fish {number}." for number in range(20))))
    keep(foreign_mind, a_memory("Bird."))
    remote.lasts = 6
    assert embed_backlog() == 6
    assert unembedded(foreign_mind) == []


def test_a_text_that_the_embedder_cannot_read_is_marked_and_holds_up_no_other(
    mind: Agent, remote: RemoteEmbedder
) -> None:
    said = [f"Turn {number}." for number in range(9)]
    remote.refused = {said[0], said[6]}
    keep(mind, *turns(*said))
    assert embed_backlog() == 7
    assert unembedded(mind) == [said[0], said[6]]
    marks = {memory.embedding_model for memory in memories_of(mind) if memory.embedding is None}
    assert marks == {"refused: remote/fake"}
    asked = len(remote.asked)
    assert embed_backlog() == 0
    assert len(remote.asked) == asked
    assert recall(tenant_id=mind.tenant_id, agent_id=mind.id, text="turn 6")[0].content == said[6]


def test_when_the_embedder_is_away_the_backlog_waits(mind: Agent, remote: RemoteEmbedder) -> None:
    keep(mind, *turns("One.", "Two."))
    remote.away = True
    assert embed_backlog() == 0
    assert {memory.embedding_model for memory in memories_of(mind)} == {""}
    remote.away = False
    assert embed_backlog() == 2


def test_workers_that_embed_the_same_backlog_at_once_do_it_once(mind: Agent) -> None:
    keep(mind, *turns(*(f"Star {number}." for number in range(60))))
    assert sum(at_once(lambda _: embed_backlog(), writers=4)) == 60
    assert unembedded(mind) == []


def test_an_archived_memory_waits_for_no_vector(mind: Agent) -> None:
    keep(mind, a_memory("Over.", expires_at=datetime.now(UTC) - timedelta(hours=1)))
    assert expire_memories().done == 1
    assert embed_backlog() == 0


# --- What has had its time ---------------------------------------------------------------------------


def test_a_memory_whose_time_is_over_is_archived_audited_and_counted_out(
    mind: Agent, other_mind: Agent
) -> None:
    past, future = (datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (-1, 60))
    keep(
        mind,
        a_memory("The code is 4711.", expires_at=past),
        a_memory("The code was painted over.", expires_at=past),
        a_memory("The code is 1147.", expires_at=future),
        a_memory("The door is green."),
    )
    keep(other_mind, a_memory("The code is 99.", expires_at=past))
    assert expire_memories().done == 3
    by_status = {memory.content: memory.status for memory in memories_of(mind)}
    assert by_status == {
        "The code is 4711.": MemoryStatus.ARCHIVED,
        "The code was painted over.": MemoryStatus.ARCHIVED,
        "The code is 1147.": MemoryStatus.ACTIVE,
        "The door is green.": MemoryStatus.ACTIVE,
    }
    assert all(each.archived_at for each in memories_of(mind) if each.status == MemoryStatus.ARCHIVED)
    assert term_counts(mind) == true_counts(mind)
    assert term_counts(other_mind) == {}
    with tenant_transaction(mind.tenant_id):
        events = AuditEvent.objects.filter(action=AuditAction.MEMORIES_EXPIRED).order_by("agent_id")
        assert {(event.agent_id, event.message, event.actor) for event in events} == {
            (mind.id, "archived 2 memories: their time was over", "system:maintenance"),
            (other_mind.id, "archived 1 memory: their time was over", "system:maintenance"),
        }
    assert expire_memories().done == 0


def test_tenants_are_expired_each_in_their_own_transaction(mind: Agent, foreign_mind: Agent) -> None:
    past = datetime.now(UTC) - timedelta(minutes=1)
    keep(mind, a_memory("Ours.", expires_at=past))
    keep(foreign_mind, a_memory("Theirs.", expires_at=past))
    assert expire_memories().done == 2
    for agent in (mind, foreign_mind):
        with tenant_transaction(agent.tenant_id):
            assert AuditEvent.objects.filter(action=AuditAction.MEMORIES_EXPIRED).count() == 1


def test_workers_that_expire_the_same_memories_at_once_count_them_out_once(
    mind: Agent, other_mind: Agent
) -> None:
    past = datetime.now(UTC) - timedelta(minutes=1)
    for agent in (mind, other_mind):
        keep(agent, *(a_memory(f"Ticket {number}.", expires_at=past) for number in range(20)))
        keep(agent, a_memory("Ticket office."))
    assert sum(each.done for each in at_once(lambda _: expire_memories(), writers=4)) == 40
    for agent in (mind, other_mind):
        assert term_counts(agent) == true_counts(agent)


def test_expiry_and_storing_at_once_keep_the_counts_right(mind: Agent, tenant: Tenant) -> None:
    past = datetime.now(UTC) - timedelta(minutes=1)
    said = [f"Ticket {number} is valid." for number in range(12)]
    keep(mind, *(a_memory(text, expires_at=past) for text in said))

    def work(worker: int) -> None:
        if worker % 2:
            expire_memories()
            return
        for text in said:
            keep(mind, a_memory(text))

    at_once(work, writers=6)
    with tenant_transaction(tenant.id):
        assert Memory.objects.filter(status=MemoryStatus.ACTIVE, expires_at=None).count() == len(said)
    assert term_counts(mind) == true_counts(mind)
