"""Web search and fetch of this process, created from the settings once; disabled by default."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings

from arbor.adapters.web_fetch import WebFetch
from arbor.adapters.web_search import SearxngSearch
from arbor.web.addresses import AllowList
from arbor.web.ports import Fetch, WebSearch


@lru_cache(maxsize=1)
def search() -> WebSearch:
    """Return the web search. Raises ConfigurationInvalid when none is configured."""
    return SearxngSearch(settings.ARBOR_SEARCH_URL)


@lru_cache(maxsize=1)
def fetch() -> Fetch:
    """Return the page fetcher. Raises ConfigurationInvalid for an allow-list that cannot be parsed."""
    return WebFetch(allow=AllowList.of(settings.ARBOR_WEB_ALLOW), page_bytes=settings.ARBOR_WEB_PAGE_BYTES)


def web_missing() -> str:
    """Describe the settings that web inquiries miss; empty if they are possible."""
    missing = []
    if not settings.ARBOR_SEARCH_URL:
        missing.append("no web search is set up (ARBOR_SEARCH_URL)")
    if not settings.ARBOR_WEB_ALLOW:
        missing.append("no domain may be read (ARBOR_WEB_ALLOW)")
    return " and ".join(missing)
