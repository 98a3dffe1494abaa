"""Clusters: independent of the embedder and of the order of memories."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.embedding.ports import Vectors
from arbor.errors import Invalid
from arbor.memory.clusters.clusters import (
    MAX_CLUSTERS_OF_MEMORY,
    MIN_COSINE,
    ClusterResonance,
    ClusterValue,
    Cosines,
    MemberFeeling,
    assign,
    centroid_of,
    check_vectors,
    cosines_among,
    emotional_signature,
    find_partial_recalls,
)
from arbor.memory.clusters.links import (
    ClusterLink,
    MemoryRelation,
    PlacedCluster,
    RankedClusterLink,
    link_clusters,
    middle_half,
)
from arbor.memory.clusters.reclustering import recluster
from arbor.memory.relations import Relation

IDS = [UUID(int=number) for number in range(400)]


def mind_vectors(
    seed: int, *, groups: int = 4, members: int = 5, others: int = 15, width: int = 64
) -> Vectors:
    """Return vectors of a mind with this number of groups, and distant other vectors."""
    chance = np.random.default_rng(seed)
    centers = np.repeat(chance.standard_normal((groups, width)), members, axis=0)
    rows = np.concatenate([centers, np.zeros((others, width))]) + np.concatenate(
        [0.4 * chance.standard_normal((groups * members, width)), chance.standard_normal((others, width))]
    )
    return check_vectors(rows)


def grouping(clusters: list[ClusterValue]) -> set[frozenset[UUID]]:
    return {frozenset(cluster.members) for cluster in clusters}


# --- Nearness ----------------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.integers(2, 30))
def test_mean_and_deviation_of_cosines_are_those_of_all_pairs(seed: int, count: int) -> None:
    rows = check_vectors(np.random.default_rng(seed).standard_normal((count, 8)))
    pairs = (rows @ rows.T)[np.triu_indices(count, 1)]
    cosines = cosines_among(rows)
    assert cosines.mean == pytest.approx(pairs.mean(), abs=1e-5)
    assert cosines.deviation == pytest.approx(pairs.std(), abs=1e-4)


@pytest.mark.parametrize(
    ("mean", "deviation", "deviations", "cosine"),
    [
        (0.15, 0.12, 3.5, 0.57),
        (0.75, 0.04, 3.5, 0.875),
        (0.0, 0.01, 3.5, MIN_COSINE),
        (0.2, 0.2, 3.5, 0.6),
        (1.0, 0.0, 3.5, 1.0),
    ],
)
def test_the_threshold_follows_the_usual_cosine_within_bounds(
    mean: float, deviation: float, deviations: float, cosine: float
) -> None:
    assert Cosines(mean=mean, deviation=deviation).at(deviations) == pytest.approx(cosine, abs=2e-3)


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda row: math.hypot(*row) > 1e-3))
def test_the_center_of_one_member_is_that_member(row: list[float]) -> None:
    vectors = check_vectors([row])
    assert centroid_of(vectors) == pytest.approx(vectors[0], abs=1e-6)


def test_vectors_that_cancel_out_have_no_center() -> None:
    assert centroid_of(check_vectors([[1, 0], [-1, 0]])) is None
    assert centroid_of(check_vectors([[1, 0]])[:0]) is None


@pytest.mark.parametrize(
    "rows", [[[math.nan, 1.0]], [[math.inf, 1.0]], [[0.0, 0.0]], [1.0, 2.0], [[1.0, 2.0, 3.0]]]
)
def test_incomparable_vectors_are_refused(rows: list[Any]) -> None:
    with pytest.raises(Invalid, match="vectors must"):
        check_vectors(rows, dimension=2)


# --- Assignment --------------------------------------------------------------------------------------


@given(st.integers(0, 500))
def test_a_memory_joins_at_most_three_near_clusters(seed: int) -> None:
    chance = np.random.default_rng(seed)
    rows, centers = (check_vectors(chance.standard_normal((count, 3))) for count in (20, 9))
    cosines = rows @ centers.T
    for strengths, near in zip(assign(rows, centers, least=0.4), cosines, strict=True):
        best = [
            column
            for column in np.argsort(-near, kind="stable")[:MAX_CLUSTERS_OF_MEMORY]
            if near[column] >= 0.4
        ]
        assert set(np.flatnonzero(strengths)) == set(best)


@given(st.integers(0, 500))
def test_assignment_does_not_depend_on_the_order_of_memories(seed: int) -> None:
    chance = np.random.default_rng(seed)
    rows, centers = (check_vectors(chance.standard_normal((count, 5))) for count in (20, 9))
    order = chance.permutation(20)
    assert assign(rows[order], centers, least=0.3) == pytest.approx(assign(rows, centers, least=0.3)[order])


def test_a_memory_stays_in_its_cluster_while_near_enough() -> None:
    rows = check_vectors([[1.0, 0.9], [1.0, 2.0]])
    centers = check_vectors([[1.0, 0.0], [0.0, 1.0]])
    current = np.array([[True, False], [True, False]])
    strengths = assign(rows, centers, least=0.8, members=current, leaves=0.7, most=1)
    assert (strengths > 0).tolist() == [[True, False], [False, True]]


# --- Order -------------------------------------------------------------------------------------------


@given(st.integers(0, 300))
def test_the_same_memories_form_the_same_clusters_in_any_order(seed: int) -> None:
    rows = mind_vectors(seed)
    ids = IDS[: len(rows)]
    order = np.random.default_rng(seed).permutation(len(rows))
    assert grouping(recluster([ids[place] for place in order], rows[order], [])) == grouping(
        recluster(ids, rows, [])
    )


@given(st.integers(0, 300))
def test_clusters_have_three_members_or_more(seed: int) -> None:
    rows = mind_vectors(seed, groups=6, members=4, width=12)
    clusters = recluster(IDS[: len(rows)], rows, [])
    count: dict[UUID, int] = {}
    for cluster in clusters:
        assert len(cluster.members) >= 3
        assert all(0 < strength <= 1 for strength in cluster.members.values())
        assert cluster.centroid is not None
        assert np.linalg.norm(cluster.centroid) == pytest.approx(1, abs=1e-5)
        for memory_id in cluster.members:
            count[memory_id] = count.get(memory_id, 0) + 1
    assert all(number <= MAX_CLUSTERS_OF_MEMORY for number in count.values())


def test_groups_become_clusters_and_outliers_stay_out() -> None:
    rows = mind_vectors(1)
    clusters = recluster(IDS[: len(rows)], rows, [])
    assert grouping(clusters) == {frozenset(IDS[start : start + 5]) for start in range(0, 20, 5)}


@given(st.integers(0, 100))
def test_stable_clusters_do_not_change(seed: int) -> None:
    rows = mind_vectors(seed)
    ids = IDS[: len(rows)]
    first = recluster(ids, rows, [])
    existing = [
        ClusterValue(id=IDS[300 + place], centroid=None, members=cluster.members)
        for place, cluster in enumerate(first)
    ]
    again = recluster(ids, rows, existing)
    assert grouping(again) == grouping(first)
    assert [cluster.id for cluster in again] == [cluster.id for cluster in existing]


def test_two_near_clusters_merge_into_the_larger_or_named_one() -> None:
    rows = mind_vectors(1)
    ids = IDS[: len(rows)]

    def existing(*, named: bool) -> list[ClusterValue]:
        return [
            ClusterValue(id=IDS[300], centroid=None, members=dict.fromkeys(ids[:3], 0.9)),
            ClusterValue(id=IDS[301], centroid=None, members=dict.fromkeys(ids[3:5], 0.9), named=named),
        ]

    def merged_ids(clusters: list[ClusterValue]) -> list[UUID | None]:
        return [cluster.id for cluster in clusters if ids[0] in cluster.members]

    assert merged_ids(recluster(ids, rows, existing(named=False))) == [IDS[300]]
    assert merged_ids(recluster(ids, rows, existing(named=True))) == [IDS[301]]


def test_a_cluster_without_members_dissolves() -> None:
    rows = mind_vectors(1)
    ids = IDS[: len(rows)]
    alone = dict.fromkeys(ids[20:21], 1.0)
    existing = [
        ClusterValue(id=IDS[300], centroid=rows[0], members=dict.fromkeys(IDS[200:210], 1.0)),
        ClusterValue(id=IDS[301], centroid=None, members=alone),
        ClusterValue(id=IDS[302], centroid=None, members=dict.fromkeys(ids[21:22], 1.0), named=True),
    ]
    assert [cluster.id for cluster in recluster(ids, rows, existing) if cluster.id] == [IDS[302]]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_mind_with_few_memories_has_no_cluster(count: int) -> None:
    assert recluster(IDS[:count], mind_vectors(1)[:count], []) == []


def test_identical_memories_form_one_cluster() -> None:
    rows = check_vectors(np.ones((10, 4)))
    assert grouping(recluster(IDS[:10], rows, [])) == {frozenset(IDS[:10])}


def test_ids_and_vectors_of_different_lengths_are_refused() -> None:
    with pytest.raises(Invalid, match="one vector for each id"):
        recluster(IDS[:3], mind_vectors(1)[:4], [])
    with pytest.raises(Invalid, match="one vector for each id"):
        recluster([IDS[0], IDS[0]], mind_vectors(1)[:2], [])


# --- Feeling -----------------------------------------------------------------------------------------


def test_a_cluster_has_the_mean_valence_of_its_members() -> None:
    feeling = emotional_signature(
        [
            MemberFeeling(strength=0.9, valence=-0.6, importance=1.0),
            MemberFeeling(strength=0.3, valence=0.2, importance=0.0),
        ]
    )
    assert (feeling.valence, feeling.intensity, feeling.importance) == pytest.approx((-0.2, 0.4, 0.75))
    assert emotional_signature([]).importance == 0


# --- Partial recalls ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("center", "best_memory", "partial"),
    [
        (0.50, 0.40, True),
        (0.50, 0.44, True),
        (0.50, 0.46, False),
        (0.39, 0.30, False),
        (0.41, 0.42, False),
        (0.70, 0.69, False),
    ],
)
def test_a_resonant_cluster_without_clear_memory_is_partial(
    center: float, best_memory: float, partial: bool
) -> None:
    cosines = Cosines(mean=0.1, deviation=0.1)
    resonances = find_partial_recalls(
        [ClusterResonance(id=IDS[0], center=center, best_memory=best_memory)], cosines
    )
    assert bool(resonances) is partial


def test_the_nearest_three_clusters_are_partially_recalled() -> None:
    clusters = [
        ClusterResonance(id=IDS[place], center=0.45 + place / 100, best_memory=0.3) for place in range(6)
    ]
    resonances = find_partial_recalls(clusters, Cosines(mean=0.1, deviation=0.1))
    assert [resonance.id for resonance in resonances] == [IDS[5], IDS[4], IDS[3]]


# --- Relations ---------------------------------------------------------------------------------------

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def placed_cluster(place: int, members: range, center: list[float], *, day: int = 0) -> PlacedCluster:
    return PlacedCluster(
        id=IDS[300 + place],
        centroid=check_vectors([center])[0],
        members=frozenset(IDS[place] for place in members),
        began=NOON + timedelta(days=day),
        ended=NOON + timedelta(days=day + 5),
    )


def link_values(links: list[RankedClusterLink]) -> set[tuple[int, str, int, float]]:
    return {
        (link.source.int - 300, link.link.value, link.target.int - 300, round(link.strength, 3))
        for link in links
    }


def test_clusters_overlap_resemble_and_evolve() -> None:
    clusters = [
        placed_cluster(0, range(10), [1, 0.1], day=0),
        placed_cluster(1, range(8, 16), [1, 0.2], day=30),
        placed_cluster(2, range(30, 34), [0, 1], day=3),
    ]
    near = float(clusters[0].centroid @ clusters[1].centroid)
    assert link_values(link_clusters(clusters, [], near=0.9)) == {
        (0, "overlaps", 1, 0.25),
        (1, "overlaps", 0, 0.25),
        (0, "similar", 1, round(near, 3)),
        (1, "similar", 0, round(near, 3)),
        (0, "evolves_into", 1, round(near, 3)),
    }


def test_relations_between_members_add_up_as_evidence() -> None:
    clusters = [placed_cluster(0, range(3), [1, 0]), placed_cluster(1, range(5, 8), [0, 1])]
    relations = [
        MemoryRelation(source=IDS[0], target=IDS[5], relation=Relation.CONTRADICTS, weight=0.5),
        MemoryRelation(source=IDS[6], target=IDS[1], relation=Relation.CONTRADICTS, weight=0.5),
        MemoryRelation(source=IDS[0], target=IDS[1], relation=Relation.CAUSES, weight=1.0),
        MemoryRelation(source=IDS[0], target=IDS[90], relation=Relation.CAUSES, weight=1.0),
        MemoryRelation(source=IDS[0], target=IDS[5], relation=Relation.REMINDS_OF, weight=1.0),
        MemoryRelation(source=IDS[7], target=IDS[2], relation=Relation.CAUSES, weight=0.3),
    ]
    assert link_values(link_clusters(clusters, relations, near=0.9)) == {
        (0, "contradicts", 1, 0.75),
        (1, "contradicts", 0, 0.75),
        (1, "causes", 0, 0.3),
    }


def test_a_contradiction_within_two_clusters_counts_once() -> None:
    clusters = [placed_cluster(0, range(3), [1, 0]), placed_cluster(1, range(3), [0, 1])]
    relations = [MemoryRelation(source=IDS[0], target=IDS[1], relation=Relation.CONTRADICTS, weight=0.5)]
    found = link_values(link_clusters(clusters, relations, near=0.9))
    assert {value for value in found if value[1] == "contradicts"} == {
        (0, "contradicts", 1, 0.5),
        (1, "contradicts", 0, 0.5),
    }


def test_only_the_strongest_links_of_a_kind_stay() -> None:
    clusters = [placed_cluster(place, range(10), [1, place / 100]) for place in range(15)]
    links = link_clusters(clusters, [], near=2.0)
    assert len(links) == 150
    assert {link.link for link in links} == {ClusterLink.OVERLAPS}


def test_the_middle_half_omits_the_first_and_last_quarter() -> None:
    days = [NOON + timedelta(days=day) for day in (0, 100, 101, 102, 900)]
    assert middle_half(days) == (days[1], days[3])
    assert middle_half(days[:1]) == (NOON, NOON)
