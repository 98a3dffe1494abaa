"""Extract a web page's main text and title, without markup, menus and scripts."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any

from arbor.heartbeat.json_text import storable

#: Types that are read, besides those that end in +xml or +json.
READABLE_TYPES = frozenset(
    {"text/html", "application/xhtml+xml", "text/plain", "application/json", "text/xml", "application/xml"}
)
_MARKED_UP = frozenset({"text/html", "application/xhtml+xml"})
TITLE_LENGTH = 300


def is_readable(kind: str) -> bool:
    """Return whether text can be read from content of this type, such as `text/html`."""
    return kind in READABLE_TYPES or kind.endswith(("+xml", "+json"))


def read_page(content: bytes, *, kind: str, charset: str | None) -> tuple[str, str]:
    """Return title and text of a page; the text is empty for a page without one. `charset` is the server's."""
    text = _decode(content, charset)
    if kind not in _MARKED_UP:
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


def _decode(content: bytes, charset: str | None) -> str:
    try:
        return content.decode(charset or "utf-8", errors="replace")
    except LookupError:
        return content.decode("utf-8", errors="replace")
