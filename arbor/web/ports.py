"""The ports of web search and fetch, their results, and scripted fakes for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from arbor.errors import WebFailed


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult:
    """A search result: address, title and the search engine's snippet."""

    url: str
    title: str = ""
    snippet: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A web page: its address after redirects, its title, its text without markup."""

    url: str
    title: str
    text: str


class WebSearch(Protocol):
    """Searches the web."""

    def search(self, query: str, limit: int, *, deadline_s: float) -> list[SearchResult]:
        """Return at most `limit` results, best first, within `deadline_s` seconds. Raises WebFailed."""
        ...


class Fetch(Protocol):
    """Reads pages."""

    def fetch(self, url: str, *, deadline_s: float) -> Page:
        """Fetch the page within `deadline_s` seconds, redirects included. Raises WebFailed with the reason."""
        ...


class ScriptedSearch:
    """A fake with scripted results by query; the empty query is the default."""

    def __init__(self, results: Mapping[str, Sequence[SearchResult] | WebFailed]) -> None:
        self.queries: list[str] = []
        self._results = results

    def search(self, query: str, limit: int, *, deadline_s: float) -> list[SearchResult]:
        """Return the script's results."""
        self.queries.append(query)
        answer = self._results.get(query, self._results.get("", ()))
        if isinstance(answer, WebFailed):
            raise answer
        return list(answer[:limit])


class ScriptedPages:
    """A fake with the pages of its script."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self.urls: list[str] = []
        self._pages = pages

    def fetch(self, url: str, *, deadline_s: float) -> Page:
        """Return the script's page."""
        self.urls.append(url)
        if url not in self._pages:
            raise WebFailed(f"{url} answered 404")
        return Page(url=url, title=url.rpartition("/")[2], text=self._pages[url])
