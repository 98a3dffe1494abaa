"""Exact recall: equal to brute-force scoring, and read from the index alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.memories.services.recall import scan
from apps.memories.services.recall.packed_rows import fetch_packed
from apps.memories.services.recall.recaller import Recaller, recall
from apps.memories.services.store.remember import store
from apps.tenants.scope import APP, tenant_transaction
from arbor.memory.recall.recall_request import EVERYTHING, RecallFilter, RecallRequest, SessionLimit
from arbor.memory.values import MemoryType, NewMemory, Recalled
from tests.integration.memories.conftest import turns
from tests.integration.memories.in_scope import recall_in_scope
from tests.integration.memories.recall.brute_force import read_mind, recall_slowly
from tests.integration.memories.recall.cache_and_scan import caching, recall_both_ways, scanning
from tests.integration.memories.recall.random_minds import (
    NOW,
    QUERIES,
    WORDS,
    populate,
    random_memories,
    random_vectors,
)


def assert_same(recalled: Sequence[Recalled], expected: Sequence[Any]) -> None:
    """Compare a recall with the expected one; scores that are equal but for rounding may change places."""
    assert len(recalled) == len(expected)
    np.testing.assert_allclose(
        [memory.score for memory in recalled], [memory.score for memory in expected], atol=2e-4
    )
    expected_by_id = {memory.id: memory for memory in expected}
    lowest = expected[-1].score if expected else 0.0
    for memory in recalled:
        twin = expected_by_id.get(memory.id)
        if twin is None:
            assert memory.score == pytest.approx(lowest, abs=2e-4)
            continue
        for name, value in memory.terms.as_dict().items():
            assert value == pytest.approx(getattr(twin.terms, name), abs=2e-4), (name, memory.content)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [1, 9, 55, 400])
def test_recall_equals_scoring_every_memory(mind: Agent, other_mind: Agent, seed: int, count: int) -> None:
    chance = random.Random(seed * 1000 + count)
    populate(mind, chance, count)
    populate(other_mind, chance, 30)
    stored = read_mind(mind)
    for text in QUERIES:
        vector = random_vectors(chance, 1)[0].tolist() if chance.random() < 0.8 else None
        for limit in (1, 10, 100):
            options: dict[str, Any] = {"limit": limit, "now": NOW, "mood": chance.choice([None, -1.0, 0.4])}
            with tenant_transaction(mind.tenant_id):
                request = RecallRequest(agent_id=mind.id, text=text, vector=vector, **options)
                answers = recall_both_ways(request)
            expected = recall_slowly(stored, text, vector, **options)
            for recalled in answers:
                assert_same(recalled, expected)


def test_recall_without_a_session_equals_scoring_all_others(mind: Agent) -> None:
    chance = random.Random(7)
    populate(mind, chance, 200)
    vector = random_vectors(chance, 1)[0].tolist()
    without: dict[str, Any] = {
        "limit": 20,
        "now": NOW,
        "only": RecallFilter(without_session="session 3"),
    }
    with tenant_transaction(mind.tenant_id):
        request = RecallRequest(agent_id=mind.id, text=QUERIES[1], vector=vector, **without)
        recalled, _ = recall_both_ways(request)
    assert recalled
    assert "session 3" not in {memory.session for memory in recalled}
    assert_same(recalled, recall_slowly(read_mind(mind), QUERIES[1], vector, **without))


@pytest.mark.parametrize(
    "only",
    [
        RecallFilter(since=NOW - timedelta(days=90), until=NOW - timedelta(days=20)),
        RecallFilter(session="session 3"),
        RecallFilter(min_importance=0.9),
        RecallFilter(min_trust=0.5, without_session="session 3"),
        RecallFilter(without_session="session 3", without_since=NOW - timedelta(days=20)),
        RecallFilter(types=frozenset({MemoryType.EPISODIC}), since=NOW - timedelta(days=5)),
        RecallFilter(types=frozenset({MemoryType.SEMANTIC})),
    ],
)
def test_a_filtered_recall_equals_scoring_memories_that_pass(mind: Agent, only: RecallFilter) -> None:
    chance = random.Random(8)
    populate(mind, chance, 300)
    stored = read_mind(mind)
    for vector in (random_vectors(chance, 1)[0].tolist(), None):
        for limit in (5, 60):
            options: dict[str, Any] = {"vector": vector, "limit": limit, "now": NOW, "only": only}
            with tenant_transaction(mind.tenant_id):
                answers = recall_both_ways(RecallRequest(agent_id=mind.id, text=QUERIES[1], **options))
            expected = recall_slowly(stored, QUERIES[1], vector, limit=limit, now=NOW, only=only)
            for recalled in answers:
                assert_same(recalled, expected)


@pytest.mark.parametrize(
    ("most", "only"), [(1, EVERYTHING), (4, RecallFilter(min_trust=0.5)), (40, EVERYTHING)]
)
def test_a_session_limit_equals_scoring_every_memory(mind: Agent, most: int, only: RecallFilter) -> None:
    chance = random.Random(most)
    populate(mind, chance, 300)
    with tenant_transaction(mind.tenant_id):
        # A third of the mind is of one session, which fits some queries best.
        own = turns(*(f"{QUERIES[1]} {QUERIES[2]} Part {number}." for number in range(150)), session="own")
        store(agent_id=mind.id, memories=own, vectors=random_vectors(chance, 150))
    stored = read_mind(mind)
    for text in QUERIES:
        vector = random_vectors(chance, 1)[0].tolist() if chance.random() < 0.7 else None
        options: dict[str, Any] = {
            "limit": chance.choice([10, 100]),
            "now": NOW,
            "only": only,
            "session_limit": SessionLimit(session="own", most=most),
        }
        expected = recall_slowly(stored, text, vector, **options)
        request = RecallRequest(agent_id=mind.id, text=text, vector=vector, **options)
        for way in (caching, scanning):
            with tenant_transaction(mind.tenant_id), way():
                (recalled,) = Recaller().recall([request])
            assert_same(recalled, expected)
            assert sum(memory.session == "own" for memory in recalled) <= most


def test_a_limited_session_does_not_crowd_out_the_rest(mind: Agent) -> None:
    memories = turns(*(f"The lighthouse needs paint, part {number}." for number in range(6)))
    own = turns(
        *(f"I thought of the lighthouse and its paint, {number}." for number in range(200)),
        session="heartbeats",
    )
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=[*own, *memories], vectors=random_vectors(random.Random(3), 206))
    # A transaction that has written memories does not load the mind.
    with tenant_transaction(mind.tenant_id):
        recalled, _ = recall_both_ways(
            RecallRequest(
                agent_id=mind.id,
                text="I thought of the lighthouse",
                limit=9,
                now=NOW,
                session_limit=SessionLimit(session="heartbeats", most=3),
            )
        )
    own_recalled, others = recalled[:3], recalled[3:]
    assert {memory.session for memory in own_recalled} == {"heartbeats"}
    assert sorted(memory.content for memory in others) == sorted(memory.content for memory in memories)


def test_a_scan_with_a_session_limit_is_one_statement(mind: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, runs = random.Random(5), list[str]()
    own = turns(*(" ".join(chance.choices(WORDS, k=6)) for _ in range(1_800)), session="own")
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=own, vectors=random_vectors(chance, len(own)))
    populate(mind, chance, 200)

    def count_run(statement: str, **values: Any) -> Any:
        runs.append(statement)
        return fetch_packed(statement, **values)

    monkeypatch.setattr(scan, "fetch_packed", count_run)
    options: dict[str, Any] = {"now": NOW, "session_limit": SessionLimit(session="own", most=3)}
    for text in QUERIES:
        vector = random_vectors(chance, 1)[0].tolist()
        with tenant_transaction(mind.tenant_id), scanning():
            Recaller().recall([RecallRequest(agent_id=mind.id, text=text, vector=vector, **options)])
    assert len(runs) == len(QUERIES)


def test_an_excluded_session_does_not_crowd_out_the_rest(mind: Agent) -> None:
    memories = turns(*(f"The lighthouse needs paint, part {number}." for number in range(6)))
    own = turns(
        *(f"I thought of the lighthouse and its paint, {number}." for number in range(200)),
        session="heartbeats",
    )
    chance = random.Random(3)
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=[*own, *memories], vectors=random_vectors(chance, 206))
    with tenant_transaction(mind.tenant_id):
        recalled, _ = recall_both_ways(
            RecallRequest(
                agent_id=mind.id,
                text="I thought of the lighthouse",
                limit=6,
                now=NOW,
                only=RecallFilter(without_session="heartbeats"),
            )
        )
    assert sorted(memory.content for memory in recalled) == sorted(memory.content for memory in memories)


def test_an_unrepresentative_sample_loses_no_memory(mind: Agent, statements: list[str]) -> None:
    # The first memories, which make the sample, match far better than all others.
    chance = random.Random(5)
    vector = random_vectors(chance, 1)
    near = vector + 0.2 * random_vectors(chance, 150)
    far = random_vectors(chance, 1350)
    rows = np.concatenate([near / np.linalg.norm(near, axis=1, keepdims=True), far])
    memories = [
        replace(
            memory, content=f"lantern bridge {place}." if place < 150 else memory.content, expires_at=None
        )
        for place, memory in enumerate(random_memories(chance, 1500))
    ]
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=memories, vectors=rows[: len(memories)])
        stored = read_mind(mind)
        for limit in (10, 100):
            statements.clear()
            options: dict[str, Any] = {"limit": limit, "now": NOW}
            with scanning():
                recalled = recall_in_scope(
                    agent_id=mind.id, text="bridge", vector=vector[0].tolist(), **options
                )
            assert_same(recalled, recall_slowly(stored, "bridge", vector[0].tolist(), **options))
            scans = [statement for statement in statements if statement.lstrip().startswith("WITH asked AS")]
            assert len(scans) == 2


# --- The plan ----------------------------------------------------------------------------------------


@contextmanager
def collected_plans() -> Iterator[list[dict[str, Any]]]:
    """Collect the plan of each scan of the mind, as the application's role runs it."""
    plans: list[dict[str, Any]] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().startswith("WITH asked AS"):
            execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params, many, context)
            plans.append(context["cursor"].fetchone()[0][0]["Plan"])
        return execute(sql, params, many, context)

    with connections[APP].execute_wrapper(explain):
        yield plans


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def scan_of_the_mind(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the node that reads all of the memories."""
    (part,) = [node for node in nodes(plan) if node.get("Subplan Name") == "CTE scored"]
    (scan,) = [node for node in nodes(part) if node.get("Relation Name") == "memories_memory"]
    return scan


def test_the_scan_reads_only_the_index_under_row_security(
    mind: Agent, other_mind: Agent, foreign_mind: Agent, vacuum: Callable[[], None]
) -> None:
    chance = random.Random(11)
    for agent in (mind, other_mind, foreign_mind):
        populate(agent, chance, 700)
    vacuum()
    with connections[APP].cursor() as cursor:
        cursor.execute(
            "SELECT current_user = tableowner, rowsecurity, relforcerowsecurity, rolsuper, rolbypassrls"
            " FROM pg_tables JOIN pg_class ON relname = tablename JOIN pg_roles ON rolname = current_user"
            " WHERE tablename = 'memories_memory'"
        )
        assert cursor.fetchone() == (False, True, True, False, False)
    with collected_plans() as plans, scanning():
        recall(
            tenant_id=mind.tenant_id, request=RecallRequest(agent_id=mind.id, text="the ferry in the storm")
        )
        with tenant_transaction(mind.tenant_id):
            own_past = RecallFilter(without_session="heartbeats", without_since=NOW)
            recall_in_scope(agent_id=mind.id, text="tide", vector=None, limit=5, only=own_past)
            limited = SessionLimit(session="session 3", most=2)
            Recaller().recall([RecallRequest(agent_id=mind.id, text="tide", session_limit=limited)])
    assert len(plans) == 3
    for plan in plans:
        scan = scan_of_the_mind(plan)
        assert (scan["Node Type"], scan["Index Name"]) == ("Index Only Scan", "memories_memory_mind")
        assert scan["Heap Fetches"] == 0
        assert scan["Actual Rows"] > 300


def test_recalling_causes_no_heap_fetches(
    mind: Agent, other_mind: Agent, foreign_mind: Agent, vacuum: Callable[[], None]
) -> None:
    for agent in (mind, other_mind, foreign_mind):
        populate(agent, random.Random(12), 700)
    vacuum()
    for text in QUERIES:
        recall(tenant_id=mind.tenant_id, request=RecallRequest(agent_id=mind.id, text=text), counts=True)
    with collected_plans() as plans, scanning():
        recall(tenant_id=mind.tenant_id, request=RecallRequest(agent_id=mind.id, text="tide"))
    assert scan_of_the_mind(plans[0])["Heap Fetches"] == 0


def test_the_longest_session_and_terms_fit_into_the_index(mind: Agent) -> None:
    text = " ".join(f"word{number}" for number in range(400))
    chance = random.Random(13)
    memory = NewMemory(content=text, occurred_at=NOW, session="🌲" * 100, role="🌲" * 100, expires_at=NOW)
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=[memory], vectors=random_vectors(chance, 1))
        assert Memory.objects.filter(agent_id=mind.id).count() == 1
