"""Names of documents: kinds by ending, paths below a folder, titles and categories."""

from __future__ import annotations

import pytest

from arbor.errors import Invalid
from arbor.knowledge.files import (
    checked_category,
    checked_name,
    has_known_ending,
    kind_of,
    title_of,
    visible_text,
)
from arbor.knowledge.values import CATEGORY_LENGTH, NAME_LENGTH, TRANSITIONS, DocumentKind, DocumentStatus


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.md", DocumentKind.MARKDOWN),
        ("A.PDF", DocumentKind.PDF),
        ("x/y.docx", DocumentKind.DOCX),
        ("page.htm", DocumentKind.HTML),
        ("notes.txt", DocumentKind.TEXT),
    ],
)
def test_the_ending_decides_the_kind(name: str, kind: DocumentKind) -> None:
    assert kind_of(name) is kind
    assert has_known_ending(name)


@pytest.mark.parametrize("name", ["a.doc", "a", ".pdf", "a.exe"])
def test_other_endings_are_refused(name: str) -> None:
    assert not has_known_ending(name)
    with pytest.raises(Invalid, match=r"ends in \.docx, \.htm"):
        kind_of(name)


@pytest.mark.parametrize(
    ("name", "checked"),
    [("a.md", "a.md"), ("\\files\\a.md", "files/a.md"), ("/files//a.md", "files/a.md"), (" a.md ", "a.md")],
)
def test_names_are_paths_below_a_folder(name: str, checked: str) -> None:
    assert checked_name(name) == checked


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "is a file's name or a path below a folder, got ''"),
        ("..", "is a file's name or a path below a folder"),
        ("../a.md", "is a file's name or a path below a folder"),
        ("a/../../b.md", "is a file's name or a path below a folder"),
        ("a\nb.md", "has printable characters only, got 'a\\\\nb.md'"),
        ("a\u2028b.md", "has printable characters only"),
        ("a\0.md", "must not contain a NUL character"),
        ("x" * (NAME_LENGTH + 1), "must have at most"),
    ],
)
def test_invalid_names_are_refused(name: str, reason: str) -> None:
    with pytest.raises(Invalid, match=f"a document's name {reason}"):
        checked_name(name)


def test_a_category_is_one_line() -> None:
    assert checked_category("  human \n resources ") == "human resources"
    with pytest.raises(Invalid, match="at most 60 characters"):
        checked_category("x" * (CATEGORY_LENGTH + 1))


def test_a_title_is_stated_or_the_name() -> None:
    assert title_of("files/hand.md", "", " The \n Handbook ") == "The Handbook"
    assert title_of("files/hand.md", "", "") == "hand"


_TAGS = "".join(chr(0xE0000 + ord(char)) for char in "hidden")


@pytest.mark.parametrize(
    "hidden", [_TAGS, "\u202e", "\u200b", "\ufeff", "\xad", "\ue000", "\x07", "\U000e0101"]
)
def test_hidden_characters_are_left_out(hidden: str) -> None:
    assert checked_name(f"hand{hidden}book.md") == "handbook.md"
    assert checked_category(f"po{hidden}licies {hidden}") == "policies"
    assert title_of("a.md", hidden, f"Hand{hidden}book") == "Handbook"
    assert visible_text(f"a\n\tb{hidden}") == "a\n\tb"


@pytest.mark.parametrize("text", ["नमस्ते क्‍ष", "👩‍👩‍👧 ☂️", "Größe 漢字\t1"])
def test_joiners_of_scripts_and_emoji_stay(text: str) -> None:
    assert visible_text(text) == text


def test_each_status_has_its_transitions() -> None:
    assert TRANSITIONS.keys() == set(DocumentStatus)
    assert not any(status in after for status, after in TRANSITIONS.items())
    # A file that comes back brings its draft back.
    into_draft = {status for status, after in TRANSITIONS.items() if DocumentStatus.DRAFT in after}
    assert into_draft == {DocumentStatus.WITHDRAWN}
