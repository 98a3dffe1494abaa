"""Inquiries on the web: plans, searches and pages."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from arbor.errors import WebFailed, WebRefused
from arbor.web import lookup
from arbor.web.lookup import PAGE_LENGTH, SNIPPET_HEADING, Findings, look_up
from arbor.web.plan import Depth, choose_pages, plan_inquiry
from arbor.web.ports import Page, ScriptedPages, ScriptedSearch, SearchResult

PLAN = plan_inquiry("How deep?", ["one", "two"], Depth.SHALLOW)


def results(*urls: str) -> list[SearchResult]:
    """Return results with these addresses."""
    return [SearchResult(url=url, title=f"about {url}") for url in urls]


def test_pages_are_cut_and_failures_listed_in_their_order() -> None:
    search = ScriptedSearch({"one": results("a", "missing"), "two": WebFailed("the search is away")})
    findings = look_up(PLAN, search=search, fetch=ScriptedPages({"a": "x" * 9_000}), deadline_s=5)

    (page,) = findings.pages
    assert (page.url, page.text.count("x")) == ("a", PAGE_LENGTH)
    assert page.text.endswith("… (the page goes on; 9000 characters in all)")
    assert findings.failures == ("search 'two': the search is away", "missing answered 404")
    assert Findings.from_json(findings.to_json()) == findings


@pytest.mark.parametrize(
    ("search", "pages", "message"),
    [
        ({"": WebFailed("away")}, {}, "search 'one': away; search 'two': away"),
        ({}, {}, "nothing was found for one, two"),
        ({"": results("a")}, {}, "the only page could not be read: a answered 404"),
        ({"": results("a")}, {"a": "  "}, "a has no text"),
    ],
)
def test_a_lookup_that_reads_no_page_is_a_failure(
    search: dict[str, list[SearchResult]], pages: dict[str, str], message: str
) -> None:
    with pytest.raises(WebFailed, match=message):
        look_up(PLAN, search=ScriptedSearch(search), fetch=ScriptedPages(pages), deadline_s=5)


def test_a_snippet_replaces_a_failed_page_but_not_a_refused_one() -> None:
    class Pages(ScriptedPages):
        def fetch(self, url: str, *, deadline_s: float) -> Page:
            if url == "closed":
                raise WebRefused(f"{url} may not be read here")
            return super().fetch(url, deadline_s=deadline_s)

    search_results = [
        SearchResult(url=url, title=url, snippet=f"{url} is deep") for url in ("a", "missing", "closed")
    ]
    search = ScriptedSearch({"": search_results})

    findings = look_up(PLAN, search=search, fetch=Pages({"a": "text"}), deadline_s=5)
    assert [(page.url, page.text) for page in findings.pages] == [
        ("a", "text"),
        ("missing", f"{SNIPPET_HEADING} missing is deep"),
    ]
    assert findings.failures == ("missing answered 404", "closed may not be read here")

    with pytest.raises(WebFailed, match="none of 3 pages could be read"):
        look_up(PLAN, search=search, fetch=Pages({}), deadline_s=5)


def test_no_request_is_sent_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(lookup, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    class Slow(ScriptedSearch):
        def search(self, query: str, limit: int, *, deadline_s: float) -> list[SearchResult]:
            clock[0] += 5
            return super().search(query, limit, deadline_s=deadline_s)

    search = Slow({"": results("a")})
    with pytest.raises(WebFailed, match="the time for this inquiry is over"):
        look_up(PLAN, search=search, fetch=ScriptedPages({"a": "text"}), deadline_s=4)

    assert search.queries == ["one"]


def test_two_addresses_of_one_page_are_one_source() -> None:
    class Redirecting(ScriptedPages):
        def fetch(self, url: str, *, deadline_s: float) -> Page:
            return Page(url="https://same", title="", text="The reef.")

    findings = look_up(
        PLAN, search=ScriptedSearch({"": results("a", "b")}), fetch=Redirecting({}), deadline_s=5
    )

    assert [(page.url, page.title) for page in findings.pages] == [("https://same", "about b")]


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
def test_queries_of_the_model_precede_the_question(
    depth: Depth, queries: list[str], planned: tuple[str, ...]
) -> None:
    assert plan_inquiry(QUESTION, queries, depth).queries == planned


@pytest.mark.parametrize(("depth", "pages"), [(Depth.SHALLOW, 3), (Depth.DEEP, 10)])
def test_a_deep_inquiry_reads_more_pages(depth: Depth, pages: int) -> None:
    assert plan_inquiry(QUESTION, [], depth).pages == pages


def test_the_best_results_are_read_first_and_each_page_once() -> None:
    chosen = choose_pages([results("a", "b", "c"), [], results("b#part", "d")], 3)

    assert [result.url for result in chosen] == ["a", "b#part", "d"]
