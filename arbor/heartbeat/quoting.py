"""Texts in other texts: cut at a word with an ellipsis, quotations in a quotation in single marks, none left open."""

from __future__ import annotations

import re

#: What is longer is no word; a cut need not spare it.
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
    """Return the text with the marks that end its quotations, where a cut has taken them off."""
    return text + "”" * (text.count("“") - text.count("”"))


def quoted(text: str) -> str:
    """Return the text as a quotation: what it quotes itself stands in single marks."""
    inner = closed(text).replace("“", "‘").replace("”", "’")
    return f"“{inner}”"
