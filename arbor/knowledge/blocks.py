"""A document's text as blocks: the parts of its structure, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

#: The separator of two blocks in the text of a document.
SEPARATOR = "\n\n"


class BlockKind(StrEnum):
    """The kinds of blocks."""

    #: A heading, with its level.
    HEADING = "heading"
    #: Running text: a paragraph, a quotation, an item of a list.
    PROSE = "prose"
    #: Lines that stay as they are: code, and rows of tables.
    LINES = "lines"


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A part of a document: a heading, a paragraph, a row of a table."""

    kind: BlockKind
    text: str
    #: The level of a heading, from 1; 0 for other blocks.
    level: int = 0
    #: The page that the block begins on, from 1; None where the format has no pages.
    page: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedDocument:
    """A file that has been read."""

    blocks: tuple[Block, ...]
    #: The title that the file states outside its text; empty for none.
    title: str = ""
    #: Pages of a PDF; 0 for other kinds.
    pages: int = 0

    @property
    def text(self) -> str:
        """Return the text, whose characters the places of passages count."""
        return SEPARATOR.join(block.text for block in self.blocks)

    @property
    def heading(self) -> str:
        """Return the first heading of the highest level; empty without headings."""
        headings = [block for block in self.blocks if block.kind is BlockKind.HEADING]
        return min(headings, key=lambda block: block.level).text if headings else ""


def with_offsets(blocks: Iterable[Block]) -> Iterator[tuple[int, Block]]:
    """Yield each block with the position of its first character in the text."""
    start = 0
    for block in blocks:
        yield start, block
        start += len(block.text) + len(SEPARATOR)


def with_headings(text: str, headings: Sequence[str]) -> str:
    """Return a passage's text below the headings that it does not contain: the text that is embedded and searched."""
    return "\n".join([*(heading for heading in headings if not _contains(text, heading)), text])


def _contains(text: str, heading: str) -> bool:
    """Return whether a text contains a heading, and not only within another word, as "Oil" in "soil"."""
    return re.search(rf"(?<!\w){re.escape(heading)}(?!\w)", text) is not None


def place_of(*, headings: Sequence[str], page: int | None, start: int, end: int) -> str:
    """Return the place of a passage for people and prompts: the page, the headings, the characters."""
    parts = [f"page {page}"] if page is not None else []
    if headings:
        parts.append(" › ".join(headings))
    parts.append(f"characters {start:,} to {end:,}")
    return ", ".join(parts)
