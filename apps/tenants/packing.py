"""JSON as compressed bytes, for data that each heartbeat writes and that is seldom read.

The first byte of a packed value is its format, 0 to 4. JSON text has no bytes below 9, so packed lists can be concatenated
without unpacking them (`||` in SQL). Short text, and text that was migrated from `jsonb`, is not compressed.
"""

from __future__ import annotations

import json
import re
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from backports.zstd import CompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdDict, ZstdError

from apps.tenants.encoding import from_json, to_json_bytes

#: Format: uncompressed JSON text.
PLAIN = b"\x00"
#: Formats: a zlib stream, without and with FIRST_DICTIONARY. Still read, no longer written.
DEFLATED = b"\x01"
DEFLATED_BY_DICTIONARY = b"\x02"
#: Format: a zstd frame, compressed with SECOND_DICTIONARY. Still read, no longer written.
ZSTD_BY_SECOND = b"\x03"
#: Format: a zstd frame, compressed with DICTIONARY. Another dictionary needs another format byte.
ZSTD = b"\x04"

#: Compression dictionaries: text that the situations and prompts of all agents share. Values can only be unpacked with the
#: dictionary they were packed with, so the files must never change. Decision 0015 explains how they were made.
DICTIONARY = Path(__file__).with_name("packing_dictionary_4.zstd")
SECOND_DICTIONARY = Path(__file__).with_name("packing_dictionary.zstd")
FIRST_DICTIONARY = Path(__file__).with_name("packing_dictionary.txt")

#: Texts with fewer bytes do not shrink by compression.
_MIN_COMPRESSED = 64
#: The options of the smallest frames that take at most 50 µs longer than level 3 (decision 0015). Each frame can be read with any options.
_OPTIONS: dict[int, int] = {
    CompressionParameter.compression_level: 6,
    CompressionParameter.search_log: 4,
    CompressionParameter.min_match: 5,
    CompressionParameter.checksum_flag: 1,
}
_FORMAT = re.compile(rb"[\x00-\x08]")


def pack(value: Any) -> bytes:
    """Return a value as packed JSON; UUIDs, datetimes and pydantic models are encoded as by `to_json`.

    Raises TypeError as `to_json` does.
    """
    return pack_text(to_json_bytes(value))


def pack_text(text: bytes) -> bytes:
    """Pack JSON text."""
    if len(text) < _MIN_COMPRESSED:
        return PLAIN + text
    return ZSTD + _compressor().compress(text, ZstdCompressor.FLUSH_FRAME)


def unpack(packed: bytes) -> Any:
    """Unpack one value of packed JSON. Raises ValueError for other bytes."""
    return _value(unpack_text(packed))


def unpack_text(packed: bytes) -> bytes:
    """Unpack one JSON text, byte for byte. Raises ValueError for other bytes."""
    text, remainder = _unpack_first(packed)
    if remainder:
        raise ValueError(f"packed JSON must be one value, got {len(remainder)} more bytes")
    return text


def unpack_list(packed: bytes) -> list[Any]:
    """Return the items of concatenated packed lists. Raises ValueError for other bytes."""
    items: list[Any] = []
    while packed:
        text, packed = _unpack_first(packed)
        items += _value(text)
    return items


def in_json(packed: bytes) -> str:
    """Return packed JSON as the text of a `bytea` column in rows that PostgreSQL reads from JSON."""
    return f"\\x{packed.hex()}"


def unpack_in_json(text: str) -> Any:
    """Unpack one value of packed JSON from the text that PostgreSQL writes for a `bytea` column in JSON."""
    return unpack(bytes.fromhex(text.removeprefix("\\x")))


def sql_literal(value: Any) -> str:
    """Return a value as an SQL literal of packed JSON, for statements that write or compare short values."""
    return f"'\\x{pack(value).hex()}'::bytea"


def _unpack_first(packed: bytes) -> tuple[bytes, bytes]:
    """Return the first packed text unpacked, and the remaining bytes."""
    format_byte = packed[:1]
    if format_byte == ZSTD:
        return _decompressed(packed, ZstdDecompressor(_dictionary(DICTIONARY).as_digested_dict))
    if format_byte == PLAIN:
        following = _FORMAT.search(packed, 1)
        end = following.start() if following else len(packed)
        return packed[1:end], packed[end:]
    if format_byte == ZSTD_BY_SECOND:
        return _decompressed(packed, ZstdDecompressor(_dictionary(SECOND_DICTIONARY).as_digested_dict))
    if format_byte == DEFLATED:
        return _decompressed(packed, zlib.decompressobj())
    if format_byte == DEFLATED_BY_DICTIONARY:
        return _decompressed(packed, zlib.decompressobj(zdict=FIRST_DICTIONARY.read_bytes()))
    raise ValueError(f"packed JSON begins with its format, 0 to 4, got {format_byte!r}")


def _decompressed(packed: bytes, stream: Any) -> tuple[bytes, bytes]:
    try:
        text: bytes = stream.decompress(packed[1:])
    except (ZstdError, zlib.error) as error:
        raise ValueError(f"packed JSON cannot be read: {error}") from error
    if not stream.eof:
        raise ValueError("packed JSON is truncated")
    return text, stream.unused_data


def _value(text: bytes) -> Any:
    try:
        return from_json(text)
    except ValueError:
        # Only the standard library decodes lone surrogates, which are rare.
        return json.loads(text)


@cache
def _compressor() -> ZstdCompressor:
    """Return the compressor of this process; it writes independent frames, one at a time."""
    # A digested dictionary would overrule the options.
    return ZstdCompressor(options=_OPTIONS, zstd_dict=_dictionary(DICTIONARY).as_undigested_dict)


@cache
def _dictionary(path: Path) -> ZstdDict:
    return ZstdDict(path.read_bytes())
