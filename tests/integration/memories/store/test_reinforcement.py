"""Memories that are stored again: reinforced instead of doubled."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.models import MemoryAccess, Upkeep
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.retention.archive import archive
from apps.memories.services.store.remember import remember
from apps.memories.services.store.revision import halve_trust
from apps.signals.services.reading import read_signals
from apps.tenants.scope import tenant_transaction
from arbor.errors import NotFound
from arbor.ids import uuid7
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.duplicates import MAX_WORDINGS
from arbor.memory.trust import Source, max_trust
from arbor.memory.values import MemoryStatus, MemoryType, NewMemory, Retention
from arbor.signals import Cursor, SignalName
from tests.integration.memories.conftest import (
    NOON,
    a_memory,
    at_once,
    memories_of,
    term_counts,
    true_counts,
    turns,
)
from tests.integration.memories.store.given_vectors import store_with, unit_vectors
from tests.support.memories import store_memories


def count_reinforced(agent: Agent) -> dict[str, int]:
    with tenant_transaction(agent.tenant_id):
        rows = MemoryAccess.objects.filter(memory__agent_id=agent.id)
        return dict(rows.values_list("memory__content", "reinforced"))


def test_the_same_text_without_a_session_is_reinforced(mind: Agent) -> None:
    first = store_memories(mind, a_memory("The gate code is 4711."))
    again = store_memories(
        mind, a_memory("The gate  code is 4711.", position=7, occurred_at=NOON + timedelta(minutes=9))
    )
    assert again.ids == first.ids
    assert again.stored == 0
    assert again.duplicates == again.reinforced == set(first.ids)
    assert first.reinforced == frozenset()
    assert count_reinforced(mind) == {"The gate code is 4711.": 1}
    assert memories_of(mind)[0].detail == {}


def test_a_near_duplicate_is_reinforced_and_its_wording_stored(mind: Agent) -> None:
    first = store_with(mind, unit_vectors(1.0), a_memory("The river froze in January."))
    again = store_with(mind, unit_vectors(0.97), a_memory("the river froze, in January"))
    assert again.ids == first.ids
    assert again.reinforced == set(first.ids)
    (row,) = memories_of(mind)
    assert row.content == "The river froze in January."
    assert row.detail == {"wordings": ["the river froze, in January"]}
    assert count_reinforced(mind) == {row.content: 1}
    assert term_counts(mind) == true_counts(mind)


@pytest.mark.parametrize(
    ("cosine", "text", "parts"),
    [
        (0.94, "the river froze, in January", {}),
        (0.99, "The river froze in January 4712.", {}),
        (0.99, "The river never froze in January.", {}),
        (0.99, "the river froze, in January", {"type": MemoryType.SEMANTIC}),
        (0.99, "the river froze, in January", {"session": "talk"}),
    ],
)
def test_a_distant_or_different_text_is_another_memory(
    mind: Agent, cosine: float, text: str, parts: dict[str, Any]
) -> None:
    store_with(mind, unit_vectors(1.0), a_memory("The river froze in January."))
    assert store_with(mind, unit_vectors(cosine), a_memory(text, **parts)).stored == 1
    assert len(memories_of(mind)) == 2
    assert count_reinforced(mind) == {}


def test_a_duplicate_is_found_behind_nearer_memories(mind: Agent) -> None:
    store_with(mind, unit_vectors(0.999), a_memory("The code is 4711."))
    store_with(mind, unit_vectors(0.96), a_memory("Code is, um, 4712"))
    again = store_with(mind, unit_vectors(1.0), a_memory("The code is 4712."))
    assert again.stored == 0
    assert count_reinforced(mind) == {"Code is, um, 4712": 1}


def test_near_duplicates_within_one_batch_are_merged(mind: Agent) -> None:
    stored = store_with(
        mind,
        unit_vectors(1.0, 0.98, 0.98, 0.5),
        a_memory("The ferry leaves at dawn."),
        a_memory("ferry leaves, at dawn"),
        a_memory("The ferry leaves at dawn."),
        a_memory("The ferry is red."),
    )
    assert stored.stored == 2
    assert stored.ids[0] == stored.ids[1] == stored.ids[2] != stored.ids[3]
    assert stored.reinforced == {stored.ids[0]}
    assert count_reinforced(mind) == {"The ferry leaves at dawn.": 2}
    assert memories_of(mind)[0].detail == {"wordings": ["ferry leaves, at dawn"]}
    assert term_counts(mind) == true_counts(mind)


def test_the_same_words_of_two_speakers_are_two_events(mind: Agent) -> None:
    speakers = [("Bo", 0.575), ("user", 0.745), ("user", 0.745)]
    memories = [a_memory("Pay Ann first.", role=role, trust=trust) for role, trust in speakers]
    assert store_with(mind, unit_vectors(1.0, 1.0, 1.0), *memories).stored == 2
    assert [(memory.role, memory.trust) for memory in memories_of(mind)] == [("Bo", 0.575), ("user", 0.745)]
    # The same holds for memories that are stored already.
    assert store_with(mind, unit_vectors(1.0), a_memory("Pay Ann first.", role="Cleo", trust=0.2)).stored == 1
    assert store_with(mind, unit_vectors(1.0), memories[0]).stored == 0


def test_a_fact_of_two_speakers_is_one_with_both_sources(mind: Agent) -> None:
    facts = [
        a_memory(
            "Ann sells eels.",
            type=MemoryType.SEMANTIC,
            role=who,
            detail=SemanticDetail(sources=(Source(kind="person", reference=who, trust=0.5),)).to_json(),
        )
        for who in ("Bo", "Cleo")
    ]
    assert store_with(mind, unit_vectors(1.0, 1.0), *facts).stored == 1
    (fact,) = memories_of(mind)
    assert [source["reference"] for source in fact.detail["sources"]] == ["Bo", "Cleo"]
    assert fact.trust == pytest.approx(0.15 + 0.85 * 0.75)


def test_turns_of_a_conversation_are_never_merged_by_meaning(mind: Agent) -> None:
    memories = turns("The ferry leaves at dawn.", "ferry leaves, at dawn")
    assert store_with(mind, unit_vectors(1.0, 0.99), *memories).stored == 2
    # Stored once more, they are the same turns.
    assert store_memories(mind, *memories).reinforced == frozenset()
    assert count_reinforced(mind) == {}


def test_archived_and_expired_memories_are_no_near_duplicates(mind: Agent) -> None:
    old = store_with(mind, unit_vectors(1.0), a_memory("The ferry leaves at dawn.")).ids
    store_with(mind, unit_vectors(0.9), a_memory("The bell rings.", expires_at=NOON))
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=old, reason="a test", actor="system:tests")
    assert store_with(mind, unit_vectors(0.99), a_memory("ferry leaves, at dawn")).stored == 1


def test_the_same_text_restores_an_archived_memory(mind: Agent) -> None:
    old = store_memories(mind, a_memory("The ferry leaves at dawn."))
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=old.ids, reason="a test", actor="system:tests")
    again = store_memories(mind, a_memory("The ferry leaves at dawn."))
    assert (again.ids, again.stored) == (old.ids, 1)
    assert again.reinforced == set(old.ids)
    (row,) = memories_of(mind)
    assert (row.status, row.archived_at) == (MemoryStatus.ACTIVE, None)
    assert term_counts(mind) == true_counts(mind)
    with tenant_transaction(mind.tenant_id):
        upkeep = Upkeep.objects.get(memory_id=row.id)
        event = AuditEvent.objects.get(action=AuditAction.MEMORIES_RESTORED)
        last_signal = read_signals(after=Cursor(), limit=100).signals[-1]
    assert (last_signal.name, last_signal.data["memories"]) == (SignalName.KNOWLEDGE_RESTORED, [str(row.id)])
    assert (upkeep.stale, upkeep.unclustered) == (True, True)
    assert (event.agent_id, event.detail) == (mind.id, {"memory_ids": [str(row.id)]})


def test_a_restored_memory_keeps_the_later_of_two_expiries(mind: Agent) -> None:
    old = store_memories(mind, a_memory("The ferry leaves at dawn.", retention=Retention.LASTING))
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=old.ids, reason="a test", actor="system:tests")
    again = store_memories(mind, a_memory("The ferry leaves at dawn.", retention=Retention.ROUTINE))
    (row,) = memories_of(mind)
    assert (again.ids, again.stored) == (old.ids, 1)
    assert (row.status, row.retention, row.expires_at) == (MemoryStatus.ACTIVE, Retention.LASTING, None)


def test_a_memory_stored_again_as_permanent_is_permanent(mind: Agent) -> None:
    store_memories(mind, a_memory("The code is 4711.", retention=Retention.ROUTINE, importance=0.3))
    assert memories_of(mind)[0].expires_at is not None
    store_memories(mind, a_memory("The code is 4711.", retention=Retention.PERMANENT, importance=1.0))
    (row,) = memories_of(mind)
    assert (row.retention, row.expires_at, row.importance) == (Retention.PERMANENT, None, 1.0)


def test_sources_are_added_and_raise_trust_up_to_their_cap(mind: Agent) -> None:
    def fact(text: str, reference: str) -> NewMemory:
        source = {"kind": "url", "reference": reference, "trust": 0.5}
        return a_memory(text, type=MemoryType.SEMANTIC, detail={"sources": [source], "category": "ice"})

    store_with(mind, unit_vectors(1.0), fact("The river froze.", "a"))
    assert memories_of(mind)[0].trust == pytest.approx(0.575)
    store_with(mind, unit_vectors(0.98), fact("river froze", "b"))
    store_with(mind, unit_vectors(0.98), fact("river froze", " B "))
    (row,) = memories_of(mind)
    detail = read_detail(MemoryType.SEMANTIC, row.detail)
    assert isinstance(detail, SemanticDetail)
    assert [source.reference for source in detail.sources] == ["a", "b"]
    assert row.trust == pytest.approx(0.7875) == max_trust(detail.sources)
    assert row.detail["wordings"] == ["river froze"]
    assert row.detail["category"] == "ice"


def test_a_limit_above_one_merges_equal_texts_only(mind: Agent, settings: Any) -> None:
    settings.ARBOR_DUPLICATE_SIMILARITY = 1.5
    store_with(mind, unit_vectors(1.0), a_memory("The ferry leaves at dawn."))
    assert store_with(mind, unit_vectors(1.0), a_memory("ferry leaves, at dawn")).stored == 1
    assert store_with(mind, unit_vectors(1.0), a_memory("ferry leaves, at dawn")).stored == 0


def test_many_writers_of_nearly_the_same_leave_one_memory(mind: Agent) -> None:
    texts = ["The ferry leaves at dawn.", "ferry leaves, at dawn"]
    results = at_once(
        lambda writer: store_with(
            mind, unit_vectors(1.0, 0.98)[writer % 2 :][:1], a_memory(texts[writer % 2])
        ),
        writers=8,
    )
    (row,) = memories_of(mind)
    assert {result.ids for result in results} == {(row.id,)}
    assert sum(count_reinforced(mind).values()) == 7
    assert term_counts(mind) == true_counts(mind)


def test_an_agent_that_does_not_exist_remembers_nothing(mind: Agent, foreign_mind: Agent) -> None:
    for nobody in (uuid7(), foreign_mind.id):
        with pytest.raises(NotFound, match=f"there is no agent {nobody}"):
            remember(tenant_id=mind.tenant_id, agent_id=nobody, memories=[a_memory("The bell rings.")])


# --- Different memories ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paul moved from Berlin to Rome.", "Paul moved from Rome to Berlin."),
        ("Anna lent Bob her car.", "Bob lent Anna her car."),
        ("I prefer tea over coffee.", "I prefer coffee over tea."),
        ("The new code of the old gate is seven one one.", "The new code of the old gate is seven one two."),
    ],
)
@pytest.mark.parametrize("beside", [0, 20])
def test_different_facts_with_similar_words_are_not_merged(
    mind: Agent, one: str, other: str, beside: int
) -> None:
    rest = [a_memory(f"Buoy {number} is red.", type=MemoryType.SEMANTIC) for number in range(beside)]
    store_memories(mind, a_memory(one, type=MemoryType.SEMANTIC), *rest)
    again = store_memories(mind, a_memory(other, type=MemoryType.SEMANTIC), *rest)
    assert (again.stored, again.ids[0] in again.reinforced) == (1, False)
    assert len(memories_of(mind)) == beside + 2


def test_an_event_and_a_fact_of_the_same_words_are_two_memories(mind: Agent) -> None:
    event = store_memories(mind, a_memory("The lock opens to the left."))
    fact = store_memories(
        mind, a_memory("The lock opens to the left.", type=MemoryType.SEMANTIC, detail={"page": 7})
    )
    assert fact.stored == 1
    assert fact.ids != event.ids
    assert {row.type: row.detail for row in memories_of(mind)} == {"episodic": {}, "semantic": {"page": 7}}
    assert (
        store_memories(mind, a_memory("The lock opens to the left.", type=MemoryType.SEMANTIC)).ids
        == fact.ids
    )
    turn = a_memory("The lock opens to the left.", session="talk")
    stored = store_memories(mind, turn, replace(turn, type=MemoryType.SEMANTIC))
    assert stored.stored == 2


def test_the_same_words_at_another_time_are_another_event(mind: Agent) -> None:
    days = [a_memory("The ferry was late.", occurred_at=NOON + timedelta(days=day)) for day in (0, 1, 2)]
    first = store_memories(mind, days[0])
    more = store_memories(mind, *days[1:])
    assert (first.stored, more.stored) == (1, 2)
    assert [row.position for row in memories_of(mind)] == [0, 1, 2]
    again = store_memories(mind, *reversed(days))
    assert again.ids == (more.ids[1], more.ids[0], first.ids[0])
    assert again.stored == 0


@pytest.mark.parametrize(
    "parts",
    [
        {"detail": {"action": "shouted"}},
        {"detail": {"result": "silence"}},
        {"detail": {"emotion": {"label": "joy"}}},
        {"emotional_valence": 0.5},
    ],
)
def test_events_whose_details_disagree_are_two(mind: Agent, parts: dict[str, Any]) -> None:
    detail = {"action": "asked", "result": "laughter", "emotion": {"label": "shame"}}
    store_memories(mind, a_memory("I went to the harbour.", detail=detail, emotional_valence=-0.4))
    assert store_memories(mind, a_memory("I went to the harbour.", **parts)).stored == 1


def test_a_duplicate_fills_missing_details(mind: Agent) -> None:
    store_memories(mind, a_memory("I went to the harbour.", detail={"action": "asked"}))
    again = store_memories(
        mind, a_memory("I went to the harbour.", detail={"result": "laughter"}, emotional_valence=-0.4)
    )
    assert again.stored == 0
    (row,) = memories_of(mind)
    assert row.detail == {"action": "asked", "result": "laughter"}
    assert row.emotional_valence == -0.4


@pytest.mark.parametrize(
    ("reference", "trust", "left"),
    [
        # The same source again, in another spelling too, undoes nothing.
        ("agent:ada", 0.8, 0.415),
        ("Agent:ADA", 1.0, 0.415),
        # Another source counts as far as it is trusted itself.
        ("vega", 0.2, 0.415),
        ("user", 0.7, 0.745),
    ],
)
def test_doubt_is_not_undone_by_the_same_source(
    mind: Agent, reference: str, trust: float, left: float
) -> None:
    def fact(reference: str, trust: float, **parts: Any) -> NewMemory:
        detail = {"sources": [{"kind": "heartbeat", "reference": reference, "trust": trust}], **parts}
        return a_memory("The ice holds.", type=MemoryType.SEMANTIC, detail=detail)

    (first,) = store_memories(mind, fact("agent:ada", 0.8)).ids
    with tenant_transaction(mind.tenant_id):
        assert halve_trust(agent_id=mind.id, memory_id=first, reason="so", actor="test") == pytest.approx(
            0.415
        )
    for parts in ({}, {"category": "ice"}, {"confidence": 1.0}):
        assert store_memories(mind, fact(reference, trust, **parts)).stored == 0
    (row,) = memories_of(mind)
    assert row.trust == pytest.approx(left)


def test_wordings_beyond_the_limit_are_counted(mind: Agent) -> None:
    store_with(mind, unit_vectors(1.0), a_memory("The ice holds"))
    dots = [a_memory("The ice holds" + "." * number) for number in range(1, MAX_WORDINGS + 3)]
    store_with(mind, unit_vectors(*[1.0] * len(dots)), *dots)
    (row,) = memories_of(mind)
    assert len(row.detail["wordings"]) == MAX_WORDINGS
    assert row.detail["wordings_more"] == 2
    with tenant_transaction(mind.tenant_id):
        event = AuditEvent.objects.get(action=AuditAction.TRUNCATED)
    assert event.detail == {"memories": {str(row.id): 2}}


def test_comparing_many_memories_takes_few_statements(mind: Agent, statements: list[str]) -> None:
    known = [a_memory(f"The buoy number {number} is red.", type=MemoryType.SEMANTIC) for number in range(50)]
    store_memories(mind, *known)
    embed_texts(tenant_id=mind.tenant_id, texts=[f"buoy number {number} is red!" for number in range(50)])
    statements.clear()
    again = store_memories(mind, *(replace(memory, content=memory.content[4:-1] + "!") for memory in known))
    assert (again.stored, len(again.reinforced)) == (0, 50)
    assert len(statements) <= 12, "\n".join(statements)
