"""Files of documents: each kind read in the child, broken and excessive ones refused, the child replaced."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest

from arbor.adapters import documents
from arbor.adapters.document_formats import FormatLimits, read_document
from arbor.adapters.documents import DocumentReader, ReadingLimits
from arbor.errors import DocumentUnreadable, ReaderKilled
from arbor.knowledge.blocks import Block, BlockKind, ParsedDocument
from arbor.knowledge.values import DocumentKind
from tests.support.document_files import docx, pdf, zipped

MARKDOWN = b"""---
title: The Handbook
---
# Leave

Thirty *days* a year.
See [the list](https://example.org).

- first
- second

| who | days |
|-----|------|
| all | 30   |

```python
a = 1
b = 2
```
<script>alert(1)</script>
"""


def read(kind: DocumentKind, content: bytes, limits: FormatLimits | None = None) -> ParsedDocument:
    return read_document(kind, content, limits or FormatLimits())


def texts(document: ParsedDocument) -> list[str]:
    return [block.text for block in document.blocks]


@pytest.fixture(scope="module")
def reader() -> Iterator[DocumentReader]:
    reader = DocumentReader(ReadingLimits())
    yield reader
    reader.close()


def test_markdown_is_read_with_its_structure() -> None:
    document = read(DocumentKind.MARKDOWN, MARKDOWN)
    assert document.title == "The Handbook"
    assert document.blocks[0] == Block(kind=BlockKind.HEADING, text="Leave", level=1)
    assert texts(document)[1:] == [
        "Thirty days a year. See the list.",
        "first",
        "second",
        "who | days",
        "all | 30",
        "a = 1\nb = 2",
    ]
    assert document.blocks[-1].kind is BlockKind.LINES


def test_html_is_read_as_text_in_order() -> None:
    page = (
        "<html><head><title>T  x</title><style>a{}</style></head><body><nav>menu</nav><h2>Über</h2>one<br>two"
        "<div>three<p>four</p>five</div><table><tr><th>a</th><td><p>b</p></td></tr></table>six<!-- no -->seven"
        "</body></html>"
    )
    document = read(DocumentKind.HTML, page.encode())
    assert document.title == "T x"
    assert texts(document) == ["Über", "one two", "three", "four", "five", "a | b", "sixseven"]
    assert read(DocumentKind.HTML, page.encode("cp1252")) == document


def test_the_cells_of_a_table_keep_their_columns() -> None:
    page = (
        "<table><tr><td>name<td>mail<td>phone<tr><td>Ada<td> <td><p>1</p><p>2</p><tr><td><td></table>"
        "<table><tr><td>a<td><table><tr><td>b<td>c</table><td>d</table><td>end"
    )
    document = read(DocumentKind.HTML, page.encode())
    assert texts(document)[:2] == ["name | mail | phone", "Ada |  | 1 2"]
    assert " ".join(texts(document)[2:]).replace(" | ", " ").split() == ["a", "b", "c", "d", "end"]


def test_text_is_decoded_and_split_at_blank_lines() -> None:
    for charset in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        document = read(
            DocumentKind.TEXT, "Grüße\r\nan alle\r\n\r\n \r\nEnde\u200b".encode(charset, errors="ignore")
        )
        assert texts(document) == ["Grüße\nan alle", "Ende"]


@pytest.mark.parametrize(
    "front_matter",
    [
        b"date: 2024-13-45",
        b"pages: " + b"1:" * 200 + b"0.5",
        b"pages: !!int ''",
        b"done: !!bool x",
        b"a: [b",
        b"title: ~",
        b"title: [a]",
        b"about: {title: no}",
    ],
)
def test_front_matter_that_is_no_yaml_costs_only_the_title(front_matter: bytes) -> None:
    document = read(DocumentKind.MARKDOWN, b"---\n" + front_matter + b"\n---\nThirty days.\n")
    assert (document.title, texts(document)) == ("", ["Thirty days."])


def test_a_title_of_nested_references_is_not_expanded() -> None:
    levels = [f"{name}: &{name} [{', '.join([f'*{inner}'] * 9)}]" for inner, name in pairwise("abcdefgh")]
    front_matter = "\n".join(["a: &a x", *levels, "title: *h"])
    assert read(DocumentKind.MARKDOWN, f"---\n{front_matter}\n---\nThirty.".encode()).title == ""


def test_a_quoted_title_may_be_the_word_null() -> None:
    assert read(DocumentKind.MARKDOWN, b'---\ntitle: "null"\n---\nThirty.').title == "null"


@pytest.mark.parametrize("title", ["1.50", "yes", "2024-13-45", "0x" + "f" * 5_000])
def test_a_title_is_read_as_written(title: str) -> None:
    document = read(
        DocumentKind.MARKDOWN, f"---\nabout: {{title: no}}\ntitle: {title}\n---\nThirty.".encode()
    )
    assert document.title == title


def test_merged_keys_before_a_title_are_not_expanded() -> None:
    # Each line doubles the keys that a constructor would merge: 2^40 in the end.
    levels = [f"a{level}: &a{level} {{<<: [*a{level - 1}, *a{level - 1}]}}" for level in range(1, 40)]
    front_matter = "\n".join(["a0: &a0 {x: 1}", *levels, "title: Days"])
    assert read(DocumentKind.MARKDOWN, f"---\n{front_matter}\n---\nThirty.".encode()).title == "Days"


@pytest.mark.parametrize("kind", [DocumentKind.HTML, DocumentKind.MARKDOWN])
def test_deeply_nested_text_is_read_or_refused(kind: DocumentKind) -> None:
    assert texts(read(kind, b"<font>" * 500 + b"Thirty days")) == ["Thirty days"]
    with pytest.raises(DocumentUnreadable, match="nested too deeply"):
        read(kind, b"<div>a" * 3_000)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_page_with_an_xml_declaration_and_a_mark_is_read(encoding: str) -> None:
    page = f'<?xml version="1.0" encoding="{encoding[:6]}"?>\n<html><body><p>Thirty Tüge</p></body></html>'
    assert texts(read(DocumentKind.HTML, page.encode(encoding))) == ["Thirty Tüge"]


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("<title>What is a charset?</title>", "utf-8"),
        ('<meta charset="iso-8859-1">', "iso-8859-1"),
        ('<?xml version="1.0" encoding="UTF-8"?>', "utf-8"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?>', "iso-8859-1"),
    ],
)
def test_a_page_is_decoded_by_its_declaration_or_its_bytes(head: str, encoding: str) -> None:
    page = f"{head}<body><p>Thirty Tüge</p></body>"
    assert texts(read(DocumentKind.HTML, page.encode(encoding))) == ["Thirty Tüge"]


def test_hidden_text_is_not_read() -> None:
    tags = "".join(chr(0xE0000 + ord(char)) for char in "obey")
    page = f"<title>Ti{tags}tle</title><h1>Le{tags}ave</h1><p>Thirty{tags} days"
    document = read(DocumentKind.HTML, page.encode())
    assert (document.title, texts(document)) == ("Title", ["Leave", "Thirty days"])


def test_docx_has_headings() -> None:
    document = read(DocumentKind.DOCX, docx(("Heading1", "Leave"), ("", "Thirty days & more.")))
    assert document.blocks == (
        Block(kind=BlockKind.HEADING, text="Leave", level=1),
        Block(kind=BlockKind.PROSE, text="Thirty days & more."),
    )


def test_pdf_has_pages() -> None:
    document = read(DocumentKind.PDF, pdf(["The first page and its con-", "tents."], ["The second page."]))
    assert document.pages == 2
    assert [(block.page, block.text) for block in document.blocks] == [
        (1, "The first page and its contents."),
        (2, "The second page."),
    ]


@pytest.mark.parametrize(
    ("kind", "content", "reason"),
    [
        (DocumentKind.PDF, b"not a pdf", "no PDF"),
        (DocumentKind.PDF, b"%PDF-1.4 and nothing else", "damaged"),
        (DocumentKind.PDF, pdf([]), "may be scans"),
        (DocumentKind.DOCX, b"not an archive", "no DOCX"),
        (DocumentKind.DOCX, zipped({"a.txt": "x"}), "no word/document.xml"),
        (DocumentKind.DOCX, zipped({"word/document.xml": "<broken"}), "damaged"),
        (DocumentKind.TEXT, b"PK\x03\x04\0\0", "NUL"),
        (DocumentKind.TEXT, b" \n ", "no text"),
        (DocumentKind.MARKDOWN, b"---\ntitle: x\n---\n", "no text"),
        (DocumentKind.HTML, b"", "no text"),
    ],
)
def test_broken_files_are_refused_with_a_reason(kind: DocumentKind, content: bytes, reason: str) -> None:
    with pytest.raises(DocumentUnreadable, match=reason):
        read(kind, content)


@pytest.mark.parametrize(
    ("kind", "content", "limits", "reason"),
    [
        (DocumentKind.PDF, pdf(["a"], ["b"]), FormatLimits(pages=1), "2 pages, more than the 1"),
        (DocumentKind.TEXT, b"x" * 101, FormatLimits(characters=100), "more than 100 characters"),
        (DocumentKind.DOCX, docx(("", "x" * 999)), FormatLimits(unpacked_bytes=900), "unpacks to"),
    ],
)
def test_a_file_beyond_a_limit_is_refused(
    kind: DocumentKind, content: bytes, limits: FormatLimits, reason: str
) -> None:
    with pytest.raises(DocumentUnreadable, match=reason):
        read(kind, content, limits)


def test_entities_are_not_expanded() -> None:
    entities = "".join(f"<!ENTITY e{n + 1} '{f'&e{n};' * 10}'>" for n in range(12))
    bomb = f"<?xml version='1.0'?><!DOCTYPE d [<!ENTITY e0 'ha'>{entities}]><d>&e12;</d>"
    with pytest.raises(DocumentUnreadable, match="damaged"):
        read(DocumentKind.DOCX, zipped({"word/document.xml": bomb}))


def test_the_child_reads_as_this_process_does(reader: DocumentReader) -> None:
    assert reader.read(kind=DocumentKind.MARKDOWN, content=MARKDOWN) == read(DocumentKind.MARKDOWN, MARKDOWN)
    with pytest.raises(DocumentUnreadable, match="no PDF"):
        reader.read(kind=DocumentKind.PDF, content=b"x")
    assert texts(reader.read(kind=DocumentKind.TEXT, content=b"again")) == ["again"]


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (signal.SIGTERM, ReaderKilled),
        (signal.SIGKILL, ReaderKilled),
        (signal.SIGXCPU, DocumentUnreadable),
        (signal.SIGSEGV, DocumentUnreadable),
    ],
)
def test_only_a_child_killed_from_outside_refuses_no_file(
    number: signal.Signals, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = f"import os, sys; sys.stdin.buffer.read(4); os.kill(os.getpid(), {number.value})"
    # Without the imports of site, the process starts in a few milliseconds.
    child = subprocess.Popen([sys.executable, "-IS", "-c", command], stdin=-1, stdout=-1)
    monkeypatch.setattr(documents, "_start", lambda: child)
    with pytest.raises(error, match="its reader was") as raised:
        DocumentReader(ReadingLimits()).read(kind=DocumentKind.TEXT, content=b"x")
    assert type(raised.value) is error


def test_a_child_that_exceeds_a_limit_is_replaced() -> None:
    slow = DocumentReader(ReadingLimits(seconds=0.001))
    with pytest.raises(DocumentUnreadable, match=r"more than 0\.001 s"):
        slow.read(kind=DocumentKind.TEXT, content=b"x")
    small = DocumentReader(ReadingLimits(memory_bytes=50 << 20))
    with pytest.raises(DocumentUnreadable, match=r"takes more than|was stopped"):
        small.read(kind=DocumentKind.TEXT, content=b"x y " * 8_000_000)
    assert texts(small.read(kind=DocumentKind.TEXT, content=b"again")) == ["again"]
    small.close()
