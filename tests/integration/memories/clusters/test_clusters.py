"""Clusters as rows: formed, recomputed by the first worker, and without archived memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from pgvector import HalfVector

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.memories.models import Cluster, Memory, Mind
from apps.memories.services.clusters import job as clustering
from apps.memories.services.clusters import queries
from apps.memories.services.clusters.clusters import (
    NamedCluster,
    name_cluster,
    recalculate_cluster,
    rename_cluster,
)
from apps.memories.services.clusters.job import maintain_clusters
from apps.memories.services.clusters.reclustering import MindClusters, plan_clusters
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.retention.archive import archive
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.errors import ConfigurationInvalid, Invalid
from tests.integration.memories.conftest import a_memory, at_once
from tests.integration.memories.subjects import (
    age_reclustering,
    cluster_of,
    count_stale_clusters,
    members_of_clusters,
    recluster,
    store_all_subjects,
    store_subject,
    unclustered_ids,
    vectors_about,
)
from tests.support.races import in_tenant
from tests.support.threads import start_blocked

# --- Reclustering ------------------------------------------------------------------------------------


def test_a_mind_forms_a_cluster_for_each_subject(mind: Agent) -> None:
    jazz = store_subject(mind, "jazz", 6, seed=3, valence=-0.5)
    stored = store_all_subjects(mind)
    assert maintain_clusters().failed == 0
    assert sorted(map(len, members_of_clusters(mind).values())) == [6, 6, 12]
    assert set(jazz) < members_of_clusters(mind)[cluster_of(mind, jazz).id]
    cluster = cluster_of(mind, stored["bread"])
    assert members_of_clusters(mind)[cluster.id] == set(stored["bread"])
    assert set(cluster.keywords) >= {"sourdough", "oven", "crust"}
    assert cluster.name == ", ".join(cluster.keywords[:3])
    assert (cluster.size, cluster.stale) == (6, False)
    assert cluster.importance == pytest.approx(0.8)
    signature = (cluster_of(mind, jazz).emotional_valence, cluster_of(mind, jazz).emotional_intensity)
    assert signature == pytest.approx((-0.25, 0.25))
    mean = vectors_about("bread", 6).mean(axis=0)
    assert np.asarray(cluster.centroid) == pytest.approx(mean / np.linalg.norm(mean), abs=1e-3)
    assert unclustered_ids(mind) == set()
    assert count_stale_clusters(mind) == 0


def test_a_second_reclustering_changes_no_cluster(mind: Agent) -> None:
    store_all_subjects(mind)
    assert recluster(mind) == 30
    before = members_of_clusters(mind)
    assert recluster(mind) == 30
    assert members_of_clusters(mind) == before
    assert maintain_clusters().steps == 0


def test_a_zero_vector_does_not_stop_the_others(mind: Agent) -> None:
    stored = store_all_subjects(mind)
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=stored["jazz"][0]).update(embedding=HalfVector([0.0] * 256))
    assert maintain_clusters().failed == 0
    assert members_of_clusters(mind)[cluster_of(mind, stored["jazz"][1:]).id] == set(stored["jazz"][1:])


def test_a_mind_of_few_memories_forms_no_cluster(mind: Agent, other_mind: Agent) -> None:
    store_subject(mind, "jazz", 2)
    assert maintain_clusters().steps == 1
    assert members_of_clusters(mind) == {}
    assert recluster(other_mind) == 0


def test_memories_without_vectors_wait_for_their_cluster(mind: Agent) -> None:
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=[a_memory(f"Jazz {number}.") for number in range(5)], vectors=None)
    maintain_clusters()
    assert members_of_clusters(mind) == {}
    assert len(unclustered_ids(mind)) == 5


def test_the_vectors_of_another_tenants_mind_take_no_part(mind: Agent, foreign_mind: Agent) -> None:
    store_subject(mind, "jazz", 2)
    store_subject(foreign_mind, "jazz", 2, seed=5)
    assert maintain_clusters().steps == 2
    assert members_of_clusters(mind) == members_of_clusters(foreign_mind) == {}


def test_one_agents_fault_does_not_stop_the_others(
    mind: Agent, other_mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_all_subjects(mind)
    store_all_subjects(other_mind)

    def fail(mind_clusters: MindClusters, *, deviations: float) -> object:
        if mind_clusters.agent_id == mind.id:
            raise RuntimeError("a broken mind")
        return plan_clusters(mind_clusters, deviations=deviations)

    monkeypatch.setattr(clustering, "plan_clusters", fail)
    job_run = maintain_clusters()
    assert (job_run.failed, job_run.done) == (1, 30)
    assert len(members_of_clusters(other_mind)) == 3


def test_a_given_name_stays_and_others_follow_the_words(
    mind: Agent, clustered: dict[str, list[UUID]]
) -> None:
    jazz, bread = cluster_of(mind, clustered["jazz"]), cluster_of(mind, clustered["bread"])
    with tenant_transaction(mind.tenant_id):
        name_cluster(cluster_id=jazz.id, name=" Evenings at  the club ")
        Cluster.objects.filter(id=bread.id).update(name="old, words", keywords=["old", "words"], stale=True)
    recluster(mind)
    assert cluster_of(mind, clustered["jazz"]).name == "Evenings at the club"
    assert cluster_of(mind, clustered["bread"]).name == ", ".join(
        cluster_of(mind, clustered["bread"]).keywords[:3]
    )
    for name, reason in (("", "1 to 200"), ("x" * 201, "1 to 200"), ("a\0b", "NUL"), ("\ud800", "surrogate")):
        with pytest.raises(Invalid, match=reason), tenant_transaction(mind.tenant_id):
            name_cluster(cluster_id=jazz.id, name=name)


def test_the_audit_log_has_the_name_that_is_stored(mind: Agent, clustered: dict[str, list[UUID]]) -> None:
    jazz = cluster_of(mind, clustered["jazz"])
    with tenant_transaction(mind.tenant_id):
        rename_cluster(
            agent_id=mind.id,
            cluster=NamedCluster(id=jazz.id, name=jazz.name),
            name=" Evenings at  the club ",
            reason="it fits",
            actor="system:test",
        )
        event = AuditEvent.objects.latest("id")
    assert event.message == "named a cluster 'Evenings at the club': it fits"
    assert event.detail["changes"]["name"] == {"from": jazz.name, "to": "Evenings at the club"}


def test_a_cluster_that_is_named_meanwhile_does_not_dissolve(
    mind: Agent, clustered: dict[str, list[UUID]]
) -> None:
    jazz = cluster_of(mind, clustered["jazz"])
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=clustered["jazz"][:4], reason="a test", actor="system:test")
        late = MindClusters.read(mind.id)
    assert late is not None
    plan = plan_clusters(late, deviations=3.5)
    with tenant_transaction(mind.tenant_id):
        name_cluster(cluster_id=jazz.id, name="Evenings at the club")
        plan.read_words()
    plan.describe()
    with tenant_transaction(mind.tenant_id):
        assert plan.write()
    assert members_of_clusters(mind)[jazz.id] == set(clustered["jazz"][4:])
    assert cluster_of(mind, clustered["jazz"][4:]).name == "Evenings at the club"


def test_a_named_cluster_outlasts_the_wait_for_its_vectors(
    mind: Agent, clustered: dict[str, list[UUID]]
) -> None:
    jazz = cluster_of(mind, clustered["jazz"])
    with tenant_transaction(mind.tenant_id):
        name_cluster(cluster_id=jazz.id, name="Evenings at the club")
        Memory.objects.filter(agent_id=mind.id).update(embedding=None, embedding_model="")
        Cluster.objects.filter(agent_id=mind.id).update(centroid=None, stale=True)
    maintain_clusters()
    embed_backlog()
    maintain_clusters()
    assert cluster_of(mind, clustered["jazz"]).name == "Evenings at the club"


@pytest.mark.usefixtures("clustered")
def test_memories_that_wait_for_vectors_are_not_all_read(
    mind: Agent, other_mind: Agent, vacuum: Callable[[], None]
) -> None:
    with tenant_transaction(mind.tenant_id):
        memories = [a_memory(f"Memory {number} waits.") for number in range(500)]
        store(agent_id=other_mind.id, memories=memories, vectors=None)
    vacuum()
    statement = queries.CLUSTERING_STATE.format(due=clustering._due())
    with tenant_transaction(mind.tenant_id):
        plan = "\n".join(row[0] for row in fetch(f"EXPLAIN {statement}", agent=mind.id))
    assert "(id = member.memory_id)" in plan, plan
    assert "memories_memory_unembedded" not in plan


def test_a_refresh_leaves_the_name_that_is_given_meanwhile(
    mind: Agent, clustered: dict[str, list[UUID]]
) -> None:
    jazz = cluster_of(mind, clustered["jazz"])
    with tenant_transaction(mind.tenant_id):
        name_cluster(cluster_id=jazz.id, name="Evenings at the club")
        start_blocked(in_tenant(mind.tenant_id, recalculate_cluster, cluster_id=jazz.id))
    assert cluster_of(mind, clustered["jazz"]).name == "Evenings at the club"


def test_concurrent_reclusterings_form_each_cluster_once(mind: Agent) -> None:
    store_all_subjects(mind)
    counts = at_once(lambda _: recluster(mind), writers=3)
    assert max(counts) == 30
    assert sorted(map(len, members_of_clusters(mind).values())) == [6, 6, 6]


def test_a_mind_reclustered_meanwhile_is_left_alone(mind: Agent) -> None:
    store_all_subjects(mind)
    with tenant_transaction(mind.tenant_id):
        late = MindClusters.read(mind.id)
    assert late is not None
    plan = plan_clusters(late, deviations=3.5)
    recluster(mind)
    before = members_of_clusters(mind)
    with tenant_transaction(mind.tenant_id):
        plan.read_words()
    plan.describe()
    with tenant_transaction(mind.tenant_id):
        assert plan.write() is False
    assert members_of_clusters(mind) == before


def test_a_memory_archived_meanwhile_is_in_no_cluster(mind: Agent) -> None:
    stored = store_all_subjects(mind)
    with tenant_transaction(mind.tenant_id):
        mind_clusters = MindClusters.read(mind.id)
    assert mind_clusters is not None
    plan = plan_clusters(mind_clusters, deviations=3.5)
    archived = stored["jazz"][0]
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=[archived], reason="a test", actor="system:test")
        plan.read_words()
    plan.describe()
    with tenant_transaction(mind.tenant_id):
        assert plan.write()
    cluster = cluster_of(mind, stored["jazz"][1:])
    assert members_of_clusters(mind)[cluster.id] == set(stored["jazz"][1:])
    assert (cluster.size, cluster.stale) == (5, True)


def test_a_cluster_without_enough_members_dissolves(mind: Agent, clustered: dict[str, list[UUID]]) -> None:
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=clustered["jazz"][:4], reason="a test", actor="system:test")
    assert count_stale_clusters(mind) == 1
    assert maintain_clusters().steps == 0, "not before its next reclustering"
    age_reclustering(mind)
    assert maintain_clusters().done > 0
    assert sorted(map(len, members_of_clusters(mind).values())) == [6, 6]


def test_an_agent_moved_to_other_vectors_gets_new_centers(
    mind: Agent, clustered: dict[str, list[UUID]]
) -> None:
    cluster = cluster_of(mind, clustered["jazz"])
    with tenant_transaction(mind.tenant_id):
        # The rows after a switch of the model: vectors of another length, and the new model of the mind.
        for memory in Memory.objects.filter(agent_id=mind.id):
            memory.embedding = memory.embedding[:128]
            memory.save(update_fields=["embedding"])
        Mind.objects.filter(agent_id=mind.id).update(embedding_dimension=128)
        assert clustering.read_centers(mind.id, model_of(mind.id))[0] == []
        Cluster.objects.filter(agent_id=mind.id).update(centroid=None, stale=True)
    assert maintain_clusters().done == 30, "at once, because a cluster without a center cannot be used"
    assert cluster_of(mind, clustered["jazz"]).id == cluster.id
    assert len(cluster_of(mind, clustered["jazz"]).centroid) == 128


@pytest.mark.parametrize("deviations", [0.0, 11.0, float("nan")])
def test_deviations_out_of_range_are_refused(mind: Agent, settings: Any, deviations: float) -> None:
    settings.ARBOR_CLUSTER_DEVIATIONS = deviations
    store_subject(mind, "jazz", 4)
    with pytest.raises(ConfigurationInvalid, match=r"0\.5 to 10"):
        recluster(mind)
