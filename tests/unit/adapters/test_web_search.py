"""Searching by a real server, which is the operator's own: any address is allowed."""

from __future__ import annotations

import json
from contextlib import closing
from urllib.parse import parse_qs, urlsplit

import pytest

from arbor.adapters.web_search import SearxngSearch
from arbor.errors import ConfigurationInvalid, WebFailed
from arbor.web.ports import SearchResult
from tests.unit.adapters.web_server import Server, server

__all__ = ["server"]


def search(address: str, query: str, limit: int) -> list[SearchResult]:
    """Search by the server at an address."""
    with closing(SearxngSearch(address)) as client:
        return client.search(query, limit, deadline_s=5)


def test_results_without_a_valid_address_are_omitted(server: Server) -> None:
    results = [
        {"url": "https://a.example", "title": "A\0", "content": "about a", "engine": "x"},
        {"url": "javascript:alert(1)"},
        {"title": "nothing"},
        "text",
        {"url": "http://b.example", "title": None},
        {"url": "http://c.example"},
    ]
    server.serve("/search", json.dumps({"results": results}).encode(), Content_Type="application/json")

    found = search(server.url, "reef & depth", 2)

    assert found == [
        SearchResult(url="https://a.example", title="A\ufffd", snippet="about a"),
        SearchResult(url="http://b.example"),
    ]
    assert parse_qs(urlsplit(server.requests[0][0]).query) == {"q": ["reef & depth"], "format": ["json"]}


@pytest.mark.parametrize("path", ["", "/", "/search", "/searx/"])
def test_the_address_may_be_written_with_or_without_its_path(server: Server, path: str) -> None:
    for place in ("/search", "/searx/search"):
        server.serve(place, b'{"results": []}')
    assert search(server.url + path, "q", 3) == []


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"<html>", 200, "did not answer with JSON"),
        (b"{}", 200, "did not answer with JSON"),
        (b"[]", 200, "did not answer with JSON"),
        (b"", 500, "answered 500"),
        (b"", 403, "`search.formats` has json"),
        (b"", 302, "answered 302"),
    ],
)
def test_any_other_search_response_is_a_failure(
    server: Server, body: bytes, status: int, message: str
) -> None:
    server.serve("/search", body, status=status)
    with pytest.raises(WebFailed, match=message) as failed:
        search(server.url, "secret question", 3)
    assert "secret" not in str(failed.value)


def test_a_server_that_is_away_is_a_failure() -> None:
    with pytest.raises(WebFailed, match=r"the search at 127\.0\.0\.1 cannot be reached"):
        search("http://127.0.0.1:9", "q", 3)


@pytest.mark.parametrize("url", ["localhost:8888", "ftp://x", "/search", "http://"])
def test_an_invalid_search_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="ARBOR_SEARCH_URL"):
        SearxngSearch(url)
