"""Explanations of recalls: the rank of a memory with its score components, or the reason why it is not recalled."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.memories.services.recall.explanation import Explanation, explain_recall
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.ids import uuid7
from arbor.memory.recall.fusion import SEEDS
from arbor.memory.recall.recall_request import EVERYTHING, RecallFilter, RecallRequest
from arbor.memory.values import MemoryType
from tests.factories.memories import ClusterFactory, ConceptFactory, EpisodeFactory
from tests.integration.memories.conftest import NOON, a_memory

QUERY = "When does the quince bloom?"
TARGET = "The quince blooms in May."
#: Texts beside the target, from the best match to the worst.
OTHERS = ("When the quince blooms, bees come.", "A quince is yellow.", "Chess is played on Sundays.")


@pytest.fixture
def ids(mind: Agent) -> dict[str, UUID]:
    """Return the ids of the agent's memories by their texts."""
    memories = [
        a_memory(text, type=MemoryType.SEMANTIC, importance=0.5, trust=0.5, session="garden")
        for text in (TARGET, *OTHERS)
    ]
    stored = remember(tenant_id=mind.tenant_id, agent_id=mind.id, memories=memories).ids
    return dict(zip((TARGET, *OTHERS), stored, strict=True))


def explain(
    agent: Agent, memory_id: UUID, *, only: RecallFilter = EVERYTHING, limit: int = 10
) -> Explanation:
    request = RecallRequest(agent_id=agent.id, text=QUERY, limit=limit, only=only)
    with tenant_transaction(agent.tenant_id):
        return explain_recall(tenant_id=agent.tenant_id, request=request, absent=memory_id)


def reasons(explanation: Explanation) -> tuple[str, ...]:
    assert explanation.absence is not None
    return explanation.absence.reasons


def test_a_recalled_memory_has_its_rank_and_score_components(mind: Agent, ids: dict[str, UUID]) -> None:
    ranking = [memory.id for memory in explain(mind, ids[TARGET]).recalled]
    for place, memory_id in enumerate(ranking, start=1):
        explanation = explain(mind, memory_id)
        assert reasons(explanation) == (f"it is recalled, as number {place}",)
        assert explanation.absence is not None
        components = explanation.absence.components
        assert components is not None
        assert sum(components.as_dict().values()) == pytest.approx(explanation.recalled[place - 1].score)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_an_outranked_memory_has_its_place_and_the_cut(mind: Agent, ids: dict[str, UUID], limit: int) -> None:
    explanation = explain(mind, ids[OTHERS[-1]], only=RecallFilter(session="garden"), limit=limit)
    assert explanation.absence is not None
    assert explanation.absence.components is not None
    own, least = explanation.absence.components.total, explanation.recalled[-1].score
    assert reasons(explanation) == (
        f"it is outranked by 3: its score is {own:.2f}, and the last of the {limit} shown has {least:.2f};"
        f" ask for more than {limit}",
    )


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"status": "archived"}, "it is archived; restore it to have it recalled"),
        ({"expires_at": NOON}, "it has expired"),
        ({"expires_at": None}, "it is recalled, as number 1"),
    ],
)
def test_archived_and_expired_memories_have_that_reason(
    mind: Agent, ids: dict[str, UUID], changed: dict[str, Any], reason: str
) -> None:
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=ids[TARGET]).update(**changed)
    assert reasons(explain(mind, ids[TARGET])) == (reason,)


@pytest.mark.parametrize(
    ("only", "reason"),
    [
        (
            RecallFilter(types=frozenset({MemoryType.EPISODIC})),
            "it is semantic, and the filter asks for episodic",
        ),
        (RecallFilter(min_importance=0.9), "its importance is 0.50, below 0.9"),
        (RecallFilter(min_trust=0.99), "its trust is 0.50, below 0.99"),
        (RecallFilter(since=NOON + timedelta(days=1)), "it is older than the filter allows"),
        (RecallFilter(until=NOON), "it is later than the filter allows"),
        (RecallFilter(session="talk"), "it is not of the session that the filter asks for"),
    ],
)
def test_filtered_memories_name_the_filter(
    mind: Agent, ids: dict[str, UUID], only: RecallFilter, reason: str
) -> None:
    (given,) = reasons(explain(mind, ids[TARGET], only=only))
    assert given.startswith(reason)


@pytest.mark.parametrize("group", ["concept", "cluster", "episode"])
def test_filters_by_groups_are_named(mind: Agent, ids: dict[str, UUID], group: str) -> None:
    with tenant_transaction(mind.tenant_id):
        only = {
            "concept": lambda: RecallFilter(concept=ConceptFactory.create(agent=mind).id),
            "cluster": lambda: RecallFilter(cluster=ClusterFactory.create(agent=mind).name),
            "episode": lambda: RecallFilter(episode=EpisodeFactory.create(agent=mind).id),
        }[group]()
    expected = (f"it is not of the {group} that the filter asks for",)
    assert reasons(explain(mind, ids[TARGET], only=only)) == expected


def test_a_memory_that_no_embedder_takes_has_that_reason(mind: Agent, ids: dict[str, UUID]) -> None:
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=ids[TARGET]).update(
            embedding=None, embedding_model="refused: fake", expires_at=datetime.now(UTC) - timedelta(days=1)
        )
    assert reasons(explain(mind, ids[TARGET])) == (
        "it has expired",
        "its embedder cannot embed it, so that only its words can match",
    )


def test_a_memory_without_a_vector_has_that_reason(mind: Agent, settings: Any) -> None:
    settings.ARBOR_EMBED_AT_STORAGE = "never"
    (stored,) = remember(tenant_id=mind.tenant_id, agent_id=mind.id, memories=[a_memory(TARGET)]).ids
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=stored).update(expires_at=datetime.now(UTC) - timedelta(days=1))
    assert reasons(explain(mind, stored)) == (
        "it has expired",
        "it is not embedded yet, so that only its words can match",
    )


def test_a_memory_among_many_of_its_moment_is_scored(mind: Agent) -> None:
    memories = [
        a_memory(f"Game {number} of chess was a draw.", session="chess", position=number)
        for number in range(3 * SEEDS)
    ]
    stored = remember(tenant_id=mind.tenant_id, agent_id=mind.id, memories=memories).ids
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id__in=stored).update(occurred_at=NOON)
    for explanation in (explain(mind, memory_id, limit=1) for memory_id in (stored[0], stored[-1])):
        assert explanation.absence is not None
        assert explanation.absence.components is not None


def test_a_memory_of_the_last_moment_is_explained(mind: Agent, ids: dict[str, UUID]) -> None:
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=ids[TARGET]).update(occurred_at=datetime.max.replace(tzinfo=UTC))
    for only in (EVERYTHING, RecallFilter(session="another")):
        absence = explain(mind, ids[TARGET], only=only).absence
        assert absence is not None
        assert absence.components is not None


def test_foreign_memories_are_as_unknown_as_missing_ones(
    mind: Agent, other_mind: Agent, foreign_mind: Agent, ids: dict[str, UUID]
) -> None:
    foreign = [
        remember(tenant_id=owner.tenant_id, agent_id=owner.id, memories=[a_memory(TARGET)]).ids[0]
        for owner in (other_mind, foreign_mind)
    ]
    missing = uuid7()
    unknown = explain(mind, missing).absence
    assert unknown is not None
    assert unknown.reasons == ("this agent has no memory with that id",)
    for memory_id in foreign:
        absence = explain(mind, memory_id).absence
        assert absence is not None
        assert replace(absence, memory_id=missing) == unknown
