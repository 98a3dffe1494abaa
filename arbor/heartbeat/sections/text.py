"""Lines and data blocks of prompts, safe against injection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LINE_LENGTH = 400


class Section(NamedTuple):
    """A named part of the prompt."""

    name: str
    text: str


class Data:
    """Wraps texts of others as data."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce

    def block(self, lines: Iterable[str]) -> str:
        """Return the lines in a block, without the mark, also where its removal forms it again."""
        text = "\n".join(lines)
        while self._nonce in text:
            text = text.replace(self._nonce, "")
        return f"<data-{self._nonce}>\n{text}\n</data-{self._nonce}>"


def line(text: str, longest: int = LINE_LENGTH) -> str:
    """Return a text for one entry: cut if long, with further lines indented, so that they cannot pass for entries."""
    text = "\n    ".join(text.strip().splitlines())
    return text if len(text) <= longest else f"{text[:longest]}… (cut; {len(text)} characters in all)"
