"""Split a document into passages by its structure, with an overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from arbor.errors import ConfigurationInvalid
from arbor.knowledge.blocks import Block, BlockKind, ParsedDocument, with_headings, with_offsets
from arbor.models.token_estimates import CHARACTERS_PER_TOKEN, estimate_tokens
from arbor.quotations import shorten

#: A section below this share of the target joins the next one, and a passage is cut at the end of a block from this share on.
MIN_SHARE = 0.25
BLOCK_SHARE = 0.6
#: The characters of a heading that its passages repeat.
HEADING_LENGTH = 300
#: The end of a sentence: its mark with closing quotes, before white space; or a full-width mark.
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])")
_WHITE = re.compile(r"\s+")


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageSize:
    """The size of passages, in estimated tokens."""

    target: int = 300
    #: The part of a passage that the next one repeats, in whole sentences.
    overlap: int = 50

    def __post_init__(self) -> None:
        """Refuse sizes with which no document can be split. Raises ConfigurationInvalid."""
        if not 50 <= self.target <= 2_000:
            raise ConfigurationInvalid(f"passages must have 50 to 2,000 tokens, got {self.target}")
        if not 0 <= self.overlap <= self.target // 2:
            raise ConfigurationInvalid(
                f"the overlap of passages must be 0 to half of their {self.target} tokens, got {self.overlap}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageDraft:
    """A passage of a document, before it is stored."""

    text: str
    #: The headings above it, the outermost first.
    headings: tuple[str, ...]
    page: int | None
    #: The characters of the document's text: start, and end after the last one.
    start: int
    end: int
    tokens: int

    @property
    def context(self) -> str:
        """The text with the headings that it does not contain: the text that is embedded and searched."""
        return with_headings(self.text, self.headings)


@dataclass(frozen=True, kw_only=True, slots=True)
class _BlockPart:
    """A sentence, a line or a heading."""

    start: int
    end: int
    tokens: int
    page: int | None
    #: Whether this is the last part of its block.
    ends_block: bool


@dataclass(kw_only=True, slots=True)
class _SectionParts:
    """The parts below one heading."""

    headings: tuple[str, ...]
    parts: list[_BlockPart]
    has_body: bool = False

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


def split_document(document: ParsedDocument, size: PassageSize) -> list[PassageDraft]:
    """Split a document into passages, in order.

    A passage lies within one section where sections are long enough. It ends at the end of a block where one is near, else
    of a sentence, and repeats the last sentences of the one before in the same section.
    """
    text = document.text
    return [
        _draft(text, section, first, after)
        for section in _joined(_sections(document.blocks, size.target), size)
        for first, after in _ranges(section.parts, size)
    ]


def _draft(text: str, section: _SectionParts, first: int, after: int) -> PassageDraft:
    parts = section.parts[first:after]
    start = parts[0].start
    passage = text[start : parts[-1].end].rstrip()
    return PassageDraft(
        text=passage,
        headings=section.headings,
        page=parts[0].page,
        start=start,
        end=start + len(passage),
        tokens=estimate_tokens(passage),
    )


def _sections(blocks: Sequence[Block], target: int) -> Iterator[_SectionParts]:
    """Yield the blocks below each heading, with the path of headings."""
    path: list[tuple[int, str]] = []
    section = _SectionParts(headings=(), parts=[])
    for start, block in with_offsets(blocks):
        if block.kind is BlockKind.HEADING:
            if section.parts:
                yield section
            path = [
                *(entry for entry in path if entry[0] < block.level),
                (block.level, shorten(block.text, HEADING_LENGTH)),
            ]
            section = _SectionParts(headings=tuple(heading for _, heading in path), parts=[])
        else:
            section.has_body = True
        section.parts += _parts(start, block, target)
    if section.parts:
        yield section


def _joined(sections: Iterator[_SectionParts], size: PassageSize) -> Iterator[_SectionParts]:
    """Yield the sections; a section that is too short is joined with the next one."""
    before: _SectionParts | None = None
    for section in sections:
        if before is None:
            before = section
        elif before.tokens < MIN_SHARE * size.target:
            before = _SectionParts(
                headings=before.headings if before.has_body else section.headings,
                parts=before.parts + section.parts,
                has_body=before.has_body or section.has_body,
            )
        else:
            yield before
            before = section
    if before is not None:
        yield before


def _parts(offset: int, block: Block, target: int) -> list[_BlockPart]:
    """Return the parts at whose ends a block may be cut, none longer than a passage."""
    ends = _ends(block)
    spans: list[tuple[int, int, int]] = []
    for start, end in pairwise([0, *ends]):
        spans += _bounded(block.text, start, end, target)
    return [
        _BlockPart(
            start=offset + start,
            end=offset + end,
            tokens=tokens,
            page=block.page,
            ends_block=number == len(spans),
        )
        for number, (start, end, tokens) in enumerate(spans, start=1)
    ]


def _ends(block: Block) -> list[int]:
    if block.kind is BlockKind.HEADING:
        return [len(block.text)]
    mark = re.compile("\n") if block.kind is BlockKind.LINES else _SENTENCE
    return [
        *(match.end() for match in mark.finditer(block.text) if match.end() < len(block.text)),
        len(block.text),
    ]


def _bounded(text: str, start: int, end: int, target: int) -> Iterator[tuple[int, int, int]]:
    """Yield the span with its tokens, cut at white space, or anywhere, if it is longer than a passage."""
    # `most` characters are more than a passage in any script. Tokens of longer spans are never counted, so the work is linear.
    most = target * CHARACTERS_PER_TOKEN + 1
    while (tokens := estimate_tokens(text[start : min(end, start + most)])) > target:
        # A share of the characters has about the same share of the tokens.
        cut = start + max(1, min(end - start, most) * target // (tokens + 1))
        spaces = [match.end() for match in _WHITE.finditer(text, start, cut) if match.end() > start]
        if spaces and spaces[-1] > start + (cut - start) // 2:
            cut = spaces[-1]
        yield start, cut, estimate_tokens(text[start:cut])
        start = cut
    if end > start:
        yield start, end, tokens


def _ranges(parts: Sequence[_BlockPart], size: PassageSize) -> Iterator[tuple[int, int]]:
    """Yield the range of the parts of each passage: the first part, and the part after the last one."""
    first = done = 0
    while done < len(parts):
        after = _fill(parts, first, done, size.target)
        yield first, after
        done = after
        first = _overlap_start(parts, first, after, size.overlap)


def _fill(parts: Sequence[_BlockPart], first: int, done: int, target: int) -> int:
    """Return the end of a passage that begins at `first`: the part after its last one. The passage has a part beyond `done`."""
    tokens = sum(part.tokens for part in parts[first:done])
    after, at_block = done, 0
    while after < len(parts) and (tokens + parts[after].tokens <= target or after == done):
        tokens += parts[after].tokens
        after += 1
        if parts[after - 1].ends_block and tokens >= BLOCK_SHARE * target:
            at_block = after
    return len(parts) if _is_short(parts, after, MIN_SHARE * target) else at_block or after


def _is_short(parts: Sequence[_BlockPart], start: int, tokens: float) -> bool:
    """Return whether the parts from `start` on have fewer tokens."""
    for number in range(start, len(parts)):
        tokens -= parts[number].tokens
        if tokens <= 0:
            return False
    return True


def _overlap_start(parts: Sequence[_BlockPart], first: int, after: int, overlap: int) -> int:
    start, tokens = after, 0
    while start > first + 1 and tokens + parts[start - 1].tokens <= overlap:
        start -= 1
        tokens += parts[start].tokens
    return start
