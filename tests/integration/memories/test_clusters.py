"""Clusters as rows: formed, kept, put in order by whoever is first, and left by what is archived."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from pgvector import HalfVector

from apps.agents.models import Agent
from apps.memories.models import Cluster, ClusterMember, ClusterRelation, Edge, Memory, Mind, Upkeep
from apps.memories.services import clustering
from apps.memories.services.archive import archive, restore
from apps.memories.services.clustering import (
    order_clusters,
    tend_agent,
    tend_clusters,
)
from apps.memories.services.clusters import (
    assign_memory_to_clusters,
    cluster_members,
    find_related_clusters,
    mark_clusters_stale,
    name_cluster,
    recalculate_cluster,
)
from apps.memories.services.remember import remember, store
from apps.tenants.scope import tenant_transaction
from arbor.errors import ConfigurationInvalid, Invalid, NotFound
from arbor.memory.clusters import Vectors
from tests.integration.memories.conftest import NOON, a_memory, at_once

#: What is said about each subject; the words differ from subject to subject as they do in talk.
SAID = {
    "jazz": "Coltrane saxophone trio",
    "bread": "sourdough oven crust",
    "chess": "bishop opening gambit",
}


def vectors_about(subject: str, count: int, *, seed: int = 0) -> Vectors:
    """Return vectors near each other, and far from those about other subjects."""
    centre = np.random.default_rng(sorted(SAID).index(subject) + 100).standard_normal(256)
    noise = np.random.default_rng(seed).standard_normal((count, 256))
    rows = centre / np.linalg.norm(centre) + 0.5 * noise / np.linalg.norm(noise, axis=1)[:, None]
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None], dtype=np.float32)


def tell(
    agent: Agent, subject: str, count: int, *, seed: int = 0, days: int = 0, valence: float = 0.0
) -> list[UUID]:
    """Store memories about a subject and return their ids."""
    memories = [
        a_memory(
            f"{SAID[subject]} number {seed} {place}",
            emotional_valence=valence,
            importance=0.8,
            session=subject,
            position=100 * seed + place,
            occurred_at=NOON + timedelta(days=days, minutes=place),
        )
        for place in range(count)
    ]
    with tenant_transaction(agent.tenant_id):
        vectors = vectors_about(subject, count, seed=seed)
        return list(store(agent_id=agent.id, memories=memories, vectors=vectors).ids)


def tell_of_everything(agent: Agent) -> dict[str, list[UUID]]:
    """Give an agent three subjects, and some memories that are about nothing in common."""
    told = {subject: tell(agent, subject, 6, days=place) for place, subject in enumerate(SAID)}
    noise = np.random.default_rng(7).standard_normal((12, 256))
    with tenant_transaction(agent.tenant_id):
        memories = [
            a_memory(f"Something else {place}", session="else", position=place) for place in range(12)
        ]
        rows = np.asarray(noise / np.linalg.norm(noise, axis=1)[:, None], dtype=np.float32)
        told["nothing"] = list(store(agent_id=agent.id, memories=memories, vectors=rows).ids)
    return told


def order(agent: Agent) -> int:
    return order_clusters(agent.tenant_id, agent.id)


def members(agent: Agent) -> dict[UUID, set[UUID]]:
    """Return the members of each cluster."""
    with tenant_transaction(agent.tenant_id):
        found: dict[UUID, set[UUID]] = {
            each: set() for each in Cluster.objects.filter(agent_id=agent.id).values_list("id", flat=True)
        }
        for cluster_id, memory_id in ClusterMember.objects.filter(cluster__agent_id=agent.id).values_list(
            "cluster_id", "memory_id"
        ):
            found[cluster_id].add(memory_id)
        return found


def about(agent: Agent, ids: list[UUID]) -> Cluster:
    """Return the one cluster that holds the first of these memories."""
    with tenant_transaction(agent.tenant_id):
        cluster: Cluster = Cluster.objects.get(members__memory_id=ids[0])
        return cluster


def waiting(agent: Agent) -> set[UUID]:
    with tenant_transaction(agent.tenant_id):
        rows = Upkeep.objects.filter(agent_id=agent.id, unclustered=True)
        return set(rows.values_list("memory_id", flat=True))


def stale(agent: Agent) -> int:
    with tenant_transaction(agent.tenant_id):
        counted: int = Cluster.objects.filter(agent_id=agent.id, stale=True).count()
        return counted


def pass_time(agent: Agent) -> None:
    """Let the mind have been put in order an hour ago."""
    with tenant_transaction(agent.tenant_id):
        mind = Mind.objects.get(agent_id=agent.id)
        Mind.objects.filter(agent_id=agent.id).update(clustered_at=mind.clustered_at - timedelta(hours=1))


# --- Putting in order --------------------------------------------------------------------------------


def test_a_mind_falls_into_its_themes_each_with_centre_words_feeling_and_weight(mind: Agent) -> None:
    jazz = tell(mind, "jazz", 6, seed=3, valence=-0.5)
    told = tell_of_everything(mind)
    assert tend_clusters().failed == 0
    assert sorted(map(len, members(mind).values())) == [6, 6, 12]
    assert set(jazz) < members(mind)[about(mind, jazz).id]
    cluster = about(mind, told["bread"])
    assert members(mind)[cluster.id] == set(told["bread"])
    assert set(cluster.keywords) >= {"sourdough", "oven", "crust"}
    assert cluster.name == ", ".join(cluster.keywords[:3])
    assert (cluster.size, cluster.stale, cluster.importance) == (6, False, pytest.approx(0.8))
    assert (about(mind, jazz).emotional_valence, about(mind, jazz).emotional_intensity) == (
        pytest.approx(-0.25),
        pytest.approx(0.25),
    )
    mean = vectors_about("bread", 6).mean(axis=0)
    assert np.asarray(cluster.centroid) == pytest.approx(mean / np.linalg.norm(mean), abs=1e-3)
    assert waiting(mind) == set()
    assert stale(mind) == 0


def test_putting_in_order_twice_changes_nothing(mind: Agent) -> None:
    tell_of_everything(mind)
    assert order(mind) == 30
    before = members(mind)
    assert order(mind) == 30
    assert members(mind) == before
    assert tend_clusters().steps == 0


def test_a_vector_that_means_nothing_does_not_stop_the_others(mind: Agent) -> None:
    told = tell_of_everything(mind)
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=told["jazz"][0]).update(embedding=HalfVector([0.0] * 256))
    assert tend_clusters().failed == 0
    assert members(mind)[about(mind, told["jazz"][1:]).id] == set(told["jazz"][1:])


def test_a_mind_without_memories_or_without_a_row_is_in_order_at_once(mind: Agent, other_mind: Agent) -> None:
    tell(mind, "jazz", 2)
    assert tend_clusters().steps == 1
    assert members(mind) == {}
    assert order(other_mind) == 0


def test_memories_that_wait_for_their_vector_wait_for_their_theme_too(mind: Agent) -> None:
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=[a_memory(f"Jazz {number}.") for number in range(5)], vectors=None)
    tend_clusters()
    assert members(mind) == {}
    assert len(waiting(mind)) == 5


def test_the_vectors_of_another_tenants_mind_take_no_part(mind: Agent, foreign_mind: Agent) -> None:
    tell(mind, "jazz", 2)
    tell(foreign_mind, "jazz", 2, seed=5)
    assert tend_clusters().steps == 2
    assert members(mind) == members(foreign_mind) == {}


def test_one_agents_fault_does_not_stop_the_others(
    mind: Agent, other_mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_of_everything(mind)
    tell_of_everything(other_mind)
    true = clustering.plan_order

    def fail(order: clustering.Order, *, deviations: float) -> object:
        if order.agent_id == mind.id:
            raise RuntimeError("a broken mind")
        return true(order, deviations=deviations)

    monkeypatch.setattr(clustering, "plan_order", fail)
    found = tend_clusters()
    assert (found.failed, found.done) == (1, 30)
    assert len(members(other_mind)) == 3


def test_a_name_that_a_person_gave_stays_and_another_follows_the_words(mind: Agent) -> None:
    told = tell_of_everything(mind)
    order(mind)
    jazz, bread = about(mind, told["jazz"]), about(mind, told["bread"])
    with tenant_transaction(mind.tenant_id):
        name_cluster(cluster_id=jazz.id, name=" Evenings at  the club ")
        Cluster.objects.filter(id=bread.id).update(name="old words", keywords=["old", "words"], stale=True)
        Cluster.objects.filter(id=bread.id).update(name="old, words")
    order(mind)
    assert about(mind, told["jazz"]).name == "Evenings at the club"
    assert about(mind, told["bread"]).name == ", ".join(about(mind, told["bread"]).keywords[:3])
    for name in ("", "x" * 201, "a\0b"):
        with pytest.raises(Invalid, match="1 to 200"), tenant_transaction(mind.tenant_id):
            name_cluster(cluster_id=jazz.id, name=name)


def test_two_workers_that_put_one_mind_in_order_at_once_do_it_once(mind: Agent) -> None:
    tell_of_everything(mind)
    did = at_once(lambda _: order(mind), writers=3)
    assert sorted(did)[-1] == 30
    assert sorted(map(len, members(mind).values())) == [6, 6, 6]


def test_what_was_put_in_order_by_somebody_else_meanwhile_is_left_alone(mind: Agent) -> None:
    tell_of_everything(mind)
    with tenant_transaction(mind.tenant_id):
        late = clustering.Order.read(mind.id)
    assert late is not None
    plan = clustering.plan_order(late, deviations=3.5)
    order(mind)
    before = members(mind)
    with tenant_transaction(mind.tenant_id):
        plan.read_words()
    plan.describe()
    with tenant_transaction(mind.tenant_id):
        assert plan.write() is False
    assert members(mind) == before


def test_what_is_archived_while_a_mind_is_put_in_order_is_in_no_theme_afterwards(mind: Agent) -> None:
    told = tell_of_everything(mind)
    with tenant_transaction(mind.tenant_id):
        read = clustering.Order.read(mind.id)
    assert read is not None
    plan = clustering.plan_order(read, deviations=3.5)
    gone = told["jazz"][0]
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=[gone], reason="a test", actor="system:test")
        plan.read_words()
    plan.describe()
    with tenant_transaction(mind.tenant_id):
        assert plan.write()
    cluster = about(mind, told["jazz"][1:])
    assert members(mind)[cluster.id] == set(told["jazz"][1:])
    assert (cluster.size, cluster.stale) == (5, True)


def test_a_theme_that_loses_its_members_dissolves(mind: Agent) -> None:
    told = tell_of_everything(mind)
    order(mind)
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=told["jazz"][:4], reason="a test", actor="system:test")
    assert stale(mind) == 1
    assert tend_clusters().steps == 0, "not before its time"
    pass_time(mind)
    assert tend_clusters().done > 0
    assert sorted(map(len, members(mind).values())) == [6, 6]


def test_an_agent_moved_to_other_vectors_gets_new_centres(mind: Agent) -> None:
    told = tell_of_everything(mind)
    order(mind)
    cluster = about(mind, told["jazz"])
    with tenant_transaction(mind.tenant_id):
        # As taking over does: all vectors of another length, the mind told so.
        for memory in Memory.objects.filter(agent_id=mind.id):
            memory.embedding = memory.embedding[:128]
            memory.save(update_fields=["embedding"])
        Mind.objects.filter(agent_id=mind.id).update(embedding_dimension=128)
        assert clustering.read_centres(mind.id, clustering.model_of(mind.id))[0] == []
        Cluster.objects.filter(agent_id=mind.id).update(centroid=None, stale=True)
    assert tend_clusters().done == 30, "at once, for a theme without a centre is none"
    assert about(mind, told["jazz"]).id == cluster.id
    assert len(about(mind, told["jazz"]).centroid) == 128


@pytest.mark.parametrize("deviations", [0.0, 11.0, float("nan")])
def test_a_setting_that_makes_no_sense_is_named(mind: Agent, settings: Any, deviations: float) -> None:
    settings.ARBOR_CLUSTER_DEVIATIONS = deviations
    tell(mind, "jazz", 4)
    with pytest.raises(ConfigurationInvalid, match=r"0\.5 to 10"):
        order(mind)


# --- Between two orders ------------------------------------------------------------------------------


def test_a_new_memory_finds_its_theme_before_the_mind_is_put_in_order_again(mind: Agent) -> None:
    told = tell_of_everything(mind)
    order(mind)
    more = tell(mind, "jazz", 2, seed=9, days=30)
    with tenant_transaction(mind.tenant_id):
        (loner,) = store(
            agent_id=mind.id, memories=[a_memory("Alone.")], vectors=vectors_about("jazz", 1) * -1
        ).ids
    assert tend_clusters().done == 2
    cluster = about(mind, told["jazz"])
    assert members(mind)[cluster.id] == {*told["jazz"], *more}
    assert (cluster.size, cluster.stale) == (8, True)
    assert waiting(mind) == {loner}
    assert tend_agent(mind.tenant_id, mind.id) == 0
    pass_time(mind)
    assert tend_clusters().done == 33
    assert waiting(mind) == set()
    assert about(mind, told["jazz"]).stale is False


def test_workers_that_assign_the_same_memories_at_once_count_each_once(mind: Agent) -> None:
    told = tell_of_everything(mind)
    order(mind)
    tell(mind, "jazz", 4, seed=9, days=30)
    assert sum(at_once(lambda _: tend_agent(mind.tenant_id, mind.id), writers=3)) == 4
    assert about(mind, told["jazz"]).size == 10


def test_one_memory_is_assigned_on_demand(mind: Agent) -> None:
    told = tell_of_everything(mind)
    order(mind)
    (memory_id,) = tell(mind, "bread", 1, seed=9, days=30)
    with tenant_transaction(mind.tenant_id):
        found = assign_memory_to_clusters(memory_id=memory_id, max_clusters=1)
        assert assign_memory_to_clusters(memory_id=memory_id) == found
        assert assign_memory_to_clusters(memory_id=told["nothing"][0]) == {}
        assert list(found) == [about(mind, told["bread"]).id]
        assert 0.5 < found[about(mind, told["bread"]).id] <= 1
        with pytest.raises(NotFound):
            assign_memory_to_clusters(memory_id=uuid4())
        for number in (0, 4):
            with pytest.raises(Invalid, match="1 to 3"):
                assign_memory_to_clusters(memory_id=memory_id, max_clusters=number)


def test_what_is_archived_leaves_its_cluster_and_comes_back_when_it_is_restored(mind: Agent) -> None:
    told = tell_of_everything(mind)
    order(mind)
    gone = told["jazz"][0]
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=[gone], reason="a test", actor="system:test")
    cluster = about(mind, told["jazz"][1:])
    assert members(mind)[cluster.id] == set(told["jazz"][1:])
    assert (cluster.size, cluster.stale) == (5, True)
    with tenant_transaction(mind.tenant_id):
        restore(memory_ids=[gone], reason="a test", actor="system:test")
        assert mark_clusters_stale([uuid4()]) == mark_clusters_stale([]) == 0
    assert waiting(mind) == {gone}
    assert tend_clusters().done == 1
    assert members(mind)[cluster.id] == set(told["jazz"])


def test_one_cluster_is_computed_anew_on_demand(mind: Agent) -> None:
    told = tell_of_everything(mind)
    order(mind)
    cluster = about(mind, told["jazz"])
    with tenant_transaction(mind.tenant_id):
        ClusterMember.objects.filter(cluster_id=cluster.id).exclude(memory_id=told["jazz"][0]).delete()
        recalculate_cluster(cluster_id=cluster.id)
        with pytest.raises(NotFound):
            recalculate_cluster(cluster_id=uuid4())
    own = about(mind, told["jazz"])
    assert own.size == 1
    assert np.asarray(own.centroid) == pytest.approx(vectors_about("jazz", 6)[0], abs=1e-3)


# --- What they hold, and how they are related --------------------------------------------------------


def test_members_are_shown_the_nearest_first_and_archived_ones_not(mind: Agent) -> None:
    told = tell_of_everything(mind)
    order(mind)
    cluster = about(mind, told["jazz"])
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=told["jazz"][0]).update(status="archived")
        shown = cluster_members(cluster_id=cluster.id)
        assert {each.memory_id for each in shown} == set(told["jazz"][1:])
        assert [each.strength for each in shown] == sorted((each.strength for each in shown), reverse=True)
        assert len(cluster_members(cluster_id=cluster.id, limit=2)) == 2
        for limit in (0, 1_000_000):
            with pytest.raises(Invalid, match="1 to 200"):
                cluster_members(cluster_id=cluster.id, limit=limit)


def test_relations_between_memories_become_relations_between_their_themes(
    mind: Agent, foreign_mind: Agent
) -> None:
    told = tell_of_everything(mind)
    with tenant_transaction(mind.tenant_id):
        for target, relation in (("bread", "contradicts"), ("chess", "causes"), ("nothing", "causes")):
            Edge.objects.create(
                tenant_id=mind.tenant_id,
                agent_id=mind.id,
                source_kind="memory",
                source_id=told["jazz"][0],
                target_kind="memory",
                target_id=told[target][0],
                relation=relation,
                weight=0.5,
            )
    order(mind)
    jazz, bread, chess = (about(mind, told[subject]) for subject in ("jazz", "bread", "chess"))
    with tenant_transaction(mind.tenant_id):
        shown = {
            (each.id, each.relation.value, each.leads) for each in find_related_clusters(cluster_id=jazz.id)
        }
        assert shown == {(bread.id, "contradicts", True), (chess.id, "causes", True)}
        (found,) = find_related_clusters(cluster_id=chess.id)
        assert (found.id, found.leads, found.strength, found.keywords) == (
            jazz.id,
            False,
            0.5,
            tuple(jazz.keywords),
        )
        assert [each.id for each in find_related_clusters(cluster_id=bread.id)] == [jazz.id]
    with tenant_transaction(foreign_mind.tenant_id), pytest.raises(NotFound):
        find_related_clusters(cluster_id=jazz.id)
    with tenant_transaction(mind.tenant_id):
        Edge.objects.all().delete()
    order(mind)
    with tenant_transaction(mind.tenant_id):
        assert not ClusterRelation.objects.exists()


def test_real_texts_fall_into_themes_by_the_embedded_model(mind: Agent) -> None:
    said = [
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
    stored = remember(tenant_id=mind.tenant_id, agent_id=mind.id, memories=[a_memory(text) for text in said])
    order(mind)
    assert {frozenset(each) for each in members(mind).values()} == {
        frozenset(stored.ids[:4]),
        frozenset(stored.ids[4:8]),
    }
    assert about(mind, list(stored.ids)).keywords[0] in {"sourdough", "baked", "oven", "morning"}
