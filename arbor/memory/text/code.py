"""Extract fenced code blocks from a text, with their language and the line of prose before them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

#: Lengths of the columns; longer code is a document, and is not stored as a snippet.
LANGUAGE_LENGTH = 40
TITLE_LENGTH = 300
CODE_LENGTH = 20_000
#: The most blocks of one text that are stored.
MAX_BLOCKS = 20

# A fence of three or more marks, closed by the same fence. A fence that is never closed begins no block; CommonMark would
# treat the rest of the text as code, but it is more often prose.
_BLOCK = re.compile(
    r"^[ ]{0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)\n(?P<code>.*?)^[ ]{0,3}(?P=fence)[`~]*[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


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
    if "```" not in text and "~~~" not in text:
        return []
    sizes = [len(match["code"].strip("\n").rstrip()) for match in _BLOCK.finditer(text)]
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
    if "```" not in text and "~~~" not in text:
        return []
    blocks: list[CodeBlock] = []
    before = 0
    for match in _BLOCK.finditer(text):
        code = match["code"].strip("\n").rstrip()
        prose = text[before : match.start()]
        before = match.end()
        if code and len(code) <= CODE_LENGTH and len(blocks) < MAX_BLOCKS:
            words = match["info"].split()
            blocks.append(
                CodeBlock(
                    language=words[0].casefold()[:LANGUAGE_LENGTH] if words else "",
                    title=_title(prose),
                    code=code,
                )
            )
    return blocks


def without_code(text: str) -> str:
    """Return a text without its fenced blocks."""
    return _BLOCK.sub("", text) if "```" in text or "~~~" in text else text


def _title(prose: str) -> str:
    lines = [line.strip() for line in prose.splitlines() if line.strip()]
    return lines[-1].rstrip(":")[:TITLE_LENGTH].strip() if lines else ""
