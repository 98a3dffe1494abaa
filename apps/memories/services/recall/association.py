"""The part of the scan that adds memories from the neighborhoods of the best ones, and its result.

A neighborhood is used as it was last computed; a missing one contributes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from apps.memories.services.recall.packed_rows import FLOAT, ID, unpack
from arbor.memory.candidates import NO_LINKS, Links
from arbor.memory.fusion import DEVIATIONS, LEAST_DEVIATION, LENDERS, REMINDED
from arbor.memory.neighborhood import HIGHEST
from arbor.memory.weights import Weights

_LAYOUT = np.dtype([("lender", *ID), ("borrower", *ID), ("share", FLOAT)])

# `arbor.memory.fusion.score`: the fit of those that were chosen. Parts of a statement that has `best`, `background`,
# `chosen` and `found`.
LENT = f"""), lender AS MATERIALIZED (
    SELECT id, fit FROM (
        SELECT id, %(words)s::float8 * -coalesce(unsaid, 0) + %(meaning)s::float8 * CASE WHEN deviation > {LEAST_DEVIATION} AND away IS NOT NULL
            THEN least(1, greatest(0, -(away + mean) / deviation / {DEVIATIONS})) ELSE 0 END AS fit
        FROM chosen JOIN best USING (id) CROSS JOIN background
    ) fitting WHERE fit > 0 ORDER BY fit DESC, id LIMIT {LENDERS}
), lent AS MATERIALIZED (
    SELECT lender.id AS lender, lender.fit, near.key::uuid AS id, near.value::float8 / {HIGHEST} AS share
    FROM lender JOIN memories_upkeep u ON u.tenant_id = %(tenant)s AND u.agent_id = %(agent)s AND u.memory_id = lender.id
    CROSS JOIN LATERAL jsonb_each_text(CASE WHEN jsonb_typeof(u.neighbors) = 'object' THEN u.neighbors END) near
"""  # noqa: S608 (our own numbers)
REMINDED_OF = f"""
    SELECT memory.* FROM (
        SELECT id, max(fit * share) AS worth FROM lent WHERE id NOT IN (SELECT id FROM found)
        GROUP BY id ORDER BY worth DESC, id
    ) near CROSS JOIN LATERAL (
        SELECT {{row}} FROM memories_memory m
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = near.id AND status = 'active'
            AND (expires_at IS NULL OR expires_at > %(now)s){{conditions}} LIMIT 1
    ) memory ORDER BY near.worth DESC, near.id LIMIT {REMINDED}
"""  # noqa: S608
PACKED = "(SELECT string_agg(uuid_send(lender) || uuid_send(id) || float8send(share), ''::bytea) FROM lent)"


def lending_values(weights: Weights) -> dict[str, Any]:
    """Return the values that LENT takes beside the scan's own."""
    return {"words": weights.words, "meaning": weights.meaning}


def links_among(ids: npt.NDArray[np.uint64], data: bytes | None) -> Links:
    """Return what was packed, between candidates of these ids; whatever else a neighborhood names is no candidate."""
    if not data:
        return NO_LINKS
    rows = unpack(data, _LAYOUT)
    places = {key: place for place, key in enumerate(_keys(ids))}
    ends = [[places.get(key, -1) for key in _keys(rows[name])] for name in ("lender", "borrower")]
    lender, borrower = np.array(ends, dtype=np.int64)
    known = (lender >= 0) & (borrower >= 0)
    share = np.clip(rows["share"].astype(np.float64), 0.0, 1.0)
    return Links(lender=lender[known], borrower=borrower[known], share=share[known])


def _keys(ids: npt.NDArray[Any]) -> list[bytes]:
    data = ids.astype(">u8").tobytes()
    return [data[start : start + 16] for start in range(0, len(data), 16)]
