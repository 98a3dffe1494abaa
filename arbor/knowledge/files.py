"""Names of documents' files: their kinds by ending, valid names and categories, titles, and visible text."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

from arbor.errors import Invalid
from arbor.knowledge.values import CATEGORY_LENGTH, NAME_LENGTH, TITLE_LENGTH, DocumentKind
from arbor.memory.content import check_line, check_text

_KINDS = {
    ".md": DocumentKind.MARKDOWN,
    ".markdown": DocumentKind.MARKDOWN,
    ".txt": DocumentKind.TEXT,
    ".text": DocumentKind.TEXT,
    ".htm": DocumentKind.HTML,
    ".html": DocumentKind.HTML,
    ".xhtml": DocumentKind.HTML,
    ".docx": DocumentKind.DOCX,
    ".pdf": DocumentKind.PDF,
}
#: Characters that are invisible and change how others are read, or hide a text: control characters except line breaks and tabs, soft
#: hyphens, directions, surrogates, private use, and plane 14, the tags. Joiners of scripts and emoji are not among them.
_HIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u202a-\u202e\u2066-\u2069\ufeff\ud800-\uf8ff\U000e0000-\U0010ffff]"
)
#: The endings of files that are read.
ENDINGS = frozenset(_KINDS)


def has_known_ending(name: str) -> bool:
    """Return whether a file of this name can be a document."""
    return PurePosixPath(name).suffix.lower() in _KINDS


def kind_of(name: str) -> DocumentKind:
    """Return the kind of a file by the ending of its name. Raises Invalid for another ending."""
    ending = PurePosixPath(name).suffix.lower()
    kind = _KINDS.get(ending)
    if kind is None:
        raise Invalid(
            f"a document's name ends in {', '.join(sorted(_KINDS))}, got {ending or 'no ending'} of {name[:200]!r}"
        )
    return kind


def visible_text(text: str) -> str:
    """Return the text without the characters that are invisible and change how others are read."""
    return _HIDDEN.sub("", text)


def checked_name(name: str) -> str:
    """Return the name of a document with forward slashes.

    Raises Invalid for one that is empty, is too long, leads outside, or has characters that cannot be printed.
    """
    check_text("a document's name", name)
    cleaned = visible_text(unicodedata.normalize("NFC", name.replace("\\", "/"))).strip().lstrip("/")
    check_line("a document's name", cleaned, NAME_LENGTH)
    parts = PurePosixPath(cleaned).parts
    if not cleaned.isprintable():
        raise Invalid(f"a document's name has printable characters only, got {name[:200]!r}")
    if not parts or ".." in parts:
        raise Invalid(f"a document's name is a file's name or a path below a folder, got {name[:200]!r}")
    return "/".join(parts)


def checked_category(category: str) -> str:
    """Return the category in one line, empty for none. Raises Invalid if it is too long."""
    check_text("a category", category)
    cleaned = " ".join(visible_text(unicodedata.normalize("NFC", category)).split())
    check_line("a category", cleaned, CATEGORY_LENGTH)
    return cleaned


def title_of(name: str, *stated: str) -> str:
    """Return the first of the titles that is not empty, else the name of the file without its ending."""
    titles = [" ".join(visible_text(title).split()) for title in stated]
    return next(filter(None, titles), PurePosixPath(name).stem)[:TITLE_LENGTH]
