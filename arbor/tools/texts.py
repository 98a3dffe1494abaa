"""Clean texts of other people's servers: without hidden characters, within a length."""

from __future__ import annotations

import unicodedata

from arbor.models.json_text import storable
from arbor.quotations import shorten

#: Control and formatting characters, among them those that reverse or hide a text; private and unassigned ones.
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"})
_VISIBLE_CONTROLS = frozenset("\n\t")


def clean(text: object, longest: int) -> str:
    """Return a text of several lines without hidden characters; a cut text names its whole length."""
    if not isinstance(text, str):
        return ""
    shown = "".join(
        char for char in _bounded(text, longest) if char in _VISIBLE_CONTROLS or not _is_hidden(char)
    ).strip()
    if len(text) <= longest:
        return storable(shown)
    return storable(f"{shown[:longest]}… (cut; {len(text):,} characters in all)")


def one_line(text: object, longest: int) -> str:
    """Return a text as one line of at most `longest` characters."""
    if not isinstance(text, str):
        return ""
    shown = "".join(" " if _is_hidden(char) else char for char in _bounded(text, longest))
    return storable(shorten(" ".join(shown.split()), longest))


def _bounded(text: str, longest: int) -> str:
    # Enough to fill `longest` characters where every second one is hidden; the rest is never read.
    return text[: 2 * longest + 1]


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN
