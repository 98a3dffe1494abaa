"""Check that texts of memories, names and reasons can be stored, and hash texts to find equal ones."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from arbor.errors import ContentInvalid, Invalid
from arbor.models.json_text import is_storable

#: The longest text of a memory, in bytes of UTF-8.
MAX_CONTENT_BYTES = 64 * 1024
#: A NUL character in JSON; not a backslash, itself escaped, before "u0000".
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*+\\u0000")


def check_content(content: str) -> None:
    """Raise ContentInvalid unless the text can be stored exactly as it is."""
    if not content.strip():
        got = "white space only" if content else "an empty text"
        raise ContentInvalid(f"a memory needs a text, got {got}")
    if (nul := content.find("\0")) >= 0:
        raise ContentInvalid(f"a memory's text must not contain a NUL character, got one at position {nul}")
    try:
        size = len(content.encode())
    except UnicodeEncodeError as exc:
        raise ContentInvalid(
            f"a memory's text must be valid Unicode, got half a surrogate pair at position {exc.start}"
        ) from exc
    if size > MAX_CONTENT_BYTES:
        raise ContentInvalid(
            f"a memory's text must have at most {MAX_CONTENT_BYTES:,} bytes of UTF-8, got {size:,}"
        )


def check_line(name: str, value: str, longest: int) -> None:
    """Raise Invalid unless a short text is within its length limit and can be stored exactly as it is."""
    if len(value) > longest:
        raise Invalid(f"{name} must have at most {longest:,} characters, got {len(value):,}")
    check_text(name, value)


def check_text(name: str, value: str) -> None:
    """Raise Invalid unless a text can be stored exactly as it is."""
    if not is_storable(value):
        raise Invalid(f"{name} must not contain a NUL character or half a surrogate pair")


def check_json(name: str, value: Mapping[str, Any]) -> str:
    """Return a value as JSON. Raises Invalid unless the value is JSON and can be stored exactly as it is."""
    try:
        serialized = json.dumps(dict(value), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"{name} must be JSON: {error}") from error
    check_text(name, "\0" if _ESCAPED_NUL.search(serialized) else serialized)
    return serialized


def content_hash(content: str) -> bytes:
    """Return 32 bytes that are equal for texts that differ only in white space or Unicode composition.

    The hash is SHA-256 over the text in normal form C, each run of white space folded to one space, none at the ends. Case
    counts, because "us" and "US" mean different things.
    """
    normalized = " ".join(unicodedata.normalize("NFC", content).split())
    return hashlib.sha256(normalized.encode()).digest()
