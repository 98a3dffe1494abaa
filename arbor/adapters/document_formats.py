"""Read files of documents as blocks: Markdown, text, HTML, DOCX and PDF. Runs in a child process with limits."""

from __future__ import annotations

import importlib
import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from arbor.adapters.document_html import decode, html_blocks, read_html
from arbor.errors import DocumentUnreadable
from arbor.knowledge.blocks import Block, BlockKind, ParsedDocument
from arbor.knowledge.files import visible_text
from arbor.knowledge.values import DocumentKind


@dataclass(frozen=True, kw_only=True, slots=True)
class FormatLimits:
    """The largest document that is read."""

    #: Pages of a PDF.
    pages: int = 2_000
    #: Characters of the text.
    characters: int = 5_000_000
    #: Bytes of all parts of a DOCX together, unpacked.
    unpacked_bytes: int = 200_000_000


_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
#: The characters of front matter in which a title is looked for.
_FRONT_MATTER_READ = 20_000
#: The loader in C, where it is installed, is ten times as fast.
_YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_YAML_NULLS = ("~", "null", "Null", "NULL")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
#: A word that a PDF breaks over two lines.
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[a-zà-ÿ])")


def read_document(kind: DocumentKind, content: bytes, limits: FormatLimits) -> ParsedDocument:
    """Read a file. Raises DocumentUnreadable, with the reason, also for a file without text."""
    match kind:
        case DocumentKind.TEXT:
            parsed = _read_text(content)
        case DocumentKind.MARKDOWN:
            parsed = _read_markdown(content)
        case DocumentKind.HTML:
            parsed = read_html(content)
        case DocumentKind.DOCX:
            parsed = _read_docx(content, limits.unpacked_bytes)
        case DocumentKind.PDF:
            parsed = _read_pdf(content, limits.pages)
    blocks = tuple(_bounded(_cleaned(parsed.blocks), limits.characters))
    if not blocks:
        scanned = kind is DocumentKind.PDF
        raise DocumentUnreadable(
            "it has no text"
            + (": its pages may be scans, which have to be recognized first" if scanned else "")
        )
    return ParsedDocument(blocks=blocks, title=visible_text(parsed.title), pages=parsed.pages)


def _cleaned(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        if text := visible_text(block.text).strip():
            yield Block(kind=block.kind, text=text, level=block.level, page=block.page)


def _bounded(blocks: Iterable[Block], most: int) -> Iterator[Block]:
    characters = 0
    for block in blocks:
        characters += len(block.text)
        if characters > most:
            raise DocumentUnreadable(f"it has more than {most:,} characters; split it into several documents")
        yield block


# --- Text and Markdown --------------------------------------------------------------------------------


def _text_of(content: bytes) -> str:
    if b"\0" in content[:4096] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DocumentUnreadable("it is no text: it contains NUL bytes")
    return decode(content).replace("\r\n", "\n").replace("\r", "\n")


def _read_text(content: bytes) -> ParsedDocument:
    return ParsedDocument(blocks=tuple(_paragraphs(_text_of(content))))


def _paragraphs(text: str, page: int | None = None) -> Iterator[Block]:
    for paragraph in _BLANK_LINES.split(text):
        yield Block(kind=BlockKind.PROSE, text=paragraph, page=page)


def _read_markdown(content: bytes) -> ParsedDocument:
    text = _text_of(content)
    title = ""
    if match := _FRONT_MATTER.match(text):
        title, text = _stated_title(match[1]), text[match.end() :]
    markdown = importlib.import_module("markdown_it").MarkdownIt("commonmark").enable("table")
    return ParsedDocument(blocks=tuple(html_blocks(markdown.render(text))), title=title)


def _stated_title(front_matter: str) -> str:
    """Return the title at the top level of YAML as it is written; empty if there is none, and for a list or a mapping."""
    try:
        return _title_of(yaml.parse(front_matter[:_FRONT_MATTER_READ], Loader=_YAML_LOADER))
    except yaml.YAMLError:
        return ""


def _title_of(events: Iterator[yaml.Event]) -> str:
    # Values are not constructed, because merged keys and references to lists could take hours and gigabytes.
    depth, is_key, is_title = 0, True, False
    for event in events:
        if depth == 1 and isinstance(event, yaml.NodeEvent):
            scalar = event.value if isinstance(event, yaml.ScalarEvent) else ""
            if is_title:
                is_null = scalar in _YAML_NULLS and not getattr(event, "style", "")
                return "" if is_null else scalar
            is_title, is_key = is_key and scalar == "title", not is_key
        if isinstance(event, yaml.CollectionStartEvent):
            if depth == 0 and not isinstance(event, yaml.MappingStartEvent):
                break
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return ""


# --- DOCX and PDF -------------------------------------------------------------------------------------


def _read_docx(content: bytes, most_bytes: int) -> ParsedDocument:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DocumentUnreadable(f"it is no DOCX: {error}") from error
    if unpacked > most_bytes:
        raise DocumentUnreadable(
            f"it unpacks to {unpacked:,} bytes, more than the {most_bytes:,} that are read"
        )
    if "word/document.xml" not in names:
        raise DocumentUnreadable("it is no DOCX: it has no word/document.xml")
    mammoth = importlib.import_module("mammoth")
    try:
        # Pictures have no text.
        converted = mammoth.convert_to_html(
            io.BytesIO(content), convert_image=mammoth.images.img_element(lambda _: {"src": ""})
        )
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        # The library has no error classes of its own, and all its errors are about this file.
        raise DocumentUnreadable(f"it is damaged: {_first_line(error)}") from error
    return ParsedDocument(blocks=tuple(html_blocks(converted.value)))


def _read_pdf(content: bytes, most_pages: int) -> ParsedDocument:
    pypdf = importlib.import_module("pypdf")
    if b"%PDF-" not in content[:1024]:
        raise DocumentUnreadable("it is no PDF: it does not begin with %PDF-")
    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise DocumentUnreadable("it is encrypted; save it without a password")
        pages = len(reader.pages)
        if pages > most_pages:
            raise DocumentUnreadable(f"it has {pages:,} pages, more than the {most_pages:,} that are read")
        blocks = [block for number, page in enumerate(reader.pages, start=1) for block in _page(number, page)]
        title = str(reader.metadata.title or "") if reader.metadata else ""
    except (DocumentUnreadable, MemoryError):
        raise
    except Exception as error:
        # A damaged file makes the library fail with errors of many classes, not only its own.
        raise DocumentUnreadable(f"it is damaged: {_first_line(error)}") from error
    return ParsedDocument(blocks=tuple(blocks), title=" ".join(title.split()), pages=pages)


def _page(number: int, page: Any) -> Iterator[Block]:
    text = _HYPHENATED.sub("", page.extract_text())
    for paragraph in _paragraphs(text, number):
        yield Block(kind=paragraph.kind, text=" ".join(paragraph.text.split()), page=number)


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
