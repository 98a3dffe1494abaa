"""Search the web through a SearXNG-compatible server. The server is the operator's, so no allow-list applies."""

from __future__ import annotations

from typing import Any

import httpx

from arbor.adapters.exchange import read_json
from arbor.adapters.web_client import read_body, stream_get, web_client
from arbor.errors import ConfigurationInvalid, WebFailed
from arbor.models.json_text import storable
from arbor.web.ports import SearchResult

#: Far more than a page of results has.
_MAX_BYTES = 2_000_000
_TITLE_LENGTH = 300
_SNIPPET_LENGTH = 500
_URL_LENGTH = 2_000


class SearxngSearch:
    """A search behind `URL/search?q=…&format=json`."""

    def __init__(self, url: str) -> None:
        """Raise ConfigurationInvalid for an invalid address."""
        try:
            base = httpx.URL(url)
            host = base.host
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ConfigurationInvalid(
                f"ARBOR_SEARCH_URL must be an address, got {url!r}: {error}"
            ) from error
        if base.scheme not in ("http", "https") or not host:
            raise ConfigurationInvalid(
                f"ARBOR_SEARCH_URL begins with http:// or https:// and a host, got {url!r}"
            )
        path = base.path.rstrip("/")
        self._url = base.copy_with(path=path if path.endswith("/search") else f"{path}/search")
        self._client = web_client()

    def search(self, query: str, limit: int, *, deadline_s: float) -> list[SearchResult]:
        """Return at most `limit` results. Raises WebFailed when the server does not answer with JSON results."""
        where = f"the search at {self._url.host}"
        url = self._url.copy_merge_params({"q": query, "format": "json"})
        with stream_get(
            self._client, url, where=where, accept="application/json", deadline_s=deadline_s
        ) as response:
            if response.status_code != httpx.codes.OK:
                hint = "; SearXNG answers in JSON only if its `search.formats` has json"
                forbidden = response.status_code == httpx.codes.FORBIDDEN
                raise WebFailed(f"{where} answered {response.status_code}{hint if forbidden else ''}")
            content = read_body(response, where=where, max_bytes=_MAX_BYTES)
        body = read_json(content)
        if not isinstance(body, dict) or "results" not in body:
            raise WebFailed(f"{where} did not answer with JSON that has results")
        results = body["results"]
        readable = (
            [read for result in results if (read := _read(result))] if isinstance(results, list) else []
        )
        return readable[:limit]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _read(result: Any) -> SearchResult | None:
    if not isinstance(result, dict):
        return None
    url = result.get("url")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")) or len(url) > _URL_LENGTH:
        return None
    return SearchResult(
        url=storable(url),
        title=_text(result.get("title"), _TITLE_LENGTH),
        snippet=_text(result.get("content"), _SNIPPET_LENGTH),
    )


def _text(value: Any, length: int) -> str:
    return storable(value)[:length] if isinstance(value, str) else ""
