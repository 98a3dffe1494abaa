"""What an inquiry searches for and reads."""

from __future__ import annotations

import pytest

from arbor.web.plan import Depth, choose_pages, plan_inquiry
from arbor.web.ports import SearchResult

QUESTION = "How deep is the reef off the north shore?"


@pytest.mark.parametrize(
    ("depth", "queries", "planned"),
    [
        (Depth.SHALLOW, [], (QUESTION,)),
        (Depth.SHALLOW, ["reef depth"], ("reef depth",)),
        (Depth.SHALLOW, ["reef depth", " Reef  DEPTH "], ("reef depth",)),
        (Depth.SHALLOW, ["a", "b", "c"], ("a", "b")),
        (Depth.SHALLOW, [" "], (QUESTION,)),
        (Depth.DEEP, ["a", "b", "c"], ("a", "b", "c")),
        (Depth.DEEP, ["a", "b", "c", "d", "e", "f"], ("a", "b", "c", "d", "e")),
        (Depth.DEEP, ["a"], ("a", QUESTION, "deep reef north shore")),
        (Depth.DEEP, [], (QUESTION, "deep reef north shore", "deep reef north shore evidence")),
    ],
)
def test_the_models_queries_go_first_and_the_question_fills_up(
    depth: Depth, queries: list[str], planned: tuple[str, ...]
) -> None:
    assert plan_inquiry(QUESTION, queries, depth).queries == planned


@pytest.mark.parametrize(("depth", "pages"), [(Depth.SHALLOW, 3), (Depth.DEEP, 10)])
def test_the_deep_one_reads_more(depth: Depth, pages: int) -> None:
    assert plan_inquiry(QUESTION, [], depth).pages == pages


def test_the_best_of_each_search_are_read_first_and_each_address_once() -> None:
    def results(*urls: str) -> list[SearchResult]:
        return [SearchResult(url=url) for url in urls]

    chosen = choose_pages([results("a", "b", "c"), [], results("b#part", "d")], 3)

    assert [result.url for result in chosen] == ["a", "b#part", "d"]
