"""Look a question up on the web: search, choose pages, read them; failures are reported."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

from arbor.errors import WebFailed, WebRefused
from arbor.web.plan import InquiryPlan, choose_pages
from arbor.web.ports import Fetch, Page, SearchResult, WebSearch

#: The pages that are read at the same time, and the characters of a page that are stored; the model's window decides how
#: many of them a prompt shows (`arbor.web.answers`).
PAGES_AT_ONCE = 4
PAGE_LENGTH = 6_000
#: The heading of a search engine's snippet that replaces an unreadable page.
SNIPPET_HEADING = "(The page could not be read. What the search said of it:)"
#: The share of the remaining time that one page may use, so that a slow page leaves time for the others.
_SHARE_OF_TIME = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """The result of a look-up: pages, best first, and failures, one line each."""

    pages: tuple[Page, ...]
    failures: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the findings as a JSON object."""
        return {
            "pages": [{"url": page.url, "title": page.title, "text": page.text} for page in self.pages],
            "failures": list(self.failures),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Build findings from the JSON object of `to_json`."""
        return cls(pages=tuple(Page(**page) for page in stored["pages"]), failures=tuple(stored["failures"]))


def look_up(plan: InquiryPlan, *, search: WebSearch, fetch: Fetch, deadline_s: float) -> Findings:
    """Search, and read the best pages, within `deadline_s` seconds.

    Raises WebFailed when no search or no page worked; other failures are listed in the findings.
    """
    ends = time.monotonic() + deadline_s
    results, failures = _search(plan, search, ends)
    chosen_pages = choose_pages(results, plan.pages)
    if not chosen_pages:
        raise WebFailed("; ".join(failures) or "nothing was found for " + ", ".join(plan.queries))
    pages, unread = _read(chosen_pages, fetch, ends)
    failures += unread
    if not pages:
        count = len(chosen_pages)
        none = "the only page could not be read" if count == 1 else f"none of {count} pages could be read"
        raise WebFailed(f"{none}: {'; '.join(failures)}")
    return Findings(pages=tuple(pages), failures=tuple(failures))


def _search(plan: InquiryPlan, search: WebSearch, ends: float) -> tuple[list[list[SearchResult]], list[str]]:
    results: list[list[SearchResult]] = []
    failures: list[str] = []
    for query in plan.queries:
        try:
            results.append(search.search(query, plan.results, deadline_s=_seconds_left(ends)))
        except WebFailed as error:
            failures.append(f"search {query!r}: {error}")
    return results, failures


def _read(chosen_pages: Sequence[SearchResult], fetch: Fetch, ends: float) -> tuple[list[Page], list[str]]:
    """Return pages and failures; where any page was read, search snippets replace the pages that failed, except refused ones."""

    def read(result: SearchResult) -> Page | WebFailed:
        try:
            page = fetch.fetch(result.url, deadline_s=max(_seconds_left(ends) * _SHARE_OF_TIME, 0.001))
        except WebFailed as error:
            return error
        if not page.text.strip():
            return WebFailed(f"{page.url} has no text")
        return Page(url=page.url, title=page.title or result.title, text=_cut_text(page.text))

    with ThreadPoolExecutor(max_workers=PAGES_AT_ONCE, thread_name_prefix="web") as pool:
        outcomes = list(pool.map(read, chosen_pages))
    # Two addresses may lead to the same page.
    pages = {page.url: page for page in outcomes if isinstance(page, Page)}
    quoted = [
        Page(url=result.url, title=result.title, text=f"{SNIPPET_HEADING} {result.snippet}")
        for result, outcome in zip(chosen_pages, outcomes, strict=True)
        if isinstance(outcome, WebFailed) and not isinstance(outcome, WebRefused) and result.snippet.strip()
    ]
    # Without any readable page there are no findings, because snippets alone are no sources.
    read_pages = [*pages.values(), *(page for page in quoted if page.url not in pages)] if pages else []
    return read_pages, [str(failure) for failure in outcomes if isinstance(failure, WebFailed)]


def _cut_text(text: str) -> str:
    """Cut a page's text; a cut text names its whole length."""
    if len(text) <= PAGE_LENGTH:
        return text
    return f"{text[:PAGE_LENGTH]}… (the page goes on; {len(text)} characters in all)"


def _seconds_left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise WebFailed("the time for this inquiry is over")
    return left
