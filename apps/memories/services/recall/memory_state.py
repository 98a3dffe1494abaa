"""Read from the database what a mind image lacks: uses and neighborhoods of memories, and their texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from apps.memories.services.recall.packed_rows import (
    FLOAT,
    ID,
    INTEGER,
    MOMENT,
    fetch_packed,
    moments,
    unpack,
    uuid_array,
)
from arbor.memory.mind.rows import Halves
from arbor.memory.mind.search import Ties
from arbor.memory.neighborhood import HIGHEST

_TIE = np.dtype([("lender", *ID), ("borrower", *ID), ("share", FLOAT)])
_USE = np.dtype(
    [("place", INTEGER), ("used", MOMENT), ("uses", INTEGER), ("level", FLOAT), ("active", MOMENT)]
)
# What was never used has no row. LIMIT 1: by key.
_STATE = f"""
SELECT (
    SELECT string_agg(
        uuid_send(u.memory_id) || uuid_send(near.key::uuid) || float8send(near.value::float8 / {HIGHEST}), ''::bytea
    )
    FROM unnest(%(lenders)s::uuid[]) AS lender (id)
    CROSS JOIN LATERAL (SELECT memory_id, neighbors FROM memories_upkeep
        WHERE tenant_id = %(tenant)s AND memory_id = lender.id LIMIT 1) u
    CROSS JOIN LATERAL jsonb_each_text(CASE WHEN jsonb_typeof(u.neighbors) = 'object' THEN u.neighbors END) near
), (
    SELECT string_agg(
        int4send(memory.place::int) || timestamptz_send(coalesce(a.last_at, '-infinity'))
            || int4send(least(coalesce(a.count, 0)::bigint + coalesce(a.reinforced, 0), 1e9)::int)
            || float8send(coalesce(v.level, 0)) || timestamptz_send(coalesce(v.at, 'epoch')), ''::bytea
    )
    FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS memory (id, place)
    LEFT JOIN LATERAL (SELECT memory_id, last_at, count, reinforced FROM memories_memoryaccess
        WHERE tenant_id = %(tenant)s AND memory_id = memory.id LIMIT 1) a ON true
    LEFT JOIN LATERAL (SELECT memory_id, level, at FROM memories_activation
        WHERE tenant_id = %(tenant)s AND memory_id = memory.id LIMIT 1) v ON true
    WHERE a.memory_id IS NOT NULL OR v.memory_id IS NOT NULL
), (
    SELECT array_agg(
        (SELECT content FROM memories_memory WHERE tenant_id = %(tenant)s AND id = memory.id) ORDER BY memory.place
    )
    FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS memory (id, place) WHERE %(with_contents)s
)
"""  # noqa: S608 (our own number)
#: `timestamptz_send` of minus infinity.
_NEVER_USED = np.iinfo(np.int64).min
#: Texts that are read beside the use of memories of which only some will be returned, for each request.
MOST_CONTENTS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """The uses and activations of some memories, as columns; memories with neither are missing."""

    #: Among the memories that were asked for.
    places: npt.NDArray[np.int64]
    #: Whether it was ever recalled, and when it was last, in microseconds since EPOCH.
    recalled: npt.NDArray[np.bool_]
    used: npt.NDArray[np.int64]
    uses: npt.NDArray[np.float64]
    #: How present it was in mind, and when.
    level: npt.NDArray[np.float64]
    active: npt.NDArray[np.int64]

    def part(self, first: int, count: int) -> Uses:
        """Return the uses of `count` of the memories, from `first` on, with places from 0."""
        chosen = (self.places >= first) & (self.places < first + count)
        return Uses(
            places=self.places[chosen] - first,
            recalled=self.recalled[chosen],
            used=self.used[chosen],
            uses=self.uses[chosen],
            level=self.level[chosen],
            active=self.active[chosen],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """The state of memories as one statement read it."""

    ties: Ties
    uses: Uses
    #: A text for each memory that was asked for, None where it is gone; empty if there were too many.
    contents: Sequence[str | None]


def read_state(*, lenders: Halves, ids: Halves, requests: int) -> MemoryState:
    """Return the ties of lenders, and the use and the texts of memories, in the open transaction.

    One statement for any number of agents, for none if nothing is asked for.
    """
    if not len(lenders) and not len(ids):
        return _state(None, None, None)
    return _state(
        *fetch_packed(
            _STATE,
            lenders=uuid_array(lenders),
            ids=uuid_array(ids),
            with_contents=len(ids) <= MOST_CONTENTS * requests,
        )
    )


def _state(ties: Any, uses: Any, contents: Any) -> MemoryState:
    tied, used = unpack(ties, _TIE), unpack(uses, _USE)
    last = used["used"].astype(np.int64)
    recalled = last != _NEVER_USED
    return MemoryState(
        ties=Ties(
            lender=tied["lender"].astype(np.uint64),
            borrower=tied["borrower"].astype(np.uint64),
            share=tied["share"].astype(np.float64),
        ),
        uses=Uses(
            places=used["place"].astype(np.int64) - 1,
            recalled=recalled,
            used=moments(np.where(recalled, last, 0)),
            uses=used["uses"].astype(np.float64),
            level=used["level"].astype(np.float64),
            active=moments(used["active"]),
        ),
        contents=contents or (),
    )
