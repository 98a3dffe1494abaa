"""The results of recall, its exclusions, and its writes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.memories.models import Cluster, ClusterMember, Concept, Memory, MemoryAccess, MemoryConcept
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.recall.activation import record_recall
from apps.memories.services.recall.recaller import recall
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, TenantRequired
from arbor.memory.recall.recall_request import MAX_LIMIT, QUERY_LENGTH, RecallFilter, RecallRequest
from arbor.memory.values import MemoryStatus, Recalled
from tests.integration.memories.conftest import NOON, a_memory, access_counts, at_once, memories_of, turns
from tests.integration.memories.in_scope import recall_in_scope
from tests.integration.memories.recall.cache_and_scan import caching, scanning
from tests.support.embedders import RemoteEmbedder
from tests.support.memories import TALK, store_memories


def find(agent: Agent, text: str, *, counts: bool = False, **options: Any) -> list[Recalled]:
    request = RecallRequest(agent_id=agent.id, text=text, **options)
    return recall(tenant_id=agent.tenant_id, request=request, counts=counts)


# --- Results -----------------------------------------------------------------------------------------


def test_the_best_match_comes_first_with_its_score_components(mind: Agent) -> None:
    store_memories(
        mind, *turns(*TALK), *turns("The library closes early today.", session="other", role="Grace")
    )
    recalled = find(mind, "What colour is Ada's boat?")
    assert recalled[0].content == "What colour?"
    answer = next(memory.components for memory in recalled if memory.content == TALK[3])
    assert answer.neighbours > answer.words
    assert answer.speaker > 0
    assert recalled[-1].content == "The library closes early today."
    for memory in recalled:
        assert memory.score == pytest.approx(sum(memory.components.as_dict().values()))
    assert [memory.score for memory in recalled] == sorted(
        (memory.score for memory in recalled), reverse=True
    )


def test_a_recalled_memory_has_all_its_fields(mind: Agent) -> None:
    store_memories(mind, *turns(*TALK))
    best = find(mind, "coats of paint for the hull", limit=1)[0]
    stored = next(memory for memory in memories_of(mind) if "coats" in memory.content)
    assert (best.id, best.type, best.content) == (stored.id, stored.type, stored.content)
    assert (best.role, best.session, best.occurred_at, best.importance) == (
        "Ada",
        "talk",
        NOON + timedelta(minutes=1),
        0.5,
    )


def test_the_limit_is_filled_when_the_agent_remembers_enough(mind: Agent) -> None:
    store_memories(mind, *(a_memory(f"Stone number {number}.") for number in range(150)))
    for limit in (1, 7, 60, 120, 150):
        assert len(find(mind, "something else entirely", limit=limit)) == limit
    assert len(find(mind, "something else entirely", limit=MAX_LIMIT)) == 150


def test_the_latest_memories_fill_the_limit(mind: Agent, remote: RemoteEmbedder) -> None:
    remote.away = True
    store_memories(mind, *(a_memory(f"Stone {n}.", occurred_at=NOON - timedelta(days=n)) for n in range(30)))
    recalled = find(mind, "the ferry", limit=5)
    assert [memory.content for memory in recalled] == [f"Stone {n}." for n in range(5)]


def test_a_concept_filter_includes_narrower_concepts(mind: Agent) -> None:
    store_memories(mind, *turns("The oak is old.", "The tulip is red.", "The boat is green."))
    oak, tulip, _ = memories_of(mind)
    with tenant_transaction(mind.tenant_id):
        plant = Concept.objects.create(tenant_id=mind.tenant_id, agent_id=mind.id, name="Plant", key="plant")
        tree = Concept.objects.create(
            tenant_id=mind.tenant_id,
            agent_id=mind.id,
            name="Tree",
            key="tree",
            parent=plant,
            ancestors=[str(plant.id)],
        )
        for concept, memory in ((tree, oak), (plant, tulip)):
            MemoryConcept.objects.create(tenant_id=mind.tenant_id, concept_id=concept.id, memory_id=memory.id)

    def contents_of(concept: Any) -> set[str]:
        return {memory.content for memory in find(mind, "the boat", only=RecallFilter(concept=concept))}

    assert contents_of("Plant") == contents_of(plant.id) == {"The oak is old.", "The tulip is red."}
    assert contents_of("tree") == contents_of(tree.id) == {"The oak is old."}
    assert contents_of("river") == set()


def test_only_memories_of_a_cluster_are_recalled(mind: Agent) -> None:
    store_memories(mind, *turns("The oak is old.", "The tulip is red.", "The boat is green."))
    oak, tulip, _ = memories_of(mind)
    with tenant_transaction(mind.tenant_id):
        garden = Cluster.objects.create(tenant_id=mind.tenant_id, agent_id=mind.id, name="Garden, trees")
        for memory in (oak, tulip):
            ClusterMember.objects.create(
                tenant_id=mind.tenant_id, cluster_id=garden.id, memory_id=memory.id, strength=0.5
            )

    def found(cluster: Any) -> set[str]:
        return {memory.content for memory in find(mind, "the boat", only=RecallFilter(cluster=cluster))}

    assert found(garden.id) == found("garden,  TREES") == {"The oak is old.", "The tulip is red."}
    assert found("river") == set()


@pytest.mark.parametrize("now", [datetime.min, datetime.max])  # noqa: DTZ901
@pytest.mark.parametrize("text", ["the boat last week", "the boat 99 years ago"])
def test_a_clock_that_is_far_out_recalls_the_same(mind: Agent, now: datetime, text: str) -> None:
    store_memories(mind, *turns("The boat is green.", "The oak is old."))
    assert {memory.content for memory in find(mind, text, now=now.replace(tzinfo=UTC))} == {
        "The boat is green.",
        "The oak is old.",
    }
    with pytest.raises(Invalid, match="now must have a time zone"):
        find(mind, text, now=now)


@pytest.mark.parametrize("moment", [datetime.min, datetime.max])  # noqa: DTZ901
def test_a_filter_accepts_any_moment(mind: Agent, moment: datetime) -> None:
    store_memories(mind, *turns("The boat is green."))
    at = moment.replace(tzinfo=UTC)
    assert len(find(mind, "boat", only=RecallFilter(since=at))) == (moment == datetime.min)  # noqa: DTZ901
    assert len(find(mind, "boat", only=RecallFilter(until=at))) == (moment == datetime.max)  # noqa: DTZ901


def test_only_memories_of_an_episode_are_recalled(mind: Agent) -> None:
    store_memories(mind, *turns("The oak is old."), *turns("The tulip is red.", session="other"))
    oak, _ = memories_of(mind)
    assert oak.episode_id is not None
    recalled = find(mind, "the tulip", only=RecallFilter(episode=oak.episode_id))
    assert [memory.content for memory in recalled] == ["The oak is old."]


def test_an_agent_without_memories_recalls_nothing(mind: Agent) -> None:
    assert find(mind, "anything at all?") == []


def test_a_name_that_is_a_common_word_can_be_asked_for(mind: Agent) -> None:
    store_memories(mind, *turns("I sold the violin.", role="Will"), *turns("I kept the piano.", role="May"))
    recalled = find(mind, "What did Will do?")
    assert recalled[0].role == "Will"
    assert recalled[0].components.speaker > 0


def test_a_time_in_the_query_prefers_memories_of_that_time(mind: Agent) -> None:
    store_memories(
        mind,
        a_memory("We walked along the dike.", occurred_at=datetime(2023, 6, 3, tzinfo=UTC)),
        a_memory("We walked through the wood.", occurred_at=datetime(2023, 11, 20, tzinfo=UTC)),
    )
    assert find(mind, "Where did we walk in June 2023?", limit=1)[0].content == "We walked along the dike."
    assert find(mind, "Where did we walk in November 2023?", limit=1)[0].content.endswith("the wood.")


def test_without_an_embedder_words_alone_decide(mind: Agent, remote: RemoteEmbedder) -> None:
    remote.away = True
    store_memories(mind, *turns(*TALK))
    recalled = find(mind, "paint brushes")
    assert {recalled[0].content, recalled[1].content} == {TALK[1], TALK[4]}
    assert all(memory.components.meaning == 0 for memory in recalled)


# --- Exclusions --------------------------------------------------------------------------------------


def test_expired_and_archived_memories_are_not_recalled(mind: Agent) -> None:
    store_memories(
        mind,
        *turns("The safe opens with 4711.", "Nobody else knows it."),
        a_memory("The safe opens with 1.", session="talk", position=2, role="Ada", expires_at=NOON),
    )
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(position=0).update(status=MemoryStatus.ARCHIVED)
    recalled = find(mind, "How does the safe open?")
    assert [memory.content for memory in recalled] == ["Nobody else knows it."]
    assert recalled[0].components.neighbours == 0


def test_a_memory_is_recalled_until_its_time_is_over(mind: Agent) -> None:
    store_memories(mind, a_memory("The ferry is cancelled.", expires_at=NOON + timedelta(hours=1)))
    assert len(find(mind, "ferry", now=NOON + timedelta(minutes=59))) == 1
    assert find(mind, "ferry", now=NOON + timedelta(minutes=61)) == []


def test_only_the_agents_own_memories_are_recalled(
    mind: Agent, other_mind: Agent, foreign_mind: Agent
) -> None:
    for agent, place in ((mind, "here"), (other_mind, "there"), (foreign_mind, "elsewhere")):
        store_memories(agent, *turns(f"The treasure is buried {place}.", f"I dug {place}."))
    for agent, place in ((mind, "here"), (other_mind, "there"), (foreign_mind, "elsewhere")):
        assert {memory.content for memory in find(agent, "Where is the treasure buried?", limit=200)} == {
            f"The treasure is buried {place}.",
            f"I dug {place}.",
        }


def test_another_tenants_agent_has_no_memories_here(mind: Agent, foreign_mind: Agent) -> None:
    store_memories(foreign_mind, a_memory("The treasure is buried elsewhere."))
    assert (
        recall(tenant_id=mind.tenant_id, request=RecallRequest(agent_id=foreign_mind.id, text="treasure"))
        == []
    )


def test_recalling_without_a_tenant_is_refused(mind: Agent) -> None:
    with pytest.raises(TenantRequired):
        recall_in_scope(agent_id=mind.id, text="Whose?", vector=None, limit=1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a query is 1 to 4000 characters"),
        (" \n ", "not white space alone"),
        ("x" * (QUERY_LENGTH + 1), "got 4001"),
        ("a\0b", "a query must not contain a NUL character"),
        ("a\ud800b", "or half a surrogate pair"),
    ],
)
def test_a_query_that_cannot_be_answered_is_refused(mind: Agent, text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        find(mind, text)


@pytest.mark.parametrize("limit", [0, -1, MAX_LIMIT + 1])
def test_a_limit_out_of_range_is_refused(mind: Agent, limit: int) -> None:
    with pytest.raises(Invalid, match=f"1 to 200 memories, asked for {limit}"):
        find(mind, "anything", limit=limit)


@pytest.mark.parametrize(
    "text",
    [
        "'; DROP TABLE memories_memory; --",
        "100 %s of %(agent)s {0} {1:2}/3",
        "\\ \\x00 $$ E'\\''",
        "🌲 森 لا \u202e",
        "…?!",
        "the of and",
        "x" * QUERY_LENGTH,
    ],
)
def test_any_text_is_a_query(mind: Agent, text: str) -> None:
    store_memories(mind, *turns(*TALK))
    assert len(find(mind, text)) == len(TALK)


# --- Writes of a recall ------------------------------------------------------------------------------


def test_a_recall_by_a_person_writes_no_row(mind: Agent, statements: list[str]) -> None:
    store_memories(mind, *turns(*TALK))
    before = [(row.id, row.status, row.importance) for row in memories_of(mind)]
    statements.clear()
    find(mind, "the boat")
    assert not [
        statement
        for statement in statements
        if not statement.lstrip().startswith(("SELECT", "WITH asked", "WITH moment"))
    ]
    assert access_counts(mind) == {}
    assert [(row.id, row.status, row.importance) for row in memories_of(mind)] == before


def test_the_agents_own_recall_counts_its_results(mind: Agent) -> None:
    store_memories(mind, *turns(*TALK))
    first = find(mind, "the colour of the boat", limit=2, counts=True)
    find(mind, "the colour of the boat", limit=2, counts=True)
    find(mind, "the colour of the boat", limit=5)
    assert access_counts(mind) == {memory.id: 2 for memory in first}
    with tenant_transaction(mind.tenant_id):
        last = MemoryAccess.objects.values_list("last_at", flat=True)
        assert all(moment and datetime.now(UTC) - moment < timedelta(minutes=1) for moment in last)


def test_a_recalled_memory_regains_its_recency(mind: Agent) -> None:
    store_memories(mind, *(a_memory(f"Lamp {number}.", session=str(number)) for number in range(2)))
    before = {memory.content: memory.components.recency for memory in find(mind, "lamp")}
    lamp_id = next(row.id for row in memories_of(mind) if row.content == "Lamp 1.")
    with tenant_transaction(mind.tenant_id):
        record_recall(agent_id=mind.id, recalled={lamp_id: 1.0})
    after = {memory.content: memory.components.recency for memory in find(mind, "lamp")}
    assert after["Lamp 0."] == pytest.approx(before["Lamp 0."], rel=1e-3)
    assert after["Lamp 1."] > before["Lamp 1."]


def test_concurrent_recalls_are_all_counted(mind: Agent) -> None:
    store_memories(mind, *turns(*TALK))
    ids = [row.id for row in memories_of(mind)]

    def work(worker: int) -> None:
        for _ in range(10):
            with tenant_transaction(mind.tenant_id):
                record_recall(agent_id=mind.id, recalled=dict.fromkeys(ids if worker % 2 else ids[::-1], 1.0))

    at_once(work, writers=6)
    assert access_counts(mind) == dict.fromkeys(ids, 60)


# --- Costs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("way", "count"), [(scanning, 3), (caching, 4)])
def test_counting_a_recall_takes_one_statement_more(
    mind: Agent, statements: list[str], way: Callable[[], AbstractContextManager[None]], count: int
) -> None:
    store_memories(mind, *turns(*(f"Wave {number} breaks." for number in range(300))))
    with way():
        find(mind, "Which waves break?")
        statements.clear()
        find(mind, "What did Ada say about wave 17 in March 2024?", limit=20)
        assert len(statements) == count
        statements.clear()
        find(mind, "What did Ada say about wave 17 in March 2024?", limit=20, counts=True)
        assert len(statements) == count + 1


def test_long_texts_are_recalled_whole(mind: Agent) -> None:
    long = "The lighthouse log. " + "Calm sea, light wind, é. " * 200
    store_memories(mind, *turns("Where is the lighthouse log?", long, "Thank you."))
    contents = {memory.content for memory in find(mind, "the lighthouse log")}
    assert contents == {"Where is the lighthouse log?", long, "Thank you."}


def test_no_transaction_is_open_while_the_query_is_embedded(mind: Agent, remote: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*TALK))
    find(mind, "a query that nobody has asked before")
    assert remote.asked[-1] == "a query that nobody has asked before"
    with tenant_transaction(mind.tenant_id), pytest.raises(RuntimeError, match="not inside it"):
        embed_texts(tenant_id=mind.tenant_id, texts=["inside"])


def test_a_query_is_embedded_without_the_names_of_speakers(mind: Agent, remote: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*TALK))
    find(mind, "What colour is Ada's boat?")
    assert remote.asked[-1] == "What colour is boat?"
