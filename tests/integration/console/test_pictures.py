"""Drawings of pipelines and neighborhoods."""

from __future__ import annotations

from itertools import combinations
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from apps.console.pictures.neighborhood import LABEL_LENGTH, WIDTH, Neighbor, draw_neighborhood
from apps.console.pictures.pipeline import BOX_HEIGHT, BOX_WIDTH, Box, NodeVisits, draw_pipeline
from arbor.memory.neighborhood import NEIGHBORHOOD_SIZE
from arbor.pipeline.graph import heartbeat_text

TEXT = """digraph own {
    begin [shape=Mdiamond]; look [type="observe", label="Look around"]; think [type="think"];
    good [shape=Msquare, outcome=success]; bad [shape=Msquare, outcome=failure];
    begin -> look -> think -> good; think -> bad [condition="outcome=failure"]; think -> look [condition="outcome=retry"];
}"""


def overlap(first: Box, second: Box) -> bool:
    return abs(first.x - second.x) < BOX_WIDTH and abs(first.y - second.y) < BOX_HEIGHT


def passed(*names: str) -> dict[str, NodeVisits]:
    return {name: NodeVisits(outcome="success", milliseconds=1.0) for name in names}


def test_a_successful_run_is_marked_from_start_to_exit() -> None:
    picture = draw_pipeline(TEXT, visits=passed("look", "think"), path=["look", "think"], ended="success")
    assert picture is not None
    outcomes = {box.name: box.outcome for box in picture.boxes}
    assert outcomes == {
        "begin": "success",
        "look": "success",
        "think": "success",
        "good": "success",
        "bad": "none",
    }
    assert {arrow.title for arrow in picture.arrows if arrow.passed} == {
        "begin to look",
        "look to think",
        "think to good",
    }


def test_a_failed_run_ends_in_the_failed_exit() -> None:
    visits = passed("look") | {"think": NodeVisits(outcome="failure", milliseconds=2.0)}
    picture = draw_pipeline(TEXT, visits=visits, path=["look", "think"], ended="failure")
    assert picture is not None
    outcomes = {box.name: box.outcome for box in picture.boxes}
    assert (outcomes["think"], outcomes["bad"], outcomes["good"]) == ("failure", "failure", "none")


def test_an_unfinished_run_reaches_no_exit() -> None:
    picture = draw_pipeline(TEXT, visits=passed("look"), path=["look"], ended="")
    assert picture is not None
    assert {box.name for box in picture.boxes if box.outcome != "none"} == {"begin", "look"}


def test_a_repeated_visit_is_counted() -> None:
    visits = {"look": NodeVisits(outcome="retry", milliseconds=3.0, visits=2)}
    picture = draw_pipeline(TEXT, visits=visits, path=["look"], ended="")
    assert picture is not None
    assert next(box.note for box in picture.boxes if box.name == "look") == "3.0 ms ×2"


def test_the_default_pipeline_fits_without_overlaps() -> None:
    picture = draw_pipeline(heartbeat_text(), visits={}, path=[], ended="")
    assert picture is not None
    assert len(picture.boxes) >= 14
    for first, second in combinations(picture.boxes, 2):
        assert not overlap(first, second), (first.name, second.name)
    for box in picture.boxes:
        assert 0 <= box.x <= picture.width - BOX_WIDTH
        assert 0 <= box.y <= picture.height - BOX_HEIGHT


def test_an_invalid_pipeline_has_no_picture() -> None:
    assert draw_pipeline("not a graph", visits={}, path=[], ended="") is None
    assert draw_pipeline("", visits={}, path=[], ended="") is None


def neighbor(number: int, weight: float = 1.0, text: str = "the river", relation: str = "") -> Neighbor:
    return Neighbor(
        id=UUID(int=number), page=f"/{number}/", text=text, type="semantic", weight=weight, relation=relation
    )


def test_an_empty_neighborhood_has_no_picture() -> None:
    assert draw_neighborhood([]) is None


def test_the_closest_neighbor_is_nearest_and_level() -> None:
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
        st.builds(neighbor, st.integers(0, 2**64), st.floats(0, 5), st.text(max_size=400)),
        max_size=NEIGHBORHOOD_SIZE,
    )
)
def test_every_neighbor_is_inside_and_none_covers_another(neighbors: list[Neighbor]) -> None:
    star = draw_neighborhood(sorted(neighbors, key=lambda neighbor: -neighbor.weight))
    if star is None:
        assert not neighbors
        return
    assert len(star.dots) == len(neighbors)
    assert all(0 < dot.x < WIDTH and 0 < dot.y < star.height for dot in star.dots)
    assert all(len(dot.label) <= LABEL_LENGTH for dot in star.dots)
    assert all(dot.thickness <= 1 + 2.6 for dot in star.dots)
    assert len({(dot.x > star.x, dot.y) for dot in star.dots}) == len(neighbors)
