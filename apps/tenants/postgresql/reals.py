"""Many numbers as one value of a statement, sent as the server holds them: written as text, they are read digit by digit."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
from psycopg.adapt import Dumper
from psycopg.pq import Format

#: `real` and `real[]` in PostgreSQL's catalogue.
_REAL, _REALS = 700, 1021
#: What stands before the numbers of a list: one dimension, no nulls, of which type, how many, and that the first is 1.
_HEAD = struct.Struct(">iiIii")
_NUMBER = np.dtype([("bytes", ">i4"), ("number", ">f4")])


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
        return _HEAD.pack(1, 0, _REAL, obj.numbers.size, 1) + sent.tobytes()


class RealsTextDumper(Dumper):
    """Writes them where values become part of the statement's text."""

    oid = _REALS

    def dump(self, obj: Reals) -> bytes:
        """Return the list as a literal."""
        return f"{{{','.join(map(str, obj.numbers.tolist()))}}}".encode()
