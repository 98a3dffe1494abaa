"""Traversals: their limits, and the paths made of their steps."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import Invalid
from arbor.memory.relations import (
    ALL_RELATIONS,
    LABEL_LENGTH,
    MAX_HOPS,
    NOTE_LENGTH,
    GraphNode,
    GraphNodeKind,
    Relation,
    TraversalStep,
    TraversedEdge,
    both_directions,
    check_edge,
    check_hops,
    label_of,
    reached_nodes,
)

NODES = [GraphNode(GraphNodeKind.MEMORY, UUID(int=number)) for number in range(1, 16)]
edges = st.lists(
    st.tuples(
        st.integers(0, 14), st.integers(0, 14), st.sampled_from([Relation.CAUSES, Relation.SUPPORTS])
    ).filter(lambda edge: edge[0] != edge[1]),
    max_size=40,
    unique=True,
)


def levels_of(
    drawn: list[tuple[int, int, Relation]], start: int
) -> tuple[list[list[TraversalStep]], dict[int, int]]:
    """Traverse the drawn edges breadth first; return the steps by level, and the distance of each node from the start."""
    distances = {start: 0}
    levels: list[list[TraversalStep]] = []
    frontier = [start]
    while frontier:
        level: dict[int, TraversalStep] = {}
        for source, target, relation in drawn:
            for via, neighbor, forward in ((source, target, True), (target, source, False)):
                if via in frontier and neighbor not in distances and neighbor not in level:
                    level[neighbor] = TraversalStep(NODES[neighbor], NODES[via].id, relation, 1.0, forward)
        distances |= dict.fromkeys(level, len(levels) + 1)
        levels.append(list(level.values()))
        frontier = list(level)
    return levels, distances


@given(edges, st.integers(0, 14))
def test_paths_follow_edges_at_the_shortest_distance(
    drawn: list[tuple[int, int, Relation]], start: int
) -> None:
    levels, distances = levels_of(drawn, start)
    paths = reached_nodes(NODES[start], levels)
    assert {reached.node for reached in paths} == {NODES[number] for number in distances if number != start}
    relations = {(NODES[source], NODES[target], relation) for source, target, relation in drawn}
    for reached in paths:
        assert reached.hops == distances[NODES.index(reached.node)]
        node = NODES[start]
        for edge in reached.path:
            assert (edge.source, edge.target, edge.relation) in relations
            assert node in (edge.source, edge.target)
            node = edge.target if edge.source == node else edge.source
        assert node == reached.node
    assert [reached.hops for reached in paths] == sorted(reached.hops for reached in paths)


def test_an_edge_traversed_backwards_preserves_its_direction() -> None:
    (path,) = reached_nodes(NODES[0], [[TraversalStep(NODES[1], NODES[0].id, Relation.CAUSES, 0.5, False)]])
    assert path.path == (
        TraversedEdge(source=NODES[1], target=NODES[0], relation=Relation.CAUSES, weight=0.5),
    )


@pytest.mark.parametrize("hops", [0, -1, MAX_HOPS + 1, 1_000_000])
def test_the_length_of_a_traversal_is_limited(hops: int) -> None:
    with pytest.raises(Invalid, match=f"1 to {MAX_HOPS}"):
        check_hops(hops)


@pytest.mark.parametrize("weight", [-0.1, 1.1, 10**400, float("nan"), float("inf")])
def test_a_weight_outside_zero_to_one_is_refused(weight: float) -> None:
    with pytest.raises(Invalid, match="0 to 1"):
        check_edge(NODES[0], NODES[1], weight=weight, note="")


def test_self_relations_and_long_notes_are_refused() -> None:
    with pytest.raises(Invalid, match="cannot be related to itself"):
        check_edge(NODES[0], NODES[0], weight=1, note="")
    for note in ("x" * (NOTE_LENGTH + 1), "\0"):
        with pytest.raises(Invalid, match="note"):
            check_edge(NODES[0], NODES[1], weight=1, note=note)


def test_named_relations_are_followed_in_both_directions() -> None:
    assert both_directions(None) == ALL_RELATIONS
    assert (
        both_directions([Relation.CAUSES]).forward
        == both_directions([Relation.CAUSES]).backward
        == {Relation.CAUSES}
    )


@given(st.text())
def test_a_label_is_one_short_line(text: str) -> None:
    label = label_of(text)
    assert len(label) <= LABEL_LENGTH
    assert len(label.splitlines()) <= 1
