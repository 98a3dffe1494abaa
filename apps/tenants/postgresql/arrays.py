"""Lists of bytes or numbers as values of statements, in the server's own form.

The driver writes lists of bytes a thousand times slower, and numbers as text are read digit by digit."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from psycopg.adapt import Dumper
from psycopg.pq import Format

#: `bytea` and `bytea[]` in PostgreSQL's catalogue.
_BYTEA, _BYTEAS = 17, 1001
#: The head of an array: one dimension, whether there are nulls, of which type, the number of items, the index of the first.
_ARRAY_HEAD = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)
#: `real` and `real[]` in PostgreSQL's catalogue.
_REAL, _REALS = 700, 1021
_NUMBER = np.dtype([("bytes", ">i4"), ("number", ">f4")])


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
        parts = [_ARRAY_HEAD.pack(1, None in obj.items, _BYTEA, len(obj.items), 1)]
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


class Reals:
    """A list of single-precision numbers: of all rows of a matrix one after the other."""

    def __init__(self, rows: npt.ArrayLike) -> None:
        self.numbers: npt.NDArray[np.float32] = np.asarray(rows, dtype=np.float32).ravel()


class RealsDumper(Dumper):
    """Writes them as the server holds them."""

    format = Format.BINARY
    oid = _REALS

    def dump(self, obj: Reals) -> bytes:
        """Return the list as PostgreSQL sends and receives arrays."""
        sent = np.empty(obj.numbers.size, dtype=_NUMBER)
        sent["bytes"], sent["number"] = 4, obj.numbers
        return _ARRAY_HEAD.pack(1, 0, _REAL, obj.numbers.size, 1) + sent.tobytes()


class RealsTextDumper(Dumper):
    """Writes them where values become part of the statement's text."""

    oid = _REALS

    def dump(self, obj: Reals) -> bytes:
        """Return the list as a literal."""
        return f"{{{','.join(map(str, obj.numbers.tolist()))}}}".encode()
