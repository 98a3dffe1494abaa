"""Convert vectors to and from PostgreSQL's formats, within the size limit of the index of memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np
import numpy.typing as npt

from arbor.embedding.ports import Vectors
from arbor.memory.text.lexical import LEXICAL_DIMENSIONS, MAX_TERMS

#: PostgreSQL's size limit of a B-tree tuple on pages of 8 KB.
_TUPLE_BYTES = 2704
#: Bytes of a tuple of `memories_memory_mind` without the session and the vectors: header and null bitmap (16), three ids
#: (48), two times (16), headers of the vectors and the session (28), alignment.
_FIXED_BYTES = 120
_TERM_BYTES = 8
#: The maximum dimension; it leaves room for 16 terms beside the longest session.
MAX_DIMENSION = 1024

#: The number of vectors in memory at once (20 MB at 256 dimensions), and of vectors compared with them at once (20 MB of cosines).
BLOCK = 20_000
COMPARED_AT_ONCE = 256
#: Bytes of the header of a `halfvec` on the wire: its dimension and two unused bytes.
_HEAD_BYTES = 4
_NUMBER_BYTES = 2

type VectorBlock = tuple[list[UUID], Vectors]


class _Numbers(dict[int, str]):
    """A cache of the texts of half-precision numbers by their bits, of which only 65,536 exist."""

    def __missing__(self, bits: int) -> str:
        text = str(np.uint16(bits).view(np.float16))
        self[bits] = text
        return text


_NUMBERS = _Numbers()


def halfvec_texts(vectors: npt.ArrayLike) -> list[str]:
    """Format each row as a `halfvec`, rounded as the database would round it; 20 times as fast as formatting floats."""
    rows = np.asarray(vectors, dtype=np.float32).astype(np.float16)
    return [f"[{','.join(map(_NUMBERS.__getitem__, bits))}]" for bits in rows.view(np.uint16).tolist()]


def fit_terms(terms: Mapping[int, float], *, session: str, dimension: int) -> dict[int, float]:
    """Return the heaviest terms, as many as fit into the row's index tuple (`memories_memory_mind`)."""
    free_bytes = _TUPLE_BYTES - _FIXED_BYTES - _NUMBER_BYTES * dimension - len(session.encode())
    most = min(MAX_TERMS, free_bytes // _TERM_BYTES)
    if len(terms) <= most:
        return dict(terms)
    return dict(sorted(terms.items(), key=lambda term: -term[1])[:most])


def sparsevec_weights(weights: Mapping[int, float]) -> dict[int, float]:
    """Round weights by place as `sparsevec_text` and the database round them."""
    return {place: float(np.float32(_digits(weight))) for place, weight in weights.items()}


def _digits(weight: float) -> str:
    return f"{weight:.6g}"


def sparsevec_text(weights: Mapping[int, float]) -> str:
    """Format weights by place, from 1, as a `sparsevec`."""
    # Terms that occur equally often in a text have equal weights, so that few distinct numbers are formatted.
    numbers = {weight: _digits(weight) for weight in set(weights.values())}
    pairs = ",".join([f"{place}:{numbers[weights[place]]}" for place in sorted(weights)])
    return f"{{{pairs}}}/{LEXICAL_DIMENSIONS}"


def halfvec_length(dimension: int) -> int:
    """Return the bytes of a `halfvec` on the wire, with its header."""
    return _HEAD_BYTES + _NUMBER_BYTES * dimension


def decode_vectors(rows: Sequence[tuple[UUID, bytes]], length: int) -> VectorBlock:
    """Return the ids and the float32 vectors, of shape (rows, dimension), of the rows whose `halfvec` has `length` bytes with its header."""
    fitting = [(memory_id, vector) for memory_id, vector in rows if len(vector) == length]
    numbers = np.frombuffer(b"".join(vector for _, vector in fitting), dtype=">f2")
    width = length // _NUMBER_BYTES
    return [memory_id for memory_id, _ in fitting], numbers.reshape(-1, width)[
        :, _HEAD_BYTES // _NUMBER_BYTES :
    ].astype(np.float32)
