"""Shorten texts, quote them, count things in words, and mark texts of others as data in a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: White space and a word of up to 40 characters at the end of a text. A longer string is not a word, and may be cut.
_LAST_WORD = re.compile(r"\s\S{1,40}\Z")
#: The end of a text that `shorten`, `clip` or `line` has cut.
_CUT = re.compile(r"…(?: \(cut; \d+ characters in all\))?\s*\Z")


def shorten(text: str, longest: int) -> str:
    """Return the text, or its beginning up to a word and an ellipsis, in at most `longest` characters."""
    if len(text) <= longest:
        return text
    head = text[: longest - 1]
    if not text[longest - 1].isspace():
        head = _LAST_WORD.sub("", head) or head
    return head.rstrip() + "…"


def clip(text: str, longest: int) -> str:
    """Return the text, or its beginning and an ellipsis, in at most `longest` characters; a word may be cut."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def clip_line(text: str, longest: int) -> str:
    """Return the text on one line, clipped."""
    return clip(" ".join(text.split()), longest)


def first_lines(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the first lines, and one with the number of the others."""
    more = len(lines) - most
    return (*lines[:most], *([f"and {more:,} more"] if more > 0 else []))


def beginning_of(text: str) -> str:
    """Return the beginning that a cut text shows, without the ellipsis; empty for a text that is not cut."""
    end = _CUT.search(text)
    return text[: end.start()] if end else ""


def close_quotes(text: str) -> str:
    """Return the text with missing closing quotation marks added."""
    return text + "”" * (text.count("“") - text.count("”"))


def quoted(text: str) -> str:
    """Return the text as a quotation; inner quotations get single marks."""
    inner = close_quotes(text).replace("“", "‘").replace("”", "’")
    return f"“{inner}”"


#: Characters of a line in a prompt, unless its section sets another limit.
LINE_LENGTH = 400


class RenderedSection(NamedTuple):
    """A named part of the prompt."""

    name: str
    text: str


class Data:
    """Wraps texts of others in blocks that mark them as data, never as instructions."""

    def __init__(self, nonce: str) -> None:
        """Set the mark of the blocks, which their texts cannot know. Raises ValueError for an empty mark."""
        if not nonce:
            raise ValueError("a data block needs a mark: without one, its texts could end it")
        self._nonce = nonce

    def block(self, lines: Iterable[str]) -> str:
        """Return the lines in a block, with the mark removed from them, also where a removal forms the mark again."""
        text = "\n".join(lines)
        while self._nonce in text:
            text = text.replace(self._nonce, "")
        return f"<data-{self._nonce}>\n{text}\n</data-{self._nonce}>"

    def section(self, heading: str, lines: Iterable[str], *, otherwise: str = "") -> str:
        """Return a heading with the lines in a block below it, or the other text where there are no lines."""
        written = [*lines]
        return f"{heading}\n{self.block(written)}" if written else otherwise


def line(text: str, longest: int = LINE_LENGTH) -> str:
    """Return a text as one entry of a list: cut if too long, with further lines indented, so that they cannot pass for entries."""
    text = "\n    ".join(text.strip().splitlines())
    return text if len(text) <= longest else f"{text[:longest]}… (cut; {len(text)} characters in all)"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, which in the plural gets an s or is `plural`: `1 goal`, `2 memories`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def bounded(number: int, limit: int, *, of: int | None = None) -> str:
    """Return a count that stops at a limit as text: `99`, `100 or more`.

    The count of a part of the rows stops where the count `of` all of them does.
    """
    return f"{number:,}{' or more' if (number if of is None else of) >= limit else ''}"


def bounded_noun(number: int, limit: int, noun: str, plural: str = "") -> str:
    """Return a count that stops at a limit with its noun: `1 goal`, `100 or more goals`."""
    if number < limit:
        return counted(number, noun, plural)
    return f"{bounded(number, limit)} {plural or f'{noun}s'}"


def bounded_figure(number: int, limit: int) -> str:
    """Return a count that stops at a limit as text of a cell or badge: `99`, `100+`."""
    return f"{number:,}{'+' if number >= limit else ''}"
