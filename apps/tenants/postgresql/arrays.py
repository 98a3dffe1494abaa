"""Lists of bytes or numbers as parameters of statements, in PostgreSQL's binary array format.

The driver's own dumper of lists of bytes is a thousand times slower, and PostgreSQL parses numbers in text digit by digit.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from psycopg.adapt import Dumper
from psycopg.pq import Format

#: Type ids of `bytea` and `bytea[]` in PostgreSQL's catalog.
_BYTEA, _BYTEAS = 17, 1001
#: The header of an array: number of dimensions, null flag, type id of the items, number of items, index of the first.
_ARRAY_HEAD = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)
#: Type ids of `real` and `real[]` in PostgreSQL's catalog.
_REAL, _REALS = 700, 1021
_NUMBER = np.dtype([("bytes", ">i4"), ("number", ">f4")])


class Blobs:
    """A list of bytes, which may contain nulls."""

    def __init__(self, items: Sequence[bytes | None]) -> None:
        self.items = items


class BlobsDumper(Dumper):
    """Dumps a list of bytes in binary format."""

    format = Format.BINARY
    oid = _BYTEAS

    def dump(self, obj: Blobs) -> bytes:
        """Return the list as a binary array."""
        parts = [_ARRAY_HEAD.pack(1, None in obj.items, _BYTEA, len(obj.items), 1)]
        for item in obj.items:
            parts += (_NULL,) if item is None else (_LENGTH.pack(len(item)), item)
        return b"".join(parts)


class BlobsTextDumper(Dumper):
    """Dumps a list of bytes as text, for client-side cursors."""

    oid = _BYTEAS

    def dump(self, obj: Blobs) -> bytes:
        """Return the list as a literal."""
        items = ("NULL" if item is None else f'"\\\\x{item.hex()}"' for item in obj.items)
        return f"{{{','.join(items)}}}".encode()


class Reals:
    """A list of single-precision numbers; the rows of a matrix are concatenated."""

    def __init__(self, rows: npt.ArrayLike) -> None:
        self.numbers: npt.NDArray[np.float32] = np.asarray(rows, dtype=np.float32).ravel()


class RealsDumper(Dumper):
    """Dumps a list of numbers in binary format."""

    format = Format.BINARY
    oid = _REALS

    def dump(self, obj: Reals) -> bytes:
        """Return the list as a binary array."""
        sent = np.empty(obj.numbers.size, dtype=_NUMBER)
        sent["bytes"], sent["number"] = 4, obj.numbers
        return _ARRAY_HEAD.pack(1, 0, _REAL, obj.numbers.size, 1) + sent.tobytes()


class RealsTextDumper(Dumper):
    """Dumps a list of numbers as text, for client-side cursors."""

    oid = _REALS

    def dump(self, obj: Reals) -> bytes:
        """Return the list as a literal."""
        return f"{{{','.join(map(str, obj.numbers.tolist()))}}}".encode()
