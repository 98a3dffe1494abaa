"""The archive: memories leave recall and can be restored; a purge needs a person and an audit record."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.models import (
    Cluster,
    ClusterMember,
    CodeSnippet,
    Edge,
    EmbeddingCacheEntry,
    Memory,
    MemoryAccess,
    Upkeep,
)
from apps.memories.services.recall.activation import record_recall
from apps.memories.services.recall.recaller import recall
from apps.memories.services.retention.archive import MAX_AT_ONCE, archive, purge, restore
from apps.memories.services.store.remember import remember, store
from apps.memories.services.store.snippets import store_agent_code
from apps.tenants.scope import tenant_transaction
from arbor.errors import ArborError, Invalid, LimitReached, NotFound, PermissionDenied
from arbor.memory.content import content_hash
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.values import MemoryStatus, Retention
from tests.integration.memories.conftest import a_memory, memories_of, term_counts, true_counts

ADA = "user:ada"
ACTS: list[Callable[..., int]] = [archive, restore, purge]


def store_memories(agent: Agent, *texts: str) -> list[UUID]:
    memories = [a_memory(text) for text in texts]
    return list(remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories).ids)


def apply(
    agent: Agent, act: Callable[..., int], ids: list[UUID], *, actor: str = ADA, **options: object
) -> int:
    with tenant_transaction(agent.tenant_id):
        return act(memory_ids=ids, reason="a test", actor=actor, **options)


def recall_contents(agent: Agent, text: str) -> list[str]:
    return [
        memory.content
        for memory in recall(tenant_id=agent.tenant_id, request=RecallRequest(agent_id=agent.id, text=text))
    ]


def audit_events(agent: Agent) -> list[AuditEvent]:
    with tenant_transaction(agent.tenant_id):
        acts = [AuditAction.MEMORIES_ARCHIVED, AuditAction.MEMORIES_RESTORED, AuditAction.MEMORIES_PURGED]
        return list(AuditEvent.objects.filter(action__in=acts).order_by("id"))


def test_an_archived_memory_is_not_recalled_until_restored(mind: Agent) -> None:
    soup, _ = store_memories(mind, "The soup was salty.", "The soup was cold.")
    assert apply(mind, archive, [soup]) == 1
    assert recall_contents(mind, "soup") == ["The soup was cold."]
    assert term_counts(mind) == true_counts(mind)
    assert apply(mind, archive, [soup]) == 0
    assert apply(mind, restore, [soup]) == 1
    assert set(recall_contents(mind, "soup")) == {"The soup was salty.", "The soup was cold."}
    assert term_counts(mind) == true_counts(mind)
    assert apply(mind, restore, [soup]) == 0
    archived, restored = audit_events(mind)
    assert (archived.actor, archived.message) == (ADA, "archived 1 memory: a test")
    assert archived.detail["memory_ids"] == restored.detail["memory_ids"] == [str(soup)]
    assert restored.message == "restored 1 memory: a test"


def test_one_act_has_one_record_for_each_agent(mind: Agent, other_mind: Agent) -> None:
    ids = [*store_memories(mind, "One.", "Two."), *store_memories(other_mind, "Three.")]
    assert apply(mind, archive, ids) == 3
    messages = {event.agent_id: event.message for event in audit_events(mind)}
    assert messages == {
        mind.id: "archived 2 memories: a test",
        other_mind.id: "archived 1 memory: a test",
    }
    for agent in (mind, other_mind):
        assert term_counts(agent) == true_counts(agent) == {}


def test_archiving_clears_flags_and_restoring_sets_them(mind: Agent) -> None:
    (soup,) = store_memories(mind, "The soup was salty.")

    def flags() -> tuple[bool, bool]:
        with tenant_transaction(mind.tenant_id):
            upkeep, _ = Upkeep.objects.get_or_create(
                memory_id=soup, defaults={"tenant_id": mind.tenant_id, "agent_id": mind.id}
            )
            return upkeep.stale, upkeep.unclustered

    assert flags() == (True, True)
    apply(mind, archive, [soup])
    assert flags() == (False, False)
    apply(mind, restore, [soup])
    assert flags() == (True, True)


def test_a_restored_memory_decays_from_its_restoration(mind: Agent) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    with tenant_transaction(mind.tenant_id):
        (code,) = store(agent_id=mind.id, memories=[a_memory("The code.", expires_at=past)], vectors=None).ids
    apply(mind, archive, [code])
    apply(mind, restore, [code])
    (memory,) = memories_of(mind)
    assert (memory.status, memory.expires_at, memory.archived_at) == (MemoryStatus.ACTIVE, None, None)
    assert memory.retention == Retention.LASTING
    with tenant_transaction(mind.tenant_id):
        access = MemoryAccess.objects.get(memory_id=code)
    assert (access.count, access.reinforced, access.last_at) == (0, 1, None)
    assert access.reinforced_at is not None


def test_a_memory_restored_for_good_is_permanent(mind: Agent) -> None:
    (name,) = store_memories(mind, "Her name is Ada.")
    apply(mind, archive, [name])
    apply(mind, restore, [name], for_good=True)
    (memory,) = memories_of(mind)
    assert memory.retention == Retention.PERMANENT


def test_a_purge_removes_all_rows_and_leaves_a_hash(mind: Agent) -> None:
    soup, salt = store_memories(mind, "The soup was salty.", "Salt is in the cupboard.")
    with tenant_transaction(mind.tenant_id):
        tenant_id = mind.tenant_id
        Edge.objects.create(
            tenant_id=tenant_id, agent_id=mind.id, source_kind="memory", source_id=salt, target_kind="memory",
            target_id=soup, relation="causes",
        )  # fmt: skip
        cluster = Cluster.objects.create(tenant_id=tenant_id, agent_id=mind.id, name="food")
        ClusterMember.objects.create(tenant_id=tenant_id, cluster=cluster, memory_id=soup, strength=0.9)
        Upkeep.objects.get_or_create(
            memory_id=soup, defaults={"tenant_id": mind.tenant_id, "agent_id": mind.id}
        )
        EmbeddingCacheEntry.objects.create(
            tenant_id=tenant_id,
            model="remote",
            content_hash=content_hash("The soup was salty."),
            embedding=[1, 0],
        )
        record_recall(agent_id=mind.id, recalled={soup: 1.0})
    apply(mind, archive, [soup])
    assert apply(mind, purge, [soup]) == 1
    with tenant_transaction(mind.tenant_id):
        assert list(Memory.objects.values_list("id", flat=True)) == [salt]
        for model in (Edge, ClusterMember, EmbeddingCacheEntry, MemoryAccess):
            assert not model.objects.exists(), model
        assert not Upkeep.objects.filter(memory_id=soup).exists()
    assert term_counts(mind) == true_counts(mind)
    event = audit_events(mind)[-1]
    assert event.detail["content_hashes"] == {str(soup): content_hash("The soup was salty.").hex()}
    assert "salty" not in f"{event.message}{event.detail}"


def test_a_purge_deletes_the_code_of_the_text(mind: Agent) -> None:
    text = "Here it is:\n```sh\nopen --code 4711\n```"
    (shared,) = store_memories(mind, text)
    with tenant_transaction(mind.tenant_id):
        store_agent_code(agent_id=mind.id, texts=[text, "```\nls\n```"], source="chat:1")
    apply(mind, archive, [shared])
    apply(mind, purge, [shared])
    with tenant_transaction(mind.tenant_id):
        assert list(CodeSnippet.objects.values_list("code", flat=True)) == ["ls"]


def test_a_purge_of_two_agents_deletes_each_ones_own_code(mind: Agent, other_mind: Agent) -> None:
    texts = {mind: "```\nls\n```", other_mind: "```\npwd\n```"}
    ids = [memory_id for agent, text in texts.items() for memory_id in store_memories(agent, text)]
    with tenant_transaction(mind.tenant_id):
        for agent in texts:
            store_agent_code(agent_id=agent.id, texts=texts.values(), source="chat:1")
    apply(mind, archive, ids)
    apply(mind, purge, ids)
    with tenant_transaction(mind.tenant_id):
        left = set(CodeSnippet.objects.values_list("agent_id", "code"))
    assert left == {(mind.id, "pwd"), (other_mind.id, "ls")}


def test_only_an_archived_memory_can_be_purged(mind: Agent) -> None:
    soup, salt = store_memories(mind, "Soup.", "Salt.")
    apply(mind, archive, [soup])
    message = f"archive memories before you remove them for good; not archived: {salt}"
    with pytest.raises(Invalid, match=message):
        apply(mind, purge, [soup, salt])
    assert len(memories_of(mind)) == 2


@pytest.mark.parametrize("actor", ["system:maintenance", "agent:agent_0a", "heartbeat:1", ""])
def test_only_a_person_purges(mind: Agent, actor: str) -> None:
    (soup,) = store_memories(mind, "Soup.")
    apply(mind, archive, [soup])
    with pytest.raises(PermissionDenied, match="only a person"):
        apply(mind, purge, [soup], actor=actor)
    assert len(memories_of(mind)) == 1


@pytest.mark.parametrize("act", ACTS)
def test_an_unknown_or_foreign_id_refuses_the_whole_act(
    act: Callable[..., int], mind: Agent, foreign_mind: Agent
) -> None:
    (ours,) = store_memories(mind, "Ours.")
    (theirs,) = store_memories(foreign_mind, "Theirs.")
    if act is not archive:
        apply(mind, archive, [ours])
        apply(foreign_mind, archive, [theirs])
    before = [(memory.id, memory.status) for memory in memories_of(mind) + memories_of(foreign_mind)]
    for wrong in (theirs, uuid4()):
        with pytest.raises(NotFound, match=f"this tenant has no memory {wrong}"):
            apply(mind, act, [ours, wrong])
    assert [(memory.id, memory.status) for memory in memories_of(mind) + memories_of(foreign_mind)] == before
    assert term_counts(mind) == true_counts(mind)


@pytest.mark.parametrize("act", ACTS)
def test_an_invalid_reason_or_too_many_ids_refuse_the_act(act: Callable[..., int], mind: Agent) -> None:
    (soup,) = store_memories(mind, "Soup.")
    wrong: list[tuple[list[UUID], str, type[ArborError], str]] = [
        ([soup], " ", Invalid, "got 0"),
        ([soup], "why\0", Invalid, "NUL"),
        ([soup], "x" * 501, Invalid, "got 501"),
        ([uuid4() for _ in range(MAX_AT_ONCE + 1)], "too many", LimitReached, "got 1,001"),
    ]
    for ids, reason, error, message in wrong:
        with pytest.raises(error, match=message), tenant_transaction(mind.tenant_id):
            act(memory_ids=ids, reason=reason, actor=ADA)
    assert audit_events(mind) == []


@pytest.mark.parametrize("act", ACTS)
def test_an_act_on_no_memories_is_not_recorded(act: Callable[..., int], mind: Agent) -> None:
    assert apply(mind, act, []) == 0
    assert audit_events(mind) == []


def test_archiving_many_memories_takes_few_statements(mind: Agent, statements: list[str]) -> None:
    ids = store_memories(mind, *(f"Ticket {number}." for number in range(200)))
    statements.clear()
    apply(mind, archive, ids)
    assert len(statements) <= 11, statements
