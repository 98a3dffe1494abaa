"""Read HTML as blocks of a document; Markdown and DOCX become HTML first."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from arbor.errors import DocumentUnreadable
from arbor.knowledge.blocks import Block, BlockKind, ParsedDocument

_XML_DECLARATION = re.compile(r"\A\s*<\?xml\b[^>]*>")
#: The declaration by which the parser decodes a page; the word alone, in a text, is none.
_DECLARED_CHARSET = re.compile(rb"<meta\b[^>]*\bcharset\b", re.IGNORECASE)
_CHARSETS = ("utf-8-sig", "cp1252")
_SKIPPED = frozenset(
    {"script", "style", "template", "noscript", "svg", "iframe", "object", "head", "nav", "math", "canvas"}
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
#: Elements that end the text before them; the text of other elements continues the line.
_BLOCK_NAMES = """
    address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption
    figure footer form header hr html li main ol option p section summary table tbody tfoot thead ul
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_CELLS = frozenset({"td", "th"})


def decode(content: bytes) -> str:
    """Decode a text by its byte order mark, as UTF-8, or as Western European."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    for charset in _CHARSETS:
        try:
            return content.decode(charset)
        except UnicodeDecodeError:
            continue
    return content.decode("utf-8", errors="replace")


def read_html(content: bytes) -> ParsedDocument:
    """Read a page. Raises DocumentUnreadable."""
    if not content.strip():
        return ParsedDocument(blocks=())
    source: bytes | str = content
    if not _DECLARED_CHARSET.search(content[:2048]):
        # The parser refuses a text that says how it is encoded.
        source = _XML_DECLARATION.sub("", decode(content), count=1)
    root = _parse(source)
    title = root.findtext(".//title") or ""
    return ParsedDocument(blocks=tuple(_element_blocks(root)), title=" ".join(title.split()))


def html_blocks(source: str) -> Iterator[Block]:
    """Yield the blocks of a fragment of HTML that a library has rendered. Raises DocumentUnreadable."""
    if source.strip():
        yield from _element_blocks(_parse(f"<div>{source}</div>"))


def _parse(source: bytes | str) -> Any:
    """Parse HTML. Raises DocumentUnreadable, also for a document of which the parser would leave out the deepest parts."""
    html = importlib.import_module("lxml.html")
    etree = importlib.import_module("lxml.etree")
    # This process limits the memory; without `huge_tree`, text below 256 levels is lost.
    parser = html.HTMLParser(huge_tree=True, no_network=True)
    try:
        root = html.document_fromstring(source, parser=parser)
    except (etree.LxmlError, ValueError) as error:
        raise DocumentUnreadable(f"it is no HTML: {error}") from error
    for entry in parser.error_log.filter_from_fatals():
        if entry.type_name == "ERR_RESOURCE_LIMIT":
            raise DocumentUnreadable("its parts are nested too deeply")
    return root


@dataclass(kw_only=True, slots=True)
class _HtmlReader:
    """Collects the text of elements into blocks, in the order of the document."""

    #: The parts of the block that is being read, and of its table row.
    parts: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    #: The number of texts in the row before each open cell.
    before: list[int] = field(default_factory=list)
    #: The numbers of open elements: skipped ones, `pre` and `tr`.
    skipped: int = 0
    lines: int = 0
    rows: int = 0
    #: The level of the heading that is being read; 0: none.
    level: int = 0

    def add(self, text: str | None) -> None:
        """Add running text."""
        if text and not self.skipped:
            self.parts.append(text)

    def flush(self) -> Iterator[Block]:
        """Yield the block that ends here."""
        text = "".join(self.parts)
        self.parts.clear()
        if not self.lines:
            text = " ".join(text.split())
        if not text.strip():
            return
        if self.rows and not self.level:
            # In a row of a table, which is one block: the cells are separated when the row ends.
            self.cells.append(" ".join(text.split()))
        elif self.level:
            yield Block(kind=BlockKind.HEADING, text=" ".join(text.split()), level=self.level)
        else:
            yield Block(kind=BlockKind.LINES if self.lines else BlockKind.PROSE, text=text.strip("\n"))

    def begin_cell(self) -> Iterator[Block]:
        """Yield the block before a cell of a table."""
        yield from self.flush()
        self.before.append(len(self.cells))

    def end_cell(self) -> Iterator[Block]:
        """Join the texts of the cell that ends here: an empty cell is one too, so that others keep their columns."""
        yield from self.flush()
        before = self.before.pop()
        if self.rows:
            self.cells[before:] = [" ".join(self.cells[before:])]

    def end_row(self) -> Iterator[Block]:
        """Yield the row of a table that ends here."""
        yield from self.flush()
        cells, self.cells = self.cells, []
        if any(cells):
            yield Block(kind=BlockKind.LINES, text=" | ".join(cells))


def _element_blocks(root: Any) -> Iterator[Block]:
    """Yield the blocks of a tree, without recursion: trees are as deep as their authors want."""
    etree = importlib.import_module("lxml.etree")
    reader = _HtmlReader()
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        tag = element.tag if isinstance(element.tag, str) else ""
        if event == "start":
            yield from _open(reader, tag)
            reader.add(element.text)
        else:
            if event == "end":
                yield from _close(reader, tag)
            reader.add(element.tail)
    yield from reader.flush()


def _open(reader: _HtmlReader, tag: str) -> Iterator[Block]:
    if tag in _SKIPPED:
        reader.skipped += 1
    elif tag in _HEADINGS:
        yield from reader.flush()
        reader.level = _HEADINGS[tag]
    elif tag == "pre":
        yield from reader.flush()
        reader.lines += 1
    elif tag == "tr":
        yield from reader.flush()
        reader.rows += 1
    elif tag == "br":
        reader.add("\n" if reader.lines else " ")
    elif tag in _CELLS:
        yield from reader.begin_cell()
    elif tag in _BLOCKS:
        yield from reader.flush()


def _close(reader: _HtmlReader, tag: str) -> Iterator[Block]:
    if tag in _SKIPPED:
        reader.skipped -= 1
    elif tag in _HEADINGS:
        yield from reader.flush()
        reader.level = 0
    elif tag == "pre":
        yield from reader.flush()
        reader.lines -= 1
    elif tag == "tr":
        yield from reader.end_row()
        reader.rows -= 1
    elif tag in _CELLS:
        yield from reader.end_cell()
    elif tag in _BLOCKS:
        yield from reader.flush()
