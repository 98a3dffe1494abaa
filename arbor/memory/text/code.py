"""Extract fenced code blocks from a text, with their language and the line of prose before them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Lengths of the columns; longer code is a document, and is not stored as a snippet.
LANGUAGE_LENGTH = 40
TITLE_LENGTH = 300
CODE_LENGTH = 20_000
#: The most blocks of one text that are stored.
MAX_BLOCKS = 20

# A fence is a line of three or more marks. CommonMark would treat all text after a fence that is never closed as code, but it
# is more often prose: such a fence begins no block.
_FENCE = re.compile(r"^ {0,3}(?P<marks>`{3,}|~{3,})(?P<rest>.*)$", re.MULTILINE)
_CLOSING_REST = re.compile(r"[`~]*[ \t\r]*")


@dataclass(frozen=True, kw_only=True)
class CodeBlock:
    """A code snippet; `language` is empty when its fence names none, `title` the line of prose before it."""

    language: str
    title: str
    code: str

    @property
    def hash(self) -> bytes:
        """Return the SHA-256 of the code, 32 bytes: equal snippets have equal hashes."""
        return hashlib.sha256(self.code.encode()).digest()


def left_out_code(text: str) -> list[str]:
    """Describe the blocks that `code_blocks` leaves out: one line for too long ones, one for too many."""
    sizes = [len(block.code) for block in _fenced_blocks(text)]
    too_long = [size for size in sizes if size > CODE_LENGTH]
    too_many = max(0, sum(0 < size <= CODE_LENGTH for size in sizes) - MAX_BLOCKS)
    notes = []
    if too_long:
        notes.append(
            f"code: {len(too_long)} block(s) of up to {max(too_long):,} characters not stored; the limit is {CODE_LENGTH:,}"
        )
    if too_many:
        notes.append(f"code: {too_many} block(s) not stored; the limit is {MAX_BLOCKS} of one text")
    return notes


def code_blocks(text: str) -> list[CodeBlock]:
    """Return the first MAX_BLOCKS fenced blocks of a text, in order, without empty blocks and blocks longer than a snippet."""
    blocks: list[CodeBlock] = []
    before = 0
    for fenced in _fenced_blocks(text):
        prose = text[before : fenced.start]
        before = fenced.end
        if fenced.code and len(fenced.code) <= CODE_LENGTH and len(blocks) < MAX_BLOCKS:
            words = fenced.info.split()
            blocks.append(
                CodeBlock(
                    language=words[0].casefold()[:LANGUAGE_LENGTH] if words else "",
                    title=_title(prose),
                    code=fenced.code,
                )
            )
    return blocks


def without_code(text: str) -> str:
    """Return a text without its fenced blocks."""
    parts, after = [], 0
    for fenced in _fenced_blocks(text):
        parts.append(text[after : fenced.start])
        after = fenced.end
    return "".join([*parts, text[after:]])


@dataclass(frozen=True, kw_only=True, slots=True)
class _FencedBlock:
    """A fenced block: the characters from its first fence to its last one, the words after the first, and the code."""

    start: int
    end: int
    info: str
    code: str


def _fenced_blocks(text: str) -> Iterator[_FencedBlock]:
    """Yield the fenced blocks of a text, in order. The time is linear, however many fences are never closed."""
    if "```" not in text and "~~~" not in text:
        return
    fences = list(_FENCE.finditer(text))
    #: By mark, the length from which no further fence closes.
    unclosed: dict[str, int] = {}
    after = 0
    for number, opening in enumerate(fences):
        marks, info = opening["marks"], opening["rest"]
        if number < after or "`" in info or len(marks) >= unclosed.get(marks[0], len(text)):
            continue
        closing = next(
            (later for later in range(number + 1, len(fences)) if _closes(fences[later], marks)), None
        )
        if closing is None:
            unclosed[marks[0]] = len(marks)
            continue
        after = closing + 1
        code = text[opening.end() : fences[closing].start()].strip("\r\n").rstrip()
        yield _FencedBlock(start=opening.start(), end=fences[closing].end(), info=info, code=code)


def _closes(fence: re.Match[str], marks: str) -> bool:
    """Return whether a fence closes one of these marks: it has at least as many, and nothing but marks after them."""
    return fence["marks"].startswith(marks) and _CLOSING_REST.fullmatch(fence["rest"]) is not None


def _title(prose: str) -> str:
    lines = [line.strip() for line in prose.splitlines() if line.strip()]
    return lines[-1].rstrip(":")[:TITLE_LENGTH].strip() if lines else ""
