"""Clipping and quoting of texts."""

from __future__ import annotations

import re

#: Longer strings are no words, and may be cut.
_LAST_WORD = re.compile(r"\s\S{1,40}\Z")


def clip(text: str, longest: int) -> str:
    """Return the text, or its beginning up to a word and an ellipsis, in at most `longest` characters."""
    if len(text) <= longest:
        return text
    head = text[: longest - 1]
    if not text[longest - 1].isspace():
        head = _LAST_WORD.sub("", head) or head
    return head.rstrip() + "…"


def closed(text: str) -> str:
    """Return the text with missing closing quotation marks added."""
    return text + "”" * (text.count("“") - text.count("”"))


def quoted(text: str) -> str:
    """Return the text as a quotation; inner quotations get single marks."""
    inner = closed(text).replace("“", "‘").replace("”", "’")
    return f"“{inner}”"
