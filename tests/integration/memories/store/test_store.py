"""Storing memories once, and refusing invalid ones as a whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from apps.agents.models import Agent
from apps.memories.models import CodeSnippet, Upkeep
from apps.memories.services.retention.forgetting import expire_memories
from apps.memories.services.store.remember import store
from apps.memories.services.store.snippets import SourcedTexts, store_code
from apps.tenants.scope import tenant_transaction
from arbor.errors import ContentInvalid, TenantRequired
from arbor.memory.content import MAX_CONTENT_BYTES
from arbor.memory.values import MemoryStatus, MemoryType, Retention
from tests.integration.memories.conftest import (
    NOON,
    a_memory,
    at_once,
    memories_of,
    term_counts,
    true_counts,
    turns,
)
from tests.support.embedders import RemoteEmbedder
from tests.support.memories import store_memories


def test_a_memory_is_stored_with_all_its_fields(mind: Agent) -> None:
    stored = store_memories(
        mind,
        a_memory(
            "The archive opens at nine.",
            type=MemoryType.SEMANTIC,
            importance=0.8,
            decay_rate=0.02,
            trust=0.9,
            emotional_valence=-0.25,
            session="visit",
            position=3,
            role="Ada",
            source="operator",
            expires_at=NOON + timedelta(days=9000),
            detail={"page": 7},
        ),
    )
    (row,) = memories_of(mind)
    assert stored.ids == (row.id,)
    assert (row.content, row.type, row.status) == ("The archive opens at nine.", "semantic", "active")
    assert (row.importance, row.decay_rate, row.trust, row.emotional_valence) == (0.8, 0.02, 0.9, -0.25)
    assert (row.session, row.position, row.role, row.source) == ("visit", 3, "Ada", "operator")
    assert (row.occurred_at, row.expires_at) == (NOON, NOON + timedelta(days=9000))
    assert row.detail == {"page": 7}
    assert row.embedding_model == "wordllama/l2_supercat_256"
    assert row.embedding is not None


def test_the_same_content_at_the_same_place_is_one_memory(mind: Agent) -> None:
    first = store_memories(mind, *turns("The river froze.", "The ice held."))
    again = store_memories(mind, *turns("The river froze.", "The ice broke."))
    assert (first.stored, again.stored) == (2, 1)
    assert again.ids[0] == first.ids[0]
    assert again.duplicates == {first.ids[0]}
    assert len(memories_of(mind)) == 3
    assert term_counts(mind) == true_counts(mind)


def test_white_space_and_composition_make_no_other_memory(mind: Agent) -> None:
    first = store_memories(mind, a_memory("A café by the river."))
    again = store_memories(mind, a_memory("  A cafe\u0301  by the\nriver. "))
    assert again.ids == first.ids
    assert again.stored == 0


def test_the_same_words_elsewhere_are_another_memory(mind: Agent) -> None:
    stored = store_memories(
        mind,
        a_memory("Good morning!", session="monday"),
        a_memory("Good morning!", session="tuesday"),
        a_memory("Good morning!", session="tuesday", position=1),
    )
    assert stored.stored == 3


def test_a_memory_twice_in_a_batch_is_stored_once(mind: Agent) -> None:
    stored = store_memories(mind, a_memory("Once."), a_memory("Once."))
    assert stored.stored == 1
    assert stored.ids[0] == stored.ids[1]
    assert term_counts(mind) == true_counts(mind)


def test_two_agents_may_remember_the_same(mind: Agent, other_mind: Agent, foreign_mind: Agent) -> None:
    for agent in (mind, other_mind, foreign_mind):
        assert store_memories(agent, a_memory("The bridge is closed.")).stored == 1
        assert len(memories_of(agent)) == 1


def test_an_empty_batch_runs_no_statement(mind: Agent, statements: list[str]) -> None:
    assert store_memories(mind).ids == ()
    assert statements == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "got an empty text"),
        (" \n\t ", "got white space only"),
        ("before\0after", "NUL character, got one at position 6"),
        ("half a pair: \ud83d", "half a surrogate pair at position 13"),
        ("é" * (MAX_CONTENT_BYTES // 2 + 1), "at most 65,536 bytes of UTF-8, got 65,538"),
    ],
)
def test_an_invalid_text_refuses_its_whole_batch(mind: Agent, content: str, complaint: str) -> None:
    with pytest.raises(ContentInvalid, match=complaint):
        store_memories(mind, a_memory("A good one."), a_memory(content))
    assert memories_of(mind) == []
    assert term_counts(mind) == {}


def test_the_longest_text_of_rare_words_can_be_stored(mind: Agent) -> None:
    text = " ".join(f"word{number:x}" for number in range(MAX_CONTENT_BYTES // 10))
    assert len(text.encode()) <= MAX_CONTENT_BYTES
    store_memories(mind, a_memory(text, session="s" * 100, role="r " * 50))
    assert term_counts(mind) == true_counts(mind)


def test_storing_without_a_tenant_is_refused(mind: Agent) -> None:
    with pytest.raises(TenantRequired):
        store(agent_id=mind.id, memories=[a_memory("Whose?")], vectors=None)


def test_a_rollback_removes_stored_memories(mind: Agent) -> None:
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=[a_memory("Not yet.")], vectors=None)
        transaction.set_rollback(True)
    assert memories_of(mind) == []
    assert term_counts(mind) == {}


# --- Many writers ------------------------------------------------------------------------------------


def test_ten_writers_neither_deadlock_nor_double(mind: Agent) -> None:
    memories = turns(*(f"Turn {number}: the ferry leaves at {number} o'clock." for number in range(40)))

    def write(writer: int) -> int:
        mine = memories if writer % 2 else memories[::-1]
        stored = 0
        for half in (mine[: len(mine) // 2], mine[len(mine) // 2 :]):
            stored += store_memories(mind, *half).stored
        return stored

    assert sum(at_once(write, writers=10)) == len(memories)
    assert len(memories_of(mind)) == len(memories)
    assert term_counts(mind) == true_counts(mind)


def test_repeated_writes_in_one_transaction_do_not_deadlock(mind: Agent) -> None:
    memories = turns(*(f"Bell {number} rings over the harbour." for number in range(12)))

    def write(writer: int) -> None:
        mine = memories if writer % 2 else memories[::-1]
        with tenant_transaction(mind.tenant_id):
            for memory in mine:
                store(agent_id=mind.id, memories=[memory], vectors=None)

    at_once(write, writers=6)
    assert len(memories_of(mind)) == len(memories)
    assert term_counts(mind) == true_counts(mind)


def test_every_writer_gets_the_id_of_the_memory(mind: Agent) -> None:
    results = at_once(lambda _: store_memories(mind, a_memory("The key is under the stone.")), writers=6)
    (row,) = memories_of(mind)
    assert {result.ids for result in results} == {(row.id,)}
    assert sum(result.stored for result in results) == 1


# --- Repeated memories -------------------------------------------------------------------------------


def test_an_expired_memory_that_is_stored_again_is_restored(mind: Agent) -> None:
    passing = a_memory("The gate code is 4711.", expires_at=NOON)
    (lost,) = store_memories(mind, passing).ids
    assert expire_memories().done == 1
    again = store_memories(mind, a_memory("The gate code is 4711."))
    (row,) = memories_of(mind)
    assert again.ids == (lost,)
    assert again.stored == 1
    assert (row.status, row.archived_at, row.expires_at) == (MemoryStatus.ACTIVE, None, None)
    assert term_counts(mind) == true_counts(mind)


def test_a_memory_stored_again_past_its_expiry_stays(mind: Agent) -> None:
    store_memories(mind, a_memory("The gate code is 4711.", expires_at=NOON))
    assert store_memories(mind, a_memory("The gate code is 4711.")).stored == 1
    assert expire_memories().done == 0
    (row,) = memories_of(mind)
    assert (row.status, row.expires_at) == (MemoryStatus.ACTIVE, None)
    assert term_counts(mind) == true_counts(mind)


def test_a_known_memory_keeps_the_later_of_two_expiries(mind: Agent) -> None:
    soon, later = (NOON + timedelta(days=days) for days in (9000, 9001))
    store_memories(mind, a_memory("The boat is moored at pier 3.", expires_at=later))
    assert store_memories(mind, a_memory("The boat is moored at pier 3.", expires_at=soon)).stored == 0
    assert memories_of(mind)[0].expires_at == later
    assert store_memories(mind, a_memory("The boat is moored at pier 3.")).stored == 0
    assert memories_of(mind)[0].expires_at is None


# --- Vectors -----------------------------------------------------------------------------------------


def test_a_failed_embedder_leaves_memories_without_vectors(mind: Agent, remote: RemoteEmbedder) -> None:
    remote.away = True
    assert store_memories(mind, a_memory("The lighthouse is dark.")).stored == 1
    (row,) = memories_of(mind)
    assert (row.embedding, row.embedding_model) == (None, "")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # The mind's model, the lock, the known memories, the inserts, the signals.
        ({"type": MemoryType.SEMANTIC, "session": "notes"}, 5),
        # The same, and episodes.
        ({"session": "talk"}, 6),
        # As the first, and near duplicates.
        ({"type": MemoryType.SEMANTIC}, 6),
        ({}, 7),
    ],
)
def test_storing_takes_few_statements_for_any_number(
    mind: Agent, statements: list[str], parts: dict[str, Any], expected: int
) -> None:
    store_memories(mind, a_memory("One.", **parts))
    assert len(statements) == expected
    statements.clear()
    store_memories(mind, *(a_memory(f"Number {number}.", **parts) for number in range(200)))
    assert len(statements) == expected


ADD = "```python\ndef add(a, b):\n    return a + b\n```"
LIST = "```sh\nls -la | sort | head\n```"


def test_code_of_several_agents_takes_one_statement(
    mind: Agent, other_mind: Agent, statements: list[str]
) -> None:
    texts = [
        SourcedTexts(agent_id=mind.id, texts=[f"Try\n{ADD}\nor\n{LIST}", ADD], source="heartbeat:1"),
        SourcedTexts(agent_id=other_mind.id, texts=["Nothing here.", ADD], source="heartbeat:2" * 40),
    ]
    with tenant_transaction(mind.tenant_id):
        assert store_code([SourcedTexts(agent_id=mind.id, texts=["Nothing here."], source="test")]) == 0
        assert statements == []
        assert store_code(texts) == 4
        assert len(statements) == 1
        assert store_code(texts) == 4
        rows = CodeSnippet.objects.order_by("agent_id", "language")
        stored = {(row.agent_id, row.language, len(row.source)) for row in rows}
    assert stored == {(mind.id, "python", 11), (mind.id, "sh", 11), (other_mind.id, "python", 200)}
    assert len(rows) == 3


# --- Flags, importance and expiry --------------------------------------------------------------------


def test_a_new_memory_has_every_maintenance_flag(mind: Agent) -> None:
    store_memories(mind, a_memory("The ferry leaves at dawn."))
    store_memories(mind, a_memory("The bell rings at noon."))
    with tenant_transaction(mind.tenant_id):
        flags = list(Upkeep.objects.values_list("stale", "unclustered", "unextracted", "unweighed"))
        mind.refresh_from_db()
        assert mind.mind.embedding_dimension == 256
    assert flags == [(True, True, True, False)] * 2


def test_only_memories_without_importance_wait_for_a_model(mind: Agent, settings: Any) -> None:
    settings.ARBOR_MAINTENANCE_MODEL = "openai/small"
    settings.ARBOR_APPRAISE_MEMORIES = True
    store_memories(
        mind, a_memory("The ferry leaves at dawn."), a_memory("The bell rings at noon.", importance=0.4)
    )
    with tenant_transaction(mind.tenant_id):
        unweighed = Upkeep.objects.filter(unweighed=True).values_list("memory__content", flat=True)
        assert list(unweighed) == ["The ferry leaves at dawn."]


@pytest.mark.parametrize(
    ("text", "parts", "importance", "retention", "days"),
    [
        ("Ok, thanks!", {}, 0.15, Retention.ROUTINE, 7),
        ("We decided on the red one.", {}, 0.7, Retention.DECISION, 90),
        ("The request failed.", {"role": "assistant"}, 0.6, Retention.ERROR, 14),
        ("I submitted the form.", {"role": "assistant"}, 0.6, Retention.TASK, 30),
        ("Remember this: pier 3.", {"role": "user"}, 1.0, Retention.PERMANENT, None),
        ("The river froze.", {}, 0.5, Retention.LASTING, None),
        ("Ok, thanks!", {"importance": 0.9, "retention": Retention.LASTING}, 0.9, Retention.LASTING, None),
        ("Remember this: pier 3.", {"source": "operator"}, 1.0, Retention.PERMANENT, None),
        ("Remember this: pier 3.", {"role": "Vega"}, 0.5, Retention.LASTING, None),
        ("Remember this: pier 3.", {"role": "user", "importance": 0.2}, 0.2, Retention.PERMANENT, None),
        # The event is old; its retention begins now.
        ("We decided.", {"occurred_at": NOON - timedelta(days=900)}, 0.7, Retention.DECISION, 90),
    ],
)
def test_a_memory_without_importance_is_appraised_when_stored(
    mind: Agent, text: str, parts: dict[str, Any], importance: float, retention: Retention, days: int | None
) -> None:
    store_memories(mind, a_memory(text, **parts))
    (row,) = memories_of(mind)
    assert row.importance == pytest.approx(importance)
    assert row.retention == retention
    if days is None:
        assert row.expires_at is None
    else:
        assert row.expires_at is not None
        assert abs(row.expires_at - datetime.now(UTC) - timedelta(days=days)) < timedelta(minutes=5)


def test_a_given_expiry_wins_over_permanence(mind: Agent) -> None:
    until = NOON + timedelta(days=9000)
    store_memories(mind, a_memory("Remember this: pier 3.", role="user", expires_at=until))
    (row,) = memories_of(mind)
    assert (row.expires_at, row.retention) == (until, Retention.LASTING)


def test_retention_times_are_settings(mind: Agent, settings: Any) -> None:
    settings.ARBOR_TTL_DAYS = {"routine": 0.0, "decision": 2.0}
    store_memories(mind, a_memory("Ok, thanks!"), a_memory("We decided on the red one."))
    small_talk, decision = memories_of(mind)
    assert small_talk.expires_at is None
    assert decision.expires_at is not None
    assert decision.expires_at < datetime.now(UTC) + timedelta(days=3)
