"""The buffer: bounded, found by words and meaning, and promoted to memories where an item mattered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.models import BufferItem, Memory, Mind
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.embedding.minds import installation_model
from apps.memories.services.retention import buffer
from apps.memories.services.retention.archive import archive, purge
from apps.memories.services.retention.buffer import (
    BufferSearch,
    FoundBufferItem,
    add_buffer_items,
    add_to_buffers,
    promote,
    promote_buffers,
    search_buffers,
)
from apps.memories.services.store.term_counts import terms_of
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, LimitReached, NotFound
from arbor.memory.buffer import NewBufferItem
from arbor.memory.importance import EXPLICIT_IMPORTANCE
from arbor.memory.text.lexical import document_vector
from tests.integration.memories.conftest import (
    REMOTE,
    a_memory,
    at_once,
    memories_of,
    store_without_vectors,
)
from tests.support.embedders import RemoteEmbedder

ACTOR = "cli:tests"


def add_items(agent: Agent, *texts: str, **options: Any) -> list[UUID]:
    with tenant_transaction(agent.tenant_id):
        return add_buffer_items(
            agent_id=agent.id, items=[NewBufferItem(content=text, **options) for text in texts]
        )


def buffer_items(agent: Agent) -> list[BufferItem]:
    with tenant_transaction(agent.tenant_id):
        return list(BufferItem.objects.filter(agent_id=agent.id).order_by("id"))


def find(
    agent: Agent, text: str, *, vector: Sequence[float] | None = None, **options: Any
) -> list[FoundBufferItem]:
    with tenant_transaction(agent.tenant_id):
        return search_buffers([BufferSearch(agent_id=agent.id, text=text, vector=vector, **options)])[0]


def expire_items(agent: Agent, **ago: float) -> None:
    with tenant_transaction(agent.tenant_id):
        BufferItem.objects.filter(agent_id=agent.id).update(expires_at=datetime.now(UTC) - timedelta(**ago))


def audit_messages(agent: Agent) -> list[str]:
    with tenant_transaction(agent.tenant_id):
        rows = AuditEvent.objects.filter(action=AuditAction.BUFFER_CLEARED, agent_id=agent.id).order_by("id")
        return list(rows.values_list("message", flat=True))


def test_an_operators_words_appraise_an_item(mind: Agent, tmp_path: Path, settings: Any) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("remember: [mark my words]")
    settings.ARBOR_IMPORTANCE_WORDS = str(words)
    add_items(mind, "Mark my words: the ferry is late.", role="user")
    assert [item.importance for item in buffer_items(mind)] == [EXPLICIT_IMPORTANCE]


def test_a_buffer_item_is_found_by_words_and_later_by_meaning(mind: Agent) -> None:
    add_items(mind, "The physician called about the knee.", "A parcel came from Oslo.")
    assert [item.content for item in find(mind, "parcel from Oslo")] == ["A parcel came from Oslo."]
    assert find(mind, "doctor") == []
    assert embed_backlog() == 2
    vector = embed_texts(tenant_id=mind.tenant_id, texts=["doctor"])[0].tolist()
    assert [item.content for item in find(mind, "doctor", vector=vector)] == [
        "The physician called about the knee."
    ]


def test_only_the_agents_own_search_counts_as_access(mind: Agent) -> None:
    add_items(mind, "A parcel came from Oslo.")
    assert [item.accesses for item in find(mind, "parcel")] == [0]
    assert [item.accesses for item in find(mind, "parcel", counts=True)] == [1]
    assert [item.accesses for item in find(mind, "parcel")] == [1]
    assert find(mind, "mountain", counts=True) == []
    assert [item.accesses for item in buffer_items(mind)] == [1]


def test_a_vector_of_another_length_is_not_compared(mind: Agent) -> None:
    add_items(mind, "A parcel came from Oslo.")
    embed_backlog()
    assert len(find(mind, "parcel", vector=[1.0, 0.0])) == 1


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("together", [False, True])
def test_the_most_trusted_of_equal_texts_is_stored(mind: Agent, order: int, together: bool) -> None:
    text = "Pay Ann first."
    items = [
        NewBufferItem(content=text, role="Vega", trust=0.3),
        NewBufferItem(content=text, role="user", trust=0.7),
    ][::order]
    with tenant_transaction(mind.tenant_id):
        for batch in [items] if together else [[item] for item in items]:
            add_buffer_items(agent_id=mind.id, items=batch)
    (item,) = buffer_items(mind)
    assert (item.role, item.trust) == ("user", 0.7)


def test_a_repeated_item_is_found_by_its_present_speaker(mind: Agent) -> None:
    add_items(mind, "Pay Ann first.", role="Vega", trust=0.3)
    add_items(mind, "Pay Ann first.", role="Marta", trust=0.7)
    with tenant_transaction(mind.tenant_id):
        (vector,) = BufferItem.objects.filter(agent_id=mind.id).values_list("lexical", flat=True)
    assert set(terms_of(vector)) == set(document_vector("Pay Ann first.", speaker="Marta"))


def test_a_repeated_item_is_stored_once_and_expires_later(mind: Agent) -> None:
    first = add_items(mind, "A parcel came.", lasts=timedelta(hours=1), importance=0.6)
    again = add_items(mind, "A  parcel came.", "A parcel came.", lasts=timedelta(hours=9), importance=0.2)
    assert again == first * 2
    (item,) = buffer_items(mind)
    assert item.importance == 0.6
    assert item.expires_at > datetime.now(UTC) + timedelta(hours=8)


def test_expired_items_are_deleted_with_an_audit_record(mind: Agent) -> None:
    add_items(mind, "A parcel came.", "It rains.", importance=0.2)
    expire_items(mind, seconds=1)
    assert find(mind, "parcel") == []
    assert promote_buffers().done == 2
    assert buffer_items(mind) == []
    assert memories_of(mind) == []
    assert audit_messages(mind) == ["deleted 2 buffer items that had expired"]
    assert promote_buffers().steps == 0


def test_an_item_that_mattered_is_promoted_after_expiry(mind: Agent) -> None:
    add_items(mind, "The code is 4711.", importance=0.8, role="user", source="heartbeat:1")
    add_items(mind, "A parcel came from Oslo.", importance=0.3)
    add_items(mind, "It rains.", importance=0.3)
    for _ in range(3):
        find(mind, "parcel", counts=True)
    expire_items(mind, days=2)
    assert promote_buffers().done == 2 + 3
    promoted = {memory.content: memory for memory in memories_of(mind)}
    assert set(promoted) == {"The code is 4711.", "A parcel came from Oslo."}
    code, parcel = promoted["The code is 4711."], promoted["A parcel came from Oslo."]
    assert (code.importance, code.role, code.source) == (0.8, "user", "heartbeat:1")
    assert parcel.importance > 0.3
    assert code.embedding is not None
    assert buffer_items(mind) == []
    assert audit_messages(mind) == ["deleted 1 buffer item that had expired"]


def test_an_item_that_matters_is_promoted_early(mind: Agent) -> None:
    (item_id,) = add_items(mind, "The code is 4711.", importance=0.8)
    assert promote_buffers().done == 1
    (item,) = buffer_items(mind)
    (memory,) = memories_of(mind)
    assert (item.id, item.promoted_to_id) == (item_id, memory.id)
    assert find(mind, "code 4711") == []
    assert promote_buffers().steps == 0
    expire_items(mind, seconds=1)
    assert promote_buffers().done == 1
    assert buffer_items(mind) == []
    assert audit_messages(mind) == []
    assert len(memories_of(mind)) == 1


@pytest.mark.parametrize(
    ("importance", "accesses", "expected"),
    [(0.74, 2, False), (0.75, 0, True), (0.0, 3, True), (1.0, 99, True), (0.0, 0, False)],
)
def test_an_important_or_often_used_item_is_promoted(
    importance: float, accesses: int, expected: bool, mind: Agent
) -> None:
    add_items(mind, "A parcel came.", importance=importance)
    with tenant_transaction(mind.tenant_id):
        BufferItem.objects.update(accesses=accesses)
    promote_buffers()
    assert [memory.content for memory in memories_of(mind)] == ["A parcel came."] * expected


def test_an_interrupted_promotion_is_repeated_safely(mind: Agent) -> None:
    add_items(mind, "The code is 4711.", importance=0.8)
    promote_buffers()
    with tenant_transaction(mind.tenant_id):
        BufferItem.objects.update(promoted_to=None)
    promote_buffers()
    assert len(memories_of(mind)) == 1
    assert buffer_items(mind)[0].promoted_to_id == memories_of(mind)[0].id


def test_a_person_can_promote_an_item(mind: Agent, foreign_mind: Agent) -> None:
    (item_id,) = add_items(mind, "It rains.", importance=0.1)
    for agent, missing in ((foreign_mind, item_id), (mind, uuid4())):
        with pytest.raises(NotFound, match=f"has no buffer item {missing}"):
            promote(tenant_id=agent.tenant_id, agent_id=agent.id, item_id=missing, actor=ACTOR)
    memory_id = promote(tenant_id=mind.tenant_id, agent_id=mind.id, item_id=item_id, actor=ACTOR)
    assert [memory.id for memory in memories_of(mind)] == [memory_id]
    assert buffer_items(mind)[0].promoted_to_id == memory_id
    with tenant_transaction(mind.tenant_id):
        event = AuditEvent.objects.get(actor=ACTOR)
    assert event.detail == {"item_ids": [str(item_id)], "memory_ids": [str(memory_id)]}


def test_a_buffer_is_bounded_and_the_least_important_make_room(
    mind: Agent, other_mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffer, "CAPACITY", 3)
    add_items(other_mind, "Not ours.", importance=0.0)
    add_items(mind, "One.", importance=0.5)
    add_items(mind, "Two.", importance=0.1)
    add_items(mind, "Three.", importance=0.4)
    add_items(mind, "Four.", importance=0.2)
    assert [item.content for item in buffer_items(mind)] == ["One.", "Three.", "Four."]
    assert len(buffer_items(other_mind)) == 1
    assert audit_messages(mind) == ["deleted 1 buffer item to make room for others"]
    add_items(mind, "One.", importance=0.5)
    assert len(buffer_items(mind)) == 3
    with pytest.raises(LimitReached, match="at most 3 items, got 4"):
        add_items(mind, "1", "2", "3", "4")


def test_buffer_items_of_other_agents_are_not_found(
    mind: Agent, other_mind: Agent, foreign_mind: Agent
) -> None:
    add_items(other_mind, "A parcel came.")
    add_items(foreign_mind, "A parcel came.")
    assert find(mind, "parcel") == []


@pytest.mark.parametrize(("text", "limit"), [("", 1), ("parcel", 0), ("parcel", 10**6), ("a\0", 1)])
def test_a_search_that_cannot_be_answered_is_refused(text: str, limit: int, mind: Agent) -> None:
    with pytest.raises(Invalid):
        find(mind, text, limit=limit)


def test_adding_and_searching_take_one_statement_each(mind: Agent, statements: list[str]) -> None:
    statements.clear()
    add_items(mind, *(f"Parcel {number}." for number in range(5)))
    find(mind, "parcel", counts=True)
    assert len(statements) == 2, statements
    add_items(mind)
    assert len(statements) == 2


def test_concurrent_promotions_remember_each_item_once(mind: Agent) -> None:
    add_items(mind, *(f"Ticket {number} is valid." for number in range(20)), importance=0.9)
    expire_items(mind, seconds=1)
    at_once(lambda _: promote_buffers(), writers=4)
    assert buffer_items(mind) == []
    with tenant_transaction(mind.tenant_id):
        assert Memory.objects.filter(agent_id=mind.id).count() == 20


def test_concurrent_writers_store_each_item_once(mind: Agent) -> None:
    texts = [f"Ticket {number}." for number in range(20)]
    at_once(lambda writer: add_items(mind, *(texts if writer % 2 else reversed(texts))), writers=4)
    assert sorted(item.content for item in buffer_items(mind)) == sorted(texts)


def test_a_purged_memory_is_not_promoted_again(mind: Agent) -> None:
    add_items(mind, "The vault opens at nine.", importance=0.9)
    promote_buffers()
    (remembered,) = memories_of(mind)
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=[remembered.id], reason="asked for", actor="cli:ada")
        purge(memory_ids=[remembered.id], reason="asked for", actor="cli:ada")
    assert buffer_items(mind) == []
    promote_buffers()
    assert memories_of(mind) == []


def test_an_item_that_is_purged_during_its_promotion_stays_away(
    mind: Agent, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.in_process = True
    (item_id,) = add_items(mind, "The vault opens at nine.")
    store_without_vectors(mind, a_memory("The vault opens at nine."))
    (known,) = memories_of(mind)
    embed = remote.embed

    def purge_and_embed(texts: Sequence[str]) -> Any:
        with tenant_transaction(mind.tenant_id):
            archive(memory_ids=[known.id], reason="asked for", actor="cli:ada")
            purge(memory_ids=[known.id], reason="asked for", actor="cli:ada")
        return embed(texts)

    monkeypatch.setattr(remote, "embed", purge_and_embed)
    with pytest.raises(NotFound, match=f"has no buffer item {item_id}"):
        promote(tenant_id=mind.tenant_id, agent_id=mind.id, item_id=item_id, actor=ACTOR)
    assert memories_of(mind) == []


def test_several_agents_share_one_buffer_statement(
    mind: Agent, other_mind: Agent, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffer, "CAPACITY", 2)
    parcel, knee = (
        NewBufferItem(content="A parcel came."),
        NewBufferItem(content="The knee hurts.", importance=0.1),
    )
    add_items(mind, "The least of all.", importance=0.0)
    add_items(other_mind, "A parcel came.")
    statements.clear()
    with tenant_transaction(mind.tenant_id):
        ids = add_to_buffers({mind.id: [parcel, knee, parcel], other_mind.id: [parcel], uuid4(): []})
        # The second statement audits the removed items.
        assert len(statements) == 2
        statements.clear()
        searches = [
            BufferSearch(agent_id=mind.id, text="parcel", counts=True),
            BufferSearch(agent_id=other_mind.id, text="parcel", counts=True),
            BufferSearch(agent_id=other_mind.id, text="knee"),
            BufferSearch(agent_id=mind.id, text="parcel or knee", counts=True),
        ]
        results = search_buffers(searches)
        assert len(statements) == 1
        assert search_buffers([]) == []
    assert [len(item_ids) for item_ids in ids.values()] == [3, 1, 0]
    assert ids[mind.id][0] == ids[mind.id][2]
    assert {item.id for item in buffer_items(mind)} == set(ids[mind.id])
    assert [item.id for item in buffer_items(other_mind)] == ids[other_mind.id]
    assert (audit_messages(mind), audit_messages(other_mind)) == (
        ["deleted 1 buffer item to make room for others"],
        [],
    )
    assert [[item.id for item in found] for found in results[:3]] == [
        ids[mind.id][:1],
        ids[other_mind.id],
        [],
    ]
    assert {item.id for item in results[3]} == set(ids[mind.id])
    assert {item.content: item.accesses for item in buffer_items(mind)} == {
        "A parcel came.": 2,
        "The knee hurts.": 1,
    }
    assert [item.accesses for item in buffer_items(other_mind)] == [1]


def test_each_agents_search_is_compared_by_its_own_model(
    mind: Agent, other_mind: Agent, server: RemoteEmbedder
) -> None:
    for agent in (mind, other_mind):
        add_items(agent, "The physician called about the knee.")
    assert embed_backlog() == 2
    with tenant_transaction(mind.tenant_id):
        Mind.objects.create(
            tenant_id=mind.tenant_id,
            agent_id=other_mind.id,
            embedding_model=REMOTE.name,
            embedding_dimension=REMOTE.dimension,
        )
        vector = embed_texts(tenant_id=mind.tenant_id, texts=["doctor"])[0].tolist()
        both = [
            BufferSearch(agent_id=agent.id, text="doctor", vector=vector, model=installation_model())
            for agent in (mind, other_mind)
        ]
        assert [len(result) for result in search_buffers(both)] == [1, 0]
