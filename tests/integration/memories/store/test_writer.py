"""Memories of several agents, placed in steps and written at once."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from apps.agents.models import Agent
from apps.memories.models import Memory, Mind
from apps.memories.services.embedding.minds import installation_model
from apps.memories.services.jobs.reindexing import reindex_words
from apps.memories.services.retention.archive import archive
from apps.memories.services.store import appraisal
from apps.memories.services.store.placement import StoreRequest, StoreResult
from apps.memories.services.store.remember import MemoryWriter, store
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, NotFound
from arbor.ids import uuid7
from arbor.memory.values import MemoryStatus, MemoryType, NewMemory
from tests.factories.agents import AgentFactory
from tests.integration.memories.conftest import (
    REMOTE,
    a_memory,
    at_once,
    memories_of,
    term_counts,
    true_counts,
)
from tests.integration.memories.random_minds import (
    draw_memories,
    dump_mind,
    populate,
    vectors_of,
    without_ids,
)
from tests.support.embedders import RemoteEmbedder

LATER = datetime(2040, 1, 1, tzinfo=UTC)


def vectors_in_plane(*cosines: float, dimension: int = 256) -> Any:
    """Return unit vectors of one plane with these cosines to the first axis."""
    rows = np.zeros((len(cosines), dimension), dtype=np.float32)
    rows[:, 0] = cosines
    rows[:, 1] = np.sqrt(1 - rows[:, 0] ** 2)
    return rows


def write(tenant: Tenant, *steps: list[StoreRequest]) -> list[list[StoreResult]]:
    with tenant_transaction(tenant.id):
        writer = MemoryWriter()
        results = [writer.place(step) for step in steps]
        writer.write()
        return results


def to_remember(agent: Agent, *memories: NewMemory, vectors: Any = None) -> StoreRequest:
    return StoreRequest(agent_id=agent.id, memories=memories, vectors=vectors)


def fact(content: str, **parts: Any) -> NewMemory:
    return a_memory(content, type=MemoryType.SEMANTIC, **parts)


def test_a_fact_of_another_agent_is_no_duplicate(tenant: Tenant, mind: Agent, other_mind: Agent) -> None:
    ferry, nearly = fact("The ferry leaves at dawn."), fact("the ferry leaves, at dawn")
    write(tenant, [to_remember(mind, ferry, vectors=vectors_in_plane(1.0))])
    ((own, other),) = write(
        tenant,
        [
            to_remember(mind, nearly, vectors=vectors_in_plane(0.98)),
            to_remember(other_mind, nearly, vectors=vectors_in_plane(0.98)),
        ],
    )
    assert (own.stored, other.stored) == (0, 1)
    ((own, other),) = write(tenant, [to_remember(mind, nearly), to_remember(other_mind, ferry)])
    assert (own.stored, other.stored) == (1, 1)
    assert own.ids != other.ids
    assert [len(memories_of(agent)) for agent in (mind, other_mind)] == [2, 2]
    for agent in (mind, other_mind):
        assert term_counts(agent) == true_counts(agent)


def test_a_step_matches_memories_placed_by_an_earlier_one(tenant: Tenant, mind: Agent) -> None:
    first, same, nearly, other = (
        fact("The ferry leaves at dawn."),
        fact("The  ferry leaves at dawn."),
        fact("ferry leaves, at dawn"),
        fact("The bell rings."),
    )
    (one,), (two,), (three,) = write(
        tenant,
        [to_remember(mind, first, vectors=vectors_in_plane(1.0))],
        [to_remember(mind, same, other, vectors=vectors_in_plane(1.0, 0.0))],
        [to_remember(mind, nearly, vectors=vectors_in_plane(0.97))],
    )
    assert one.stored == 1
    assert two.ids[0] == three.ids[0] == one.ids[0]
    assert two.stored == 1
    assert two.duplicates == two.reinforced == {one.ids[0]}
    assert three.duplicates == three.reinforced == {one.ids[0]}
    ferry, bell = memories_of(mind)
    assert (ferry.content, bell.content) == (first.content, other.content)
    assert ferry.detail == {"wordings": [nearly.content]}


def test_one_agent_may_occur_twice_in_a_step(tenant: Tenant, mind: Agent, other_mind: Agent) -> None:
    ferry = fact("The ferry leaves at dawn.")
    ((one, other, again, nothing),) = write(
        tenant,
        [
            to_remember(mind, ferry),
            to_remember(other_mind, ferry),
            to_remember(mind, ferry),
            to_remember(mind),
        ],
    )
    assert (one.stored, other.stored, again.stored) == (1, 1, 0)
    assert again.ids == one.ids
    assert nothing == StoreResult(ids=(), duplicates=frozenset())


def test_a_restored_memory_is_matched_by_meaning_in_a_later_step(tenant: Tenant, mind: Agent) -> None:
    ferry, nearly = fact("The ferry leaves at dawn."), fact("ferry leaves, at dawn")
    ((stored,),) = write(tenant, [to_remember(mind, ferry, vectors=vectors_in_plane(1.0))])
    (old,) = stored.ids
    with tenant_transaction(tenant.id):
        archive(memory_ids=[old], reason="a test", actor="system:tests")
    (back,), (near,) = write(
        tenant, [to_remember(mind, ferry)], [to_remember(mind, nearly, vectors=vectors_in_plane(0.98))]
    )
    assert (back.stored, near.stored) == (1, 0)
    assert near.ids == (old,)
    (row,) = memories_of(mind)
    assert row.status == MemoryStatus.ACTIVE
    assert row.detail == {"wordings": [nearly.content]}
    assert term_counts(mind) == true_counts(mind)


def test_agents_of_different_models_are_written_together(
    tenant: Tenant, mind: Agent, other_mind: Agent, server: RemoteEmbedder
) -> None:
    with tenant_transaction(tenant.id):
        Mind.objects.create(
            tenant_id=tenant.id,
            agent_id=other_mind.id,
            embedding_model=REMOTE.name,
            embedding_dimension=REMOTE.dimension,
        )
    bell, gull = fact("The bell rings."), fact("A gull cries.")
    requests = [
        replace(
            to_remember(mind, bell, gull, vectors=vectors_in_plane(1.0, 0.5)), model=installation_model()
        ),
        replace(to_remember(other_mind, bell, vectors=vectors_in_plane(1.0, dimension=512)), model=REMOTE),
        # Vectors of another model than the agent's: stored without them.
        replace(to_remember(other_mind, gull, vectors=vectors_in_plane(1.0)), model=installation_model()),
    ]
    write(tenant, requests)
    assert [len(row.embedding) for row in memories_of(mind)] == [256, 256]
    assert [row.embedding[0] for row in memories_of(mind)] == [1.0, 0.5]
    one, other = memories_of(other_mind)
    assert (len(one.embedding), one.embedding_model) == (512, "remote/fake")
    assert (other.embedding, other.embedding_model) == (None, "")


def test_a_writer_writes_each_memory_once_and_on_request(tenant: Tenant, mind: Agent) -> None:
    with tenant_transaction(tenant.id):
        writer = MemoryWriter()
        writer.place([to_remember(mind, fact("The bell rings."))])
        assert not Memory.objects.filter(agent_id=mind.id).exists()
        writer.write()
        writer.write()
        (again,) = writer.place([to_remember(mind, fact("The bell rings."), fact("A gull cries."))])
        writer.write()
    assert again.stored == 1
    assert len(memories_of(mind)) == 2
    assert term_counts(mind) == true_counts(mind)


def test_a_missing_agent_and_unfit_vectors_are_refused(
    tenant: Tenant, mind: Agent, foreign_mind: Agent
) -> None:
    bell = fact("The bell rings.")
    for nobody in (uuid7(), foreign_mind.id):
        requests = [to_remember(mind, bell), StoreRequest(agent_id=nobody, memories=[bell])]
        with pytest.raises(NotFound, match=f"there is no agent {nobody}"):
            write(tenant, requests)
    with pytest.raises(Invalid, match="numbers each, got 64"):
        write(tenant, [to_remember(mind, bell, vectors=vectors_in_plane(1.0, dimension=64))])
    with pytest.raises(Invalid, match="one row for each of 1 memories"):
        to_remember(mind, bell, vectors=vectors_in_plane(1.0, 0.5))
    assert memories_of(mind) == []


def test_eight_agents_take_as_many_statements_as_one(tenant: Tenant, statements: list[str]) -> None:
    with tenant_transaction(tenant.id):
        agents = AgentFactory.create_batch(8)
    counts = []
    for number, several in enumerate((agents[:1], agents)):
        with tenant_transaction(tenant.id):
            statements.clear()
            writer = MemoryWriter()
            for step, cosine in enumerate((1.0, 0.0)):
                memory = fact(f"Buoy {number} {step} is red.")
                heartbeat = a_memory(f"Heartbeat {number} {step}.", session="heartbeats")
                writer.place(
                    [
                        to_remember(agent, memory, heartbeat, vectors=vectors_in_plane(cosine, 0.5))
                        for agent in several
                    ]
                )
            writer.write()
            counts.append(len(statements))
    # Locks; known memories and near duplicates of each of the two steps; episodes, inserts, signals.
    assert counts == [8, 8]


def test_writers_of_the_same_agents_do_not_deadlock(tenant: Tenant, mind: Agent, other_mind: Agent) -> None:
    memories = [fact(f"Buoy {number} is red.") for number in range(6)]

    def run(number: int) -> int:
        agents = [mind, other_mind] if number % 2 else [other_mind, mind]
        with tenant_transaction(tenant.id):
            writer = MemoryWriter()
            writer.lock([agent.id for agent in agents])
            stored = 0
            for memory in memories if number % 2 else memories[::-1]:
                for agent in agents:
                    stored += writer.place([to_remember(agent, memory)])[0].stored
            writer.write()
            return stored

    assert sum(at_once(run, writers=6)) == 2 * len(memories)
    for agent in (mind, other_mind):
        assert term_counts(agent) == true_counts(agent)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("filled", [False, True])
def test_placing_in_steps_equals_storing_one_by_one(
    tenant: Tenant, server: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch, seed: int, filled: bool
) -> None:
    monkeypatch.setattr(appraisal, "_expiry", lambda ttl: LATER + ttl)
    models = [installation_model(), REMOTE, installation_model()]
    with tenant_transaction(tenant.id):
        singly, together = AgentFactory.create_batch(3), AgentFactory.create_batch(3)
    for number, model in enumerate(models):
        for agent in (singly[number], together[number]):
            if filled or model == REMOTE:
                populate(agent, model, seed=seed + number)
    chance = random.Random(seed)
    steps = [
        [
            (number, draw_memories(chance, chance.randint(0, 14)), chance.random() < 0.7)
            for number in chance.choices(range(3), k=chance.randint(1, 4))
        ]
        for _ in range(3)
    ]

    def request_of(
        agents: list[Agent], number: int, memories: list[NewMemory], with_vectors: bool
    ) -> StoreRequest:
        model = models[number]
        vectors = vectors_of(memories, model.dimension) if with_vectors else None
        return StoreRequest(agent_id=agents[number].id, memories=memories, vectors=vectors, model=model)

    stored: list[list[StoreResult]] = [[], [], []]
    with tenant_transaction(tenant.id):
        for step in steps:
            for number, memories, with_vectors in step:
                batch = request_of(singly, number, memories, with_vectors)
                stored[number].append(
                    store(
                        agent_id=batch.agent_id, memories=memories, vectors=batch.vectors, model=batch.model
                    )
                )
    placed: list[list[StoreResult]] = [[], [], []]
    with tenant_transaction(tenant.id):
        writer = MemoryWriter()
        for step in steps:
            results = writer.place([request_of(together, *parts) for parts in step])
            for (number, _, _), result in zip(step, results, strict=True):
                placed[number].append(result)
        writer.write()
    # Details that were added one by one are indexed by maintenance, those of one draft at once.
    reindex_words()
    for number in range(3):
        assert without_ids(together[number], placed[number]) == without_ids(singly[number], stored[number])
        assert dump_mind(together[number]) == dump_mind(singly[number])
        assert term_counts(together[number]) == true_counts(together[number])
