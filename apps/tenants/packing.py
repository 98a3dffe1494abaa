"""JSON as compressed bytes, for what is written with every heartbeat and read again seldom.

The first byte of a packed value is its form. Bytes below 9 occur in no JSON text, so packed lists can be appended to each
other as they are (`||` in SQL). Text that is short, or that an older version stored, is in the plain form.
"""

from __future__ import annotations

import json
import re
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from apps.tenants.encoding import encoded, from_json

#: The JSON text itself follows.
PLAIN = b"\x00"
#: A zlib stream of the text follows.
DEFLATED = b"\x01"
#: A zlib stream of the text follows that begins with DICTIONARY. Another dictionary is another form.
DEFLATED_BY_DICTIONARY = b"\x02"

#: What the situations and prompts of all agents have in common. It is part of the form: what was packed with it can only
#: be read with these very bytes, so the file never changes. Decision 0015 says how it was made.
DICTIONARY = Path(__file__).with_name("packing_dictionary.txt")

#: Shorter texts gain nothing by compression, or by the dictionary.
_SHORT = 128
_LONG = 4096
_LEVEL = 1
_FORM = re.compile(rb"[\x00-\x08]")


def pack(value: Any) -> bytes:
    """Return a value as packed JSON; UUIDs, moments and pydantic's models are written as `to_json` writes them.

    Raises TypeError for what is no JSON.
    """
    return pack_text(encoded(value))


def pack_text(text: bytes) -> bytes:
    """Return JSON text packed."""
    if len(text) < _SHORT:
        return PLAIN + text
    if len(text) < _LONG:
        return DEFLATED + zlib.compress(text, _LEVEL)
    stream = zlib.compressobj(_LEVEL, zdict=_dictionary())
    return DEFLATED_BY_DICTIONARY + stream.compress(text) + stream.flush()


def unpack(packed: bytes) -> Any:
    """Return the value of packed JSON. Raises ValueError for anything else."""
    return _value(unpack_text(packed))


def unpack_text(packed: bytes) -> bytes:
    """Return the JSON text that was packed, byte for byte. Raises ValueError for anything else."""
    text, rest = _split(packed)
    if rest:
        raise ValueError(f"one packed value was expected, {len(rest)} bytes follow it")
    return text


def unpack_list(packed: bytes) -> list[Any]:
    """Return the items of packed lists that were appended to each other. Raises ValueError for anything else."""
    items: list[Any] = []
    while packed:
        text, packed = _split(packed)
        items += _value(text)
    return items


def sql_literal(value: Any) -> str:
    """Return a packed value as a constant of SQL, for statements that write or compare with a short one."""
    return f"'\\x{pack(value).hex()}'::bytea"


def _split(packed: bytes) -> tuple[bytes, bytes]:
    """Return the first packed text, and what follows it."""
    form = packed[:1]
    if form == DEFLATED_BY_DICTIONARY:
        return _inflate(packed, zlib.decompressobj(zdict=_dictionary()))
    if form == DEFLATED:
        return _inflate(packed, zlib.decompressobj())
    if form == PLAIN:
        following = _FORM.search(packed, 1)
        end = following.start() if following else len(packed)
        return packed[1:end], packed[end:]
    raise ValueError(f"packed JSON begins with its form, 0 to 2, not with {form!r}")


def _inflate(packed: bytes, stream: Any) -> tuple[bytes, bytes]:
    try:
        text: bytes = stream.decompress(packed[1:])
    except zlib.error as error:
        raise ValueError(f"packed JSON cannot be read: {error}") from error
    if not stream.eof:
        raise ValueError("packed JSON ends too early")
    return text, stream.unused_data


def _value(text: bytes) -> Any:
    try:
        return from_json(text)
    except ValueError:
        # Halves of characters: rare, and the standard library knows them.
        return json.loads(text)


@cache
def _dictionary() -> bytes:
    return DICTIONARY.read_bytes()
