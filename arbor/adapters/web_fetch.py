"""Fetch web pages from allowed domains at public addresses, within limits, and extract their title and text."""

from __future__ import annotations

import codecs
import importlib
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import httpx

from arbor.adapters.web_client import read_body, stream_get, web_client
from arbor.errors import WebFailed, WebRefused
from arbor.models.json_text import storable
from arbor.web.addresses import AllowList, is_public
from arbor.web.ports import Page

#: Types that are read, besides those that end in +xml or +json.
READABLE_TYPES = frozenset(
    {"text/html", "application/xhtml+xml", "text/plain", "application/json", "text/xml", "application/xml"}
)
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
TITLE_LENGTH = 300
MAX_REDIRECTS = 5
_ACCEPT = ", ".join(sorted(READABLE_TYPES))
#: Encodings of the names of hosts: the first fails on other texts, the second takes minutes for a large page.
_NO_CHARSETS = frozenset({"idna", "punycode"})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class WebFetch:
    """Fetches pages; `permits` checks the IP address that is connected to."""

    def __init__(
        self, *, allow: AllowList, page_bytes: int, permits: Callable[[str], bool] = is_public
    ) -> None:
        self._allow = allow
        self._page_bytes = page_bytes
        self._client = web_client(permits=permits)

    def fetch(self, url: str, *, deadline_s: float) -> Page:
        """Fetch a page; each redirect is checked like the address itself. Raises WebFailed with the reason."""
        deadline = time.monotonic() + deadline_s
        for _ in range(MAX_REDIRECTS + 1):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise WebFailed(f"{_shorten_url(url)} did not answer within {deadline_s:.1f} s")
            answer = self._fetch_once(self._check_url(url), deadline_s=left_s)
            if isinstance(answer, Page):
                return answer
            url = answer
        raise WebFailed(f"{_shorten_url(url)}: more than {MAX_REDIRECTS} redirects")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _check_url(self, url: str) -> httpx.URL:
        try:
            parsed = httpx.URL(url)
            host = parsed.host
        except (httpx.InvalidURL, TypeError, UnicodeError) as error:
            # An international name is decoded when it is read.
            raise WebFailed(f"{url[:200]!r} is no address: {error}") from error
        if parsed.scheme not in ("http", "https") or not host:
            raise WebRefused(f"{_shorten_url(url)}: only http and https addresses are read")
        if parsed.userinfo:
            raise WebRefused(f"an address with a user and password is not read: {host}")
        if not self._allow.permits(parsed.raw_host.decode("ascii")):
            raise WebRefused(f"{host} is not among the domains that may be read here (ARBOR_WEB_ALLOW)")
        return parsed.copy_with(fragment=None)

    def _fetch_once(self, url: httpx.URL, *, deadline_s: float) -> Page | str:
        """Return the page, or the address of its redirect."""
        where = _shorten_url(str(url))
        with stream_get(self._client, url, where=where, accept=_ACCEPT, deadline_s=deadline_s) as response:
            if response.status_code in _REDIRECTS and response.headers.get("location"):
                return _join_url(url, response.headers["location"])
            if response.status_code != httpx.codes.OK:
                raise WebFailed(f"{where} answered {response.status_code}")
            kind, charset = _content_type(response)
            if not is_readable(kind):
                raise WebFailed(f"{where} is {kind or 'of no type'}, which is not read as text")
            content = read_body(response, where=where, max_bytes=self._page_bytes)
        title, text = read_page(content, kind=kind, charset=charset)
        return Page(url=str(url), title=title, text=text)


def _join_url(url: httpx.URL, location: str) -> str:
    try:
        return str(url.join(location))
    except httpx.InvalidURL as error:
        raise WebFailed(f"{_shorten_url(str(url))} redirects to no address: {error}") from error


def _content_type(response: httpx.Response) -> tuple[str, str | None]:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind, response.charset_encoding


def _shorten_url(url: str) -> str:
    """Shorten an address for a message, without its query, which may be secret."""
    return url.partition("?")[0].partition("#")[0][:200]


def is_readable(kind: str) -> bool:
    """Return whether text can be read from content of this type, such as `text/html`."""
    return kind in READABLE_TYPES or kind.endswith(("+xml", "+json"))


def read_page(content: bytes, *, kind: str, charset: str | None) -> tuple[str, str]:
    """Return title and text of a page; the text is empty for a page without one. `charset` is the server's."""
    if charset is not None and not _is_charset(charset):
        charset = None
    text = content.decode(charset or "utf-8", errors="replace")
    if kind not in _HTML_TYPES:
        return "", storable(text)
    # Bytes without a charset are decoded by the page's own declaration.
    extracted = _extractor().bare_extraction(
        text if charset else content, include_comments=False, with_metadata=True
    )
    if extracted is None:
        return "", ""
    document = extracted if isinstance(extracted, dict) else extracted.as_dict()
    title = " ".join(str(document.get("title") or "").split())
    return storable(title)[:TITLE_LENGTH], storable(str(document.get("text") or ""))


@lru_cache(maxsize=1)
def _extractor() -> Any:
    """Load trafilatura at the first page: it takes 30 MB and half a second, and most processes never read one."""
    return importlib.import_module("trafilatura")


def _is_charset(name: str) -> bool:
    """Return whether a server may name this charset: pages are read in it whatever they contain, in linear time."""
    try:
        return codecs.lookup(name).name not in _NO_CHARSETS and bool(b" ".decode(name, errors="replace"))
    except (LookupError, ValueError):
        return False
