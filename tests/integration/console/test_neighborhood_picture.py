"""The drawing of a neighborhood: everything in its place, whatever the texts and weights."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from apps.console.pictures.neighborhood import LABEL, WIDTH, Neighbor, draw_neighborhood
from arbor.memory.neighborhood import KEPT


def neighbor(number: int, weight: float = 1.0, text: str = "the river", relation: str = "") -> Neighbor:
    return Neighbor(
        id=UUID(int=number), page=f"/{number}/", text=text, type="semantic", weight=weight, relation=relation
    )


def test_an_empty_neighborhood_has_no_picture() -> None:
    assert draw_neighborhood([]) is None


def test_the_closest_is_the_nearest_and_level_with_the_memory() -> None:
    star = draw_neighborhood([neighbor(n, weight=1.8 - n / 10) for n in range(6)])
    assert star is not None
    first, *rest = star.dots
    near = abs(first.x - star.x)
    assert all(abs(dot.x - star.x) > near for dot in rest)
    assert all(dot.thickness < first.thickness for dot in rest)
    assert min(abs(dot.y - star.y) for dot in star.dots) == abs(first.y - star.y)


def test_a_relation_of_the_graph_is_marked() -> None:
    star = draw_neighborhood([neighbor(1, relation="supports"), neighbor(2)])
    assert star is not None
    assert [dot.related for dot in star.dots] == [True, False]
    assert star.dots[0].title.endswith("weight 1.00 of 1.8, supports")


@given(
    st.lists(
        st.builds(neighbor, st.integers(0, 2**64), st.floats(0, 5), st.text(max_size=400)), max_size=KEPT
    )
)
def test_every_neighbor_is_inside_and_none_covers_another(neighbors: list[Neighbor]) -> None:
    star = draw_neighborhood(sorted(neighbors, key=lambda neighbor: -neighbor.weight))
    if star is None:
        assert not neighbors
        return
    assert len(star.dots) == len(neighbors)
    assert all(0 < dot.x < WIDTH and 0 < dot.y < star.height for dot in star.dots)
    assert all(len(dot.label) <= LABEL for dot in star.dots)
    assert all(dot.thickness <= 1 + 2.6 for dot in star.dots)
    assert len({(dot.x > star.x, dot.y) for dot in star.dots}) == len(neighbors)
