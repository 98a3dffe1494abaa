"""Extract fenced code blocks from a text, with their language and the words around them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

#: Lengths of the row, and of code that is kept; longer code is a document. Our choice.
LANGUAGE_LENGTH = 40
TITLE_LENGTH = 300
CODE_LENGTH = 20_000
#: Blocks of one text that are kept.
MOST_BLOCKS = 20

# A fence of three or more marks, closed by as many of the same; one that is never closed begins nothing (CommonMark
# would take the rest of the text, which is more often prose than code).
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
        """Return what two equal pieces share: SHA-256, 32 bytes."""
        return hashlib.sha256(self.code.encode()).digest()


def left_out_code(text: str) -> list[str]:
    """Return what `code_blocks` leaves out of a text, and why: one line for what is too long, one for what is too much."""
    if "```" not in text and "~~~" not in text:
        return []
    sizes = [len(match["code"].strip("\n").rstrip()) for match in _BLOCK.finditer(text)]
    long = [size for size in sizes if size > CODE_LENGTH]
    much = max(0, sum(0 < size <= CODE_LENGTH for size in sizes) - MOST_BLOCKS)
    notes = []
    if long:
        notes.append(
            f"code: {len(long)} block(s) of up to {max(long):,} characters not kept; at most {CODE_LENGTH:,} are"
        )
    if much:
        notes.append(f"code: {much} block(s) not kept; of one text at most {MOST_BLOCKS} are")
    return notes


def code_blocks(text: str) -> list[CodeBlock]:
    """Return the fenced blocks of a text, in order; what is empty or longer than a snippet is left out."""
    if "```" not in text and "~~~" not in text:
        return []
    found: list[CodeBlock] = []
    before = 0
    for match in _BLOCK.finditer(text):
        code = match["code"].strip("\n").rstrip()
        prose = text[before : match.start()]
        before = match.end()
        if code and len(code) <= CODE_LENGTH and len(found) < MOST_BLOCKS:
            words = match["info"].split()
            found.append(
                CodeBlock(
                    language=words[0].casefold()[:LANGUAGE_LENGTH] if words else "",
                    title=_title(prose),
                    code=code,
                )
            )
    return found


def _title(prose: str) -> str:
    lines = [line.strip() for line in prose.splitlines() if line.strip()]
    return lines[-1].rstrip(":")[:TITLE_LENGTH].strip() if lines else ""
