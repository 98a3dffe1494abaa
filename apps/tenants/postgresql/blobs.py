"""Many texts of bytes as one value of a statement, sent as they are: the driver writes lists of them a thousand times slower."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from psycopg.adapt import Dumper
from psycopg.pq import Format

#: `bytea` and `bytea[]` in PostgreSQL's catalogue.
_BYTEA, _BYTEAS = 17, 1001
#: What stands before the items of a list: one dimension, whether there are nulls, of which type, how many, the first is 1.
_HEAD = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)


class Blobs:
    """A list of bytes, nulls among them."""

    def __init__(self, items: Sequence[bytes | None]) -> None:
        self.items = items


class BlobsDumper(Dumper):
    """Writes them as the server holds them."""

    format = Format.BINARY
    oid = _BYTEAS

    def dump(self, obj: Blobs) -> bytes:
        """Return the list as PostgreSQL sends and receives arrays."""
        parts = [_HEAD.pack(1, None in obj.items, _BYTEA, len(obj.items), 1)]
        for item in obj.items:
            parts += (_NULL,) if item is None else (_LENGTH.pack(len(item)), item)
        return b"".join(parts)


class BlobsTextDumper(Dumper):
    """Writes them where values become part of the statement's text."""

    oid = _BYTEAS

    def dump(self, obj: Blobs) -> bytes:
        """Return the list as a literal."""
        items = ("NULL" if item is None else f'"\\\\x{item.hex()}"' for item in obj.items)
        return f"{{{','.join(items)}}}".encode()
