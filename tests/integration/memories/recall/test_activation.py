"""Activation: raised by recalls of the agent, faded with time, read as clusters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.memories.models import Activation, Cluster, ClusterMember, Memory, Upkeep
from apps.memories.services.recall import queries
from apps.memories.services.recall.activation import (
    activated_clusters,
    activated_memories,
    record_recall,
    record_recalls,
    trim_activations,
)
from apps.memories.services.recall.recaller import recall
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid
from arbor.memory.activation import MAX_ACTIVATED, initial_levels, level_after, spread
from arbor.memory.recall.recall_request import RecallRequest
from tests.integration.memories.chosen_vectors import (
    clustered_vectors,
    neighbors_of,
    refresh_all,
    store_with_vectors,
)
from tests.integration.memories.conftest import a_memory, access_counts, at_once

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def a_cluster(agent: Agent, name: str, members: Sequence[UUID], *, strength: float = 1.0) -> UUID:
    with tenant_transaction(agent.tenant_id):
        cluster = Cluster.objects.create(
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            name=name,
            keywords=["tide", "moon"],
            emotional_valence=0.4,
            emotional_intensity=0.6,
        )
        ClusterMember.objects.bulk_create(
            ClusterMember(
                tenant_id=agent.tenant_id, cluster_id=cluster.id, memory_id=member, strength=strength
            )
            for member in members
        )
        cluster_id: UUID = cluster.id
        return cluster_id


def levels_of(agent: Agent, now: datetime = NOW) -> dict[UUID, float]:
    with tenant_transaction(agent.tenant_id):
        return {
            memory.id: memory.level for memory in activated_memories(agent_id=agent.id, limit=500, now=now)
        }


def store_recall(agent: Agent, recalled: dict[UUID, float], now: datetime = NOW) -> int:
    with tenant_transaction(agent.tenant_id):
        return record_recall(agent_id=agent.id, recalled=recalled, now=now)


def test_a_recall_spreads_along_the_neighborhood(mind: Agent) -> None:
    ids = store_with_vectors(mind, clustered_vectors(24, spread=0.1))
    refresh_all(mind)
    recalled = {ids[0]: 1.6, ids[1]: 0.8, ids[5]: 0.2}
    store_recall(mind, recalled)
    near = {memory_id: neighbors_of(mind, memory_id) for memory_id in recalled}
    assert levels_of(mind) == pytest.approx(spread(initial_levels(recalled), near))
    assert len(levels_of(mind)) > len(recalled)


def test_activation_halves_in_its_half_life_and_is_capped(mind: Agent) -> None:
    (one,) = store_with_vectors(mind, [None])
    store_recall(mind, {one: 1.0})
    assert levels_of(mind, NOW + HOUR)[one] == pytest.approx(level_after(1.0, HOUR, HOUR))
    store_recall(mind, {one: 1.0}, NOW + HOUR)
    assert levels_of(mind, NOW + HOUR)[one] == 1.0
    assert levels_of(mind, NOW + 8 * HOUR) == {}


@pytest.mark.parametrize("passed", [timedelta(days=4000), timedelta(days=-4000)])
def test_a_clock_that_jumps_does_not_break_activation(mind: Agent, passed: timedelta) -> None:
    (one,) = store_with_vectors(mind, [None])
    store_recall(mind, {one: 1.0})
    store_recall(mind, {one: 1.0}, NOW + passed)
    assert levels_of(mind, NOW + passed) == {one: 1.0}


def test_without_neighborhoods_only_recalled_memories_activate(mind: Agent) -> None:
    ids = store_with_vectors(mind, clustered_vectors(3))
    with tenant_transaction(mind.tenant_id):
        Upkeep.objects.filter(memory_id=ids[0]).delete()
    assert store_recall(mind, {ids[0]: 1.0, ids[1]: 1.0}) == 2


def test_ids_that_are_not_the_agents_are_left_out(
    mind: Agent, other_mind: Agent, foreign_mind: Agent
) -> None:
    (own,), (other,), (foreign,) = (
        store_with_vectors(agent, [None]) for agent in (mind, other_mind, foreign_mind)
    )
    cluster = a_cluster(other_mind, "Theirs", [other])
    assert store_recall(mind, {own: 1.0, other: 1.0, foreign: 1.0, uuid4(): 1.0}) == 1
    assert set(levels_of(mind)) == {own}
    assert levels_of(other_mind) == {}
    with tenant_transaction(mind.tenant_id):
        assert Cluster.objects.get(id=cluster).activations == 0


def test_a_score_that_is_no_number_changes_nothing(mind: Agent) -> None:
    (own,) = store_with_vectors(mind, [None])
    with pytest.raises(Invalid):
        store_recall(mind, {own: float("nan")})
    assert levels_of(mind) == {}


def test_clusters_are_weighed_by_their_active_members(mind: Agent) -> None:
    ids = store_with_vectors(mind, [None] * 4)
    tides = a_cluster(mind, "Tides", ids[:2], strength=0.8)
    ropes = a_cluster(mind, "Ropes", ids[2:3], strength=0.9)
    a_cluster(mind, "Maps", ids[3:])
    store_recall(mind, {ids[0]: 1.0, ids[1]: 1.0, ids[2]: 0.5})
    with tenant_transaction(mind.tenant_id):
        clusters = activated_clusters(agent_id=mind.id, now=NOW)
        most_active = activated_clusters(agent_id=mind.id, limit=1, now=NOW)
        counts = dict(Cluster.objects.values_list("name", "activations"))
        at = Cluster.objects.get(id=tides).activated_at
    assert [(cluster.id, cluster.members) for cluster in clusters] == [(tides, 2), (ropes, 1)]
    assert [cluster.activation for cluster in clusters] == pytest.approx([1.6, 0.45])
    assert (clusters[0].name, clusters[0].keywords) == ("Tides", ("tide", "moon"))
    assert (clusters[0].emotional_valence, clusters[0].emotional_intensity) == (0.4, 0.6)
    assert most_active == clusters[:1]
    # Reading the clusters counts no access.
    assert counts == {"Tides": 1, "Ropes": 1, "Maps": 0}
    assert at == NOW


@pytest.mark.parametrize("limit", [0, -1, 1_000_000])
def test_the_number_of_activated_clusters_is_bounded(mind: Agent, limit: int) -> None:
    with tenant_transaction(mind.tenant_id), pytest.raises(Invalid, match="1 to 500"):
        activated_clusters(agent_id=mind.id, limit=limit)


def test_a_locked_cluster_delays_no_recall(mind: Agent) -> None:
    ids = store_with_vectors(mind, [None])
    tides = a_cluster(mind, "Tides", ids)

    def recall_meanwhile(_: int) -> int:
        return store_recall(mind, {ids[0]: 1.0})

    with tenant_transaction(mind.tenant_id):
        Cluster.objects.select_for_update().get(id=tides)
        assert at_once(recall_meanwhile, writers=1) == [1]
    assert set(levels_of(mind)) == set(ids)


def test_recording_and_reading_take_one_statement_each(mind: Agent, statements: list[str]) -> None:
    ids = store_with_vectors(mind, clustered_vectors(8, spread=0.1))
    a_cluster(mind, "Tides", ids)
    refresh_all(mind)
    statements.clear()
    with tenant_transaction(mind.tenant_id):
        record_recall(agent_id=mind.id, recalled=dict.fromkeys(ids, 1.0))
        activated_clusters(agent_id=mind.id)
    assert len(statements) == 2


def test_faded_and_least_active_activations_are_trimmed(
    mind: Agent, other_mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    active, faded, slight = store_with_vectors(mind, [None] * 3)
    (other,) = store_with_vectors(other_mind, [None])
    now = datetime.now(UTC)
    store_recall(mind, {active: 1.0, slight: 0.1}, now)
    store_recall(mind, {faded: 1.0}, now - 8 * HOUR)
    store_recall(other_mind, {other: 1.0}, now)
    assert trim_activations().done == 1
    with tenant_transaction(mind.tenant_id):
        assert set(Activation.objects.values_list("memory_id", flat=True)) == {active, slight, other}
    for name in ("AGENTS_WITH_FADED", "DROP_FADED"):
        monkeypatch.setattr(queries, name, getattr(queries, name).replace("500", "1"))
    assert trim_activations().done == 1
    with tenant_transaction(mind.tenant_id):
        assert set(Activation.objects.values_list("memory_id", flat=True)) == {active, other}


def test_activations_are_lost_in_a_crash_and_stored_again_later(mind: Agent) -> None:
    ids = store_with_vectors(mind, [None])
    a_cluster(mind, "Tides", ids)
    store_recall(mind, {ids[0]: 1.0})
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'memories_activation'")
        assert cursor.fetchone() == ("u",)
        # The effect of a crash on an unlogged table.
        cursor.execute("TRUNCATE memories_activation")
    assert levels_of(mind) == {}
    with tenant_transaction(mind.tenant_id):
        assert activated_clusters(agent_id=mind.id) == []
    assert store_recall(mind, {ids[0]: 1.0}) == 1


def test_only_the_agents_own_recall_activates(mind: Agent) -> None:
    stored = remember(
        tenant_id=mind.tenant_id, agent_id=mind.id, memories=[a_memory("The tide turns at noon.")]
    )
    recall(tenant_id=mind.tenant_id, request=RecallRequest(agent_id=mind.id, text="When does the tide turn?"))
    assert levels_of(mind, datetime.now(UTC)) == {}
    recall(
        tenant_id=mind.tenant_id,
        request=RecallRequest(agent_id=mind.id, text="When does the tide turn?"),
        counts=True,
    )
    assert set(levels_of(mind, datetime.now(UTC))) == set(stored.ids)
    assert access_counts(mind) == dict.fromkeys(stored.ids, 1)


def test_an_archived_memory_is_not_activated(mind: Agent) -> None:
    ids = store_with_vectors(mind, [None])
    store_recall(mind, {ids[0]: 1.0})
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=ids[0]).update(status="archived")
    assert levels_of(mind) == {}


def test_recalls_of_several_agents_take_one_statement(
    mind: Agent, other_mind: Agent, statements: list[str]
) -> None:
    both = {
        agent.id: store_with_vectors(agent, clustered_vectors(24, spread=0.1)) for agent in (mind, other_mind)
    }
    for agent in (mind, other_mind):
        refresh_all(agent)
    clusters = [a_cluster(agent, agent.name, both[agent.id]) for agent in (mind, other_mind)]
    own, others = both[mind.id], both[other_mind.id]
    recalled = {
        # Another agent's memory is left out, and counts for nobody.
        mind.id: {own[0]: 1.6, own[1]: 0.8, others[2]: 1.0},
        other_mind.id: {others[0]: 0.3},
        uuid4(): {},
    }
    statements.clear()
    with tenant_transaction(mind.tenant_id):
        reached = record_recalls(recalled, now=NOW)
    assert len(statements) == 1
    for agent in (mind, other_mind):
        known = {
            memory_id: level
            for memory_id, level in initial_levels(recalled[agent.id]).items()
            if memory_id in both[agent.id]
        }
        near = {memory_id: neighbors_of(agent, memory_id) for memory_id in known}
        assert levels_of(agent) == pytest.approx(spread(known, near))
        assert access_counts(agent) == dict.fromkeys(known, 1)
    assert reached == len(levels_of(mind)) + len(levels_of(other_mind))
    with tenant_transaction(mind.tenant_id):
        assert [Cluster.objects.get(id=cluster_id).activations for cluster_id in clusters] == [1, 1]


def test_another_agents_memory_activates_no_cluster(mind: Agent, other_mind: Agent) -> None:
    (own,), (other,) = store_with_vectors(mind, [None]), store_with_vectors(other_mind, [None])
    cluster = a_cluster(other_mind, "Theirs", [other])
    with tenant_transaction(mind.tenant_id):
        (unclustered,) = store_with_vectors(other_mind, [None], first=7)
        record_recalls({mind.id: {own: 1.0, other: 1.0}, other_mind.id: {unclustered: 1.0}})
        assert Cluster.objects.get(id=cluster).activations == 0


def test_each_agent_has_its_own_bound_of_what_one_recall_reaches(
    mind: Agent, other_mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = queries.RAISE_ACTIVATIONS.replace(f"<= {MAX_ACTIVATED}", "<= 2")
    monkeypatch.setattr(queries, "RAISE_ACTIVATIONS", raised)
    both = {agent.id: store_with_vectors(agent, [None] * 4) for agent in (mind, other_mind)}
    with tenant_transaction(mind.tenant_id):
        record_recalls(
            {
                agent_id: {memory_id: 1.0 - 0.1 * place for place, memory_id in enumerate(ids)}
                for agent_id, ids in both.items()
            },
            now=NOW,
        )
    for agent in (mind, other_mind):
        assert set(levels_of(agent)) == set(both[agent.id][:2])
