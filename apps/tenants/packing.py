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

from backports.zstd import CompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdDict, ZstdError

from apps.tenants.encoding import encoded, from_json

#: The JSON text itself follows.
PLAIN = b"\x00"
#: A zlib stream of the text follows, without and with FIRST_DICTIONARY: read, and not written any more.
DEFLATED = b"\x01"
DEFLATED_BY_DICTIONARY = b"\x02"
#: A zstd frame of the text follows that was compressed with DICTIONARY. Another dictionary is another form.
ZSTD = b"\x03"

#: What the situations and prompts of all agents have in common. A dictionary is part of its form: what was packed with it
#: can only be read with these very bytes, so the files never change. Decision 0015 says how they were made.
DICTIONARY = Path(__file__).with_name("packing_dictionary.zstd")
FIRST_DICTIONARY = Path(__file__).with_name("packing_dictionary.txt")

#: Shorter texts gain nothing by compression.
_SHORT = 64
_OPTIONS: dict[int, int] = {CompressionParameter.compression_level: 3, CompressionParameter.checksum_flag: 1}
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
    return ZSTD + _compressor().compress(text, ZstdCompressor.FLUSH_FRAME)


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
    if form == ZSTD:
        return _decompressed(packed, ZstdDecompressor(_dictionary().as_digested_dict))
    if form == PLAIN:
        following = _FORM.search(packed, 1)
        end = following.start() if following else len(packed)
        return packed[1:end], packed[end:]
    if form == DEFLATED:
        return _decompressed(packed, zlib.decompressobj())
    if form == DEFLATED_BY_DICTIONARY:
        return _decompressed(packed, zlib.decompressobj(zdict=FIRST_DICTIONARY.read_bytes()))
    raise ValueError(f"packed JSON begins with its form, 0 to 3, not with {form!r}")


def _decompressed(packed: bytes, stream: Any) -> tuple[bytes, bytes]:
    try:
        text: bytes = stream.decompress(packed[1:])
    except (ZstdError, zlib.error) as error:
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
def _compressor() -> ZstdCompressor:
    """Return the compressor of this process; each of its frames stands alone, and it makes one at a time."""
    return ZstdCompressor(options=_OPTIONS, zstd_dict=_dictionary().as_digested_dict)


@cache
def _dictionary() -> ZstdDict:
    return ZstdDict(DICTIONARY.read_bytes())
