"""Score components that decide between equally fitting memories, from storage to the ranking."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.agents.models import Agent
from apps.memories.models import Activation, Memory, MemoryAccess, Upkeep
from apps.memories.services.recall.recaller import recall
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid
from arbor.memory.neighborhood import HIGHEST_WEIGHT
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.recall.weights import DEFAULT_WEIGHTS, parse_weights
from arbor.memory.values import MemoryStatus, Recalled
from tests.integration.memories.conftest import NOON, a_memory, memories_of
from tests.integration.memories.in_scope import recall_in_scope
from tests.support.memories import store_memories


def recall_text(agent: Agent, text: str, **options: Any) -> list[Recalled]:
    return recall(tenant_id=agent.tenant_id, request=RecallRequest(agent_id=agent.id, text=text, **options))


def recall_by_words(agent: Agent, text: str, **options: Any) -> list[Recalled]:
    """Recall without a vector: memories with the same words match equally."""
    with tenant_transaction(agent.tenant_id):
        return recall_in_scope(agent_id=agent.id, text=text, vector=None, **{"limit": 10, **options})


def set_neighbors(
    agent: Agent, source: Memory, targets: Mapping[UUID, float] | None, *, stale: bool = False
) -> None:
    neighbors = None if targets is None else {str(memory_id): weight for memory_id, weight in targets.items()}
    with tenant_transaction(agent.tenant_id):
        Upkeep.objects.filter(memory_id=source.id).update(neighbors=neighbors, stale=stale)


def test_an_activated_memory_comes_first_and_fades(mind: Agent) -> None:
    store_memories(mind, *(a_memory(f"Lamp {number}.", session=str(number)) for number in range(2)))
    _, other = memories_of(mind)
    now = datetime.now(UTC)
    assert [memory.components.activation for memory in recall_by_words(mind, "lamp")] == [0, 0]
    with tenant_transaction(mind.tenant_id):
        Activation.objects.create(
            tenant_id=mind.tenant_id,
            agent_id=mind.id,
            memory_id=other.id,
            level=0.8,
            at=now - timedelta(hours=1),
        )
    recalled = recall_by_words(mind, "lamp", now=now)
    assert recalled[0].id == other.id
    assert recalled[0].components.activation == pytest.approx(0.4 * DEFAULT_WEIGHTS.activation)
    assert recall_by_words(mind, "lamp", now=now + timedelta(days=1))[0].components.activation == 0


def test_memories_of_the_same_mood_come_first(mind: Agent) -> None:
    store_memories(
        mind,
        *(
            a_memory(f"Lamp {place}.", session=str(place), emotional_valence=felt)
            for place, felt in enumerate((0.6, -0.6))
        ),
    )
    assert [memory.content for memory in recall_by_words(mind, "lamp", mood=-1.0)] == ["Lamp 1.", "Lamp 0."]
    assert [memory.content for memory in recall_by_words(mind, "lamp", mood=0.5)] == ["Lamp 0.", "Lamp 1."]
    assert not any(memory.components.mood for memory in recall_by_words(mind, "lamp"))


@pytest.mark.parametrize("mood", [float("nan"), 1.5, -2.0])
def test_an_invalid_mood_is_refused(mind: Agent, mood: float) -> None:
    with pytest.raises(Invalid, match="a mood is a number from -1 to 1"):
        recall_text(mind, "lamp", mood=mood)


def test_a_reinforced_memory_comes_first(mind: Agent) -> None:
    store_memories(mind, *(a_memory(f"Lamp {number}.", session=str(number)) for number in range(2)))
    _, other = memories_of(mind)
    with tenant_transaction(mind.tenant_id):
        MemoryAccess.objects.create(tenant_id=mind.tenant_id, memory_id=other.id, reinforced=5)
    first, second = recall_by_words(mind, "lamp")
    assert first.id == other.id
    assert first.components.importance > second.components.importance
    # The stored importance is the same; the score includes the effect of use.
    assert first.importance == second.importance


def test_turns_of_the_episode_come_before_others_of_the_session(mind: Agent) -> None:
    utterances = [("A far walk.", 20, 180), ("A near walk.", 10, 5), ("The lamp on the dike.", 0, 0)]
    for text, position, minutes in utterances:
        store_memories(
            mind,
            a_memory(text, session="s", position=position, occurred_at=NOON + timedelta(minutes=minutes)),
        )
    assert [memory.content for memory in recall_by_words(mind, "lamp on the dike")] == [
        "The lamp on the dike.",
        "A near walk.",
        "A far walk.",
    ]


def test_a_neighborhood_adds_memories_that_match_no_word(mind: Agent, settings: Any) -> None:
    store_memories(mind, *(a_memory(f"Gull {number}.", session=f"g{number}") for number in range(160)))
    store_memories(
        mind, a_memory("The lighthouse keeper.", session="k"), a_memory("Fresh bread.", session="b")
    )
    *_, keeper, bread = memories_of(mind)
    old = memories_of(mind)[0]
    for stale in (False, True):
        set_neighbors(mind, keeper, {bread.id: HIGHEST_WEIGHT, old.id: HIGHEST_WEIGHT / 3}, stale=stale)
        recalled = recall_by_words(mind, "lighthouse keeper", limit=3)
        assert [memory.id for memory in recalled] == [keeper.id, bread.id, old.id]
        assert recalled[1].components.association == pytest.approx(
            recalled[0].components.words * DEFAULT_WEIGHTS.association
        )
        assert recalled[2].components.association == pytest.approx(recalled[1].components.association / 3)
    settings.ARBOR_RECALL_WEIGHTS = parse_weights("association=0")
    assert not any(
        memory.components.association for memory in recall_by_words(mind, "lighthouse keeper", limit=3)
    )
    set_neighbors(mind, keeper, None)
    settings.ARBOR_RECALL_WEIGHTS = DEFAULT_WEIGHTS
    assert not any(
        memory.components.association for memory in recall_by_words(mind, "lighthouse keeper", limit=3)
    )


def test_a_neighborhood_adds_no_excluded_memory(mind: Agent, other_mind: Agent) -> None:
    store_memories(other_mind, a_memory("Bread of another agent."))
    store_memories(mind, *(a_memory(f"Gull {number}.", session=f"g{number}") for number in range(160)))
    store_memories(
        mind,
        a_memory("The lighthouse keeper.", session="k"),
        a_memory("Stale bread.", session="b", expires_at=NOON),
        a_memory("Forgotten bread.", session="c"),
        a_memory("Bread of the heartbeats.", session="heartbeats"),
        a_memory("Fresh bread.", session="d"),
    )
    *_, keeper, stale, forgotten, heartbeat, fresh = memories_of(mind)
    (foreign,) = memories_of(other_mind)
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=forgotten.id).update(status=MemoryStatus.ARCHIVED)
    named = [foreign, stale, forgotten, heartbeat, fresh]
    set_neighbors(
        mind,
        keeper,
        {memory.id: HIGHEST_WEIGHT - place / 10 for place, memory in enumerate(named)}
        | {uuid4(): HIGHEST_WEIGHT},
    )
    recalled = recall_by_words(mind, "lighthouse keeper", limit=200, without_session="heartbeats")
    assert {memory.content for memory in recalled if "bread" in memory.content.lower()} == {"Fresh bread."}


def test_the_weights_of_an_operator_decide_the_order(mind: Agent, settings: Any) -> None:
    store_memories(
        mind,
        a_memory("The lamp.", session="a", importance=0.1),
        a_memory("The lamp is lit once more by the keeper.", session="b", importance=1.0),
    )
    settings.ARBOR_RECALL_WEIGHTS = parse_weights("importance=0,recency=0")
    assert recall_text(mind, "the lamp")[0].content == "The lamp."
    settings.ARBOR_RECALL_WEIGHTS = parse_weights("importance=5")
    assert recall_text(mind, "the lamp")[0].components.importance == pytest.approx(5)
