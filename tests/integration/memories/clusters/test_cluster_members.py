"""Clusters between two reclusterings: joined, left, listed and related."""

from __future__ import annotations

from uuid import UUID, uuid4

import numpy as np
import pytest

from apps.agents.models import Agent
from apps.memories.models import ClusterMember, ClusterRelation, Edge, Memory
from apps.memories.services.clusters.clusters import (
    assign_memory_to_clusters,
    cluster_members,
    find_related_clusters,
    recalculate_cluster,
    remove_from_clusters,
)
from apps.memories.services.clusters.job import (
    maintain_agent_clusters,
    maintain_clusters,
)
from apps.memories.services.retention.archive import archive, restore
from apps.memories.services.store.remember import remember, store
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, NotFound
from tests.integration.memories.conftest import a_memory, at_once
from tests.integration.memories.subjects import (
    age_reclustering,
    cluster_of,
    members_of_clusters,
    recluster,
    store_all_subjects,
    store_subject,
    unclustered_ids,
    vectors_about,
)

# --- Between two reclusterings -----------------------------------------------------------------------


def test_a_new_memory_joins_a_cluster_before_the_reclustering(
    mind: Agent, clustered: dict[str, list[UUID]]
) -> None:
    more = store_subject(mind, "jazz", 2, seed=9, days=30)
    with tenant_transaction(mind.tenant_id):
        (loner,) = store(
            agent_id=mind.id, memories=[a_memory("Alone.")], vectors=vectors_about("jazz", 1) * -1
        ).ids
    assert maintain_clusters().done == 2
    cluster = cluster_of(mind, clustered["jazz"])
    assert members_of_clusters(mind)[cluster.id] == {*clustered["jazz"], *more}
    assert (cluster.size, cluster.stale) == (8, True)
    assert unclustered_ids(mind) == {loner}
    assert maintain_agent_clusters(mind.tenant_id, mind.id) == 0
    age_reclustering(mind)
    assert maintain_clusters().done == 33
    assert unclustered_ids(mind) == set()
    assert cluster_of(mind, clustered["jazz"]).stale is False


def test_concurrent_assignments_count_each_memory_once(mind: Agent, clustered: dict[str, list[UUID]]) -> None:
    store_subject(mind, "jazz", 4, seed=9, days=30)
    assert sum(at_once(lambda _: maintain_agent_clusters(mind.tenant_id, mind.id), writers=3)) == 4
    assert cluster_of(mind, clustered["jazz"]).size == 10


def test_one_memory_is_assigned_on_demand(mind: Agent, clustered: dict[str, list[UUID]]) -> None:
    (memory_id,) = store_subject(mind, "bread", 1, seed=9, days=30)
    with tenant_transaction(mind.tenant_id):
        assigned = assign_memory_to_clusters(memory_id=memory_id, max_clusters=1)
        assert assign_memory_to_clusters(memory_id=memory_id) == assigned
        assert assign_memory_to_clusters(memory_id=clustered["nothing"][0]) == {}
        assert list(assigned) == [cluster_of(mind, clustered["bread"]).id]
        assert 0.5 < assigned[cluster_of(mind, clustered["bread"]).id] <= 1
        with pytest.raises(NotFound):
            assign_memory_to_clusters(memory_id=uuid4())
        for number in (0, 4):
            with pytest.raises(Invalid, match="1 to 3"):
                assign_memory_to_clusters(memory_id=memory_id, max_clusters=number)


def test_an_archived_memory_leaves_its_cluster_until_restored(
    mind: Agent, clustered: dict[str, list[UUID]]
) -> None:
    archived = clustered["jazz"][0]
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=[archived], reason="a test", actor="system:test")
    cluster = cluster_of(mind, clustered["jazz"][1:])
    assert members_of_clusters(mind)[cluster.id] == set(clustered["jazz"][1:])
    assert (cluster.size, cluster.stale) == (5, True)
    with tenant_transaction(mind.tenant_id):
        restore(memory_ids=[archived], reason="a test", actor="system:test")
        assert remove_from_clusters([uuid4()]) == remove_from_clusters([]) == 0
    assert unclustered_ids(mind) == {archived}
    assert maintain_clusters().done == 1
    assert members_of_clusters(mind)[cluster.id] == set(clustered["jazz"])


def test_one_cluster_is_recomputed_on_demand(mind: Agent, clustered: dict[str, list[UUID]]) -> None:
    cluster = cluster_of(mind, clustered["jazz"])
    with tenant_transaction(mind.tenant_id):
        ClusterMember.objects.filter(cluster_id=cluster.id).exclude(memory_id=clustered["jazz"][0]).delete()
        recalculate_cluster(cluster_id=cluster.id)
        with pytest.raises(NotFound):
            recalculate_cluster(cluster_id=uuid4())
    recomputed = cluster_of(mind, clustered["jazz"])
    assert recomputed.size == 1
    assert np.asarray(recomputed.centroid) == pytest.approx(vectors_about("jazz", 6)[0], abs=1e-3)


# --- Members and relations ---------------------------------------------------------------------------


def test_members_are_listed_nearest_first_without_archived(
    mind: Agent, clustered: dict[str, list[UUID]]
) -> None:
    cluster = cluster_of(mind, clustered["jazz"])
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=clustered["jazz"][0]).update(status="archived")
        shown = cluster_members(cluster_id=cluster.id)
        assert {member.memory_id for member in shown} == set(clustered["jazz"][1:])
        assert [member.strength for member in shown] == sorted(
            (member.strength for member in shown), reverse=True
        )
        assert len(cluster_members(cluster_id=cluster.id, limit=2)) == 2
        for limit in (0, 1_000_000):
            with pytest.raises(Invalid, match="1 to 200"):
                cluster_members(cluster_id=cluster.id, limit=limit)


def test_relations_of_memories_become_relations_of_clusters(mind: Agent, foreign_mind: Agent) -> None:
    stored = store_all_subjects(mind)
    with tenant_transaction(mind.tenant_id):
        for target, relation in (("bread", "contradicts"), ("chess", "causes"), ("nothing", "causes")):
            Edge.objects.create(
                tenant_id=mind.tenant_id,
                agent_id=mind.id,
                source_kind="memory",
                source_id=stored["jazz"][0],
                target_kind="memory",
                target_id=stored[target][0],
                relation=relation,
                weight=0.5,
            )
    recluster(mind)
    jazz, bread, chess = (cluster_of(mind, stored[subject]) for subject in ("jazz", "bread", "chess"))
    with tenant_transaction(mind.tenant_id):
        shown = {
            (cluster.id, cluster.relation.value, cluster.is_outgoing)
            for cluster in find_related_clusters(cluster_id=jazz.id)
        }
        assert shown == {(bread.id, "contradicts", True), (chess.id, "causes", True)}
        (related,) = find_related_clusters(cluster_id=chess.id)
        assert (related.id, related.is_outgoing, related.strength, related.keywords) == (
            jazz.id,
            False,
            0.5,
            tuple(jazz.keywords),
        )
        assert [cluster.id for cluster in find_related_clusters(cluster_id=bread.id)] == [jazz.id]
    with tenant_transaction(foreign_mind.tenant_id), pytest.raises(NotFound):
        find_related_clusters(cluster_id=jazz.id)
    with tenant_transaction(mind.tenant_id):
        Edge.objects.all().delete()
    recluster(mind)
    with tenant_transaction(mind.tenant_id):
        assert not ClusterRelation.objects.exists()


def test_real_texts_form_clusters_by_the_in_process_model(mind: Agent) -> None:
    texts = [
        *(
            f"I baked a sourdough {what} in the oven this morning."
            for what in ("loaf", "bread", "bun", "pizza")
        ),
        *(f"The doctor said that my {what} needs surgery." for what in ("knee", "hip", "shoulder", "wrist")),
        "Trains run late on Sundays.",
        "The lighthouse keeper retired.",
        "Nobody knows what the sphinx means.",
        "Taxes are due in April.",
        "A comet is visible tonight.",
        "She paints watercolours.",
    ]
    stored = remember(tenant_id=mind.tenant_id, agent_id=mind.id, memories=[a_memory(text) for text in texts])
    recluster(mind)
    assert {frozenset(members) for members in members_of_clusters(mind).values()} == {
        frozenset(stored.ids[:4]),
        frozenset(stored.ids[4:8]),
    }
    assert cluster_of(mind, list(stored.ids)).keywords[0] in {"sourdough", "baked", "oven", "morning"}
