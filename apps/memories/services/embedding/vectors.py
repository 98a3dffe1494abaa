"""The vectors of an agent's active memories: read once, compared in blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import batched
from uuid import UUID

import numpy as np
from django.db import connection

from apps.tenants.scope import current_tenant
from arbor.memory.neighborhood import Nearest, Vectors

#: Vectors in memory at once, 20 MB at 256 dimensions, and those that are compared with them, another 20 MB of cosines.
BLOCK = 20_000
AT_ONCE = 256
#: Bytes before the numbers of a `halfvec` on the wire: its length and two unused bytes.
_HEAD_BYTES = 4
_NUMBER_BYTES = 2

_VECTORS = """
SELECT id, halfvec_send(embedding) FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active' AND embedding IS NOT NULL
    AND (expires_at IS NULL OR expires_at > now())
"""

type _Block = tuple[list[UUID], Vectors]


class AgentVectors:
    """An agent's vectors in the open transaction. Cached between questions if they fit into one block."""

    def __init__(self, agent_id: UUID) -> None:
        self._agent_id = agent_id
        self._cached: _Block | None = None

    def nearest(self, asked: Sequence[tuple[UUID, bytes | None]]) -> dict[UUID, dict[UUID, float]]:
        """Return the nearest memories of each, with their cosines; of those without a vector, nothing.

        Vectors come as `halfvec_send` gives them. Where their lengths differ, in the moment an agent is moved to another
        model, those of the commonest length are answered.
        """
        having = [(memory_id, vector) for memory_id, vector in asked if vector]
        if not having:
            return {}
        length = Counter(len(vector) for _, vector in having).most_common(1)[0][0]
        found: dict[UUID, dict[UUID, float]] = {}
        for some in batched(having, AT_ONCE, strict=False):
            search = Nearest(*decoded(some, length))
            for ids, vectors in self._blocks(length):
                search.look_at(ids, vectors)
            found |= search.found()
        return found

    def _blocks(self, length: int) -> Iterator[_Block]:
        if self._cached is not None:
            yield self._cached
            return
        for number, block in enumerate(self._read(length)):
            self._cached = None if number else block
            yield block

    def _read(self, length: int) -> Iterator[_Block]:
        with connection.chunked_cursor() as cursor:
            cursor.execute(_VECTORS, {"tenant": current_tenant(), "agent": self._agent_id})
            while rows := cursor.fetchmany(BLOCK):
                yield decoded(rows, length)


def decoded(rows: Sequence[tuple[UUID, bytes]], length: int) -> _Block:
    """Return ids and vectors, float32, of the rows whose vector takes `length` bytes."""
    fitting = [(memory_id, vector) for memory_id, vector in rows if len(vector) == length]
    numbers = np.frombuffer(b"".join(vector for _, vector in fitting), dtype=">f2")
    width = length // _NUMBER_BYTES
    return [memory_id for memory_id, _ in fitting], numbers.reshape(-1, width)[
        :, _HEAD_BYTES // _NUMBER_BYTES :
    ].astype(np.float32)
