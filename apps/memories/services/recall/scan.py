"""The scan of a mind: score every memory exactly in one pass over one index, and fetch the best.

Only those that can be among the best go further than their score. What it takes to be among them is guessed from a
sample of the same scores; where the guess was too high, which the answer shows, the statement is run again without one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.conf import settings

from apps.memories.services.embedding.literals import sparsevec_text
from apps.memories.services.embedding.minds import QUERY_VECTOR, query_vector
from apps.memories.services.recall.filters import filter_conditions
from apps.memories.services.recall.packed_rows import (
    FLAG,
    FLOAT,
    ID,
    INTEGER,
    MOMENT,
    fetch_packed,
    moments,
    unpack,
)
from arbor.memory.activation import levels_after
from arbor.memory.candidates import (
    NO_LINKS,
    Candidates,
    Links,
    Numbers,
    id_numbers,
    microseconds,
    session_numbers,
)
from arbor.memory.fusion import (
    DEVIATIONS,
    LEAST_DEVIATION,
    LENDERS,
    MEANING_BESIDE_WORDS,
    MOST_BESIDE,
    REACH,
    REMINDED,
    SEEDS,
    SPAN_SEEDS,
    Background,
)
from arbor.memory.neighborhood import HIGHEST
from arbor.memory.query import ReadQuery
from arbor.memory.recall_request import EVERYTHING, RecallRequest
from arbor.memory.weights import DEFAULT_WEIGHTS, Weights

#: The guess admits this multiple of the wanted memories.
_MARGIN = 6
#: Scores of the sample that lie above the guess: the fewer, the less it is to be relied on.
_ABOVE = 16
_LEAST_SAMPLE = 100

_LAYOUT = np.dtype(
    [
        ("id", *ID),
        ("position", INTEGER),
        ("occurred", MOMENT),
        ("importance", FLOAT),
        ("decay_rate", FLOAT),
        ("trust", FLOAT),
        ("away", FLOAT),
        ("unsaid", FLOAT),
        ("asks", FLAG),
        ("episode", *ID),
        ("valence", FLOAT),
        ("used", MOMENT),
        ("uses", INTEGER),
        ("level", FLOAT),
        ("active", MOMENT),
    ]
)
_ROW = """m.id, m.session, m.position, m.role, m.type, m.occurred_at,
    uuid_send(m.id) || int4send(m.position) || timestamptz_send(m.occurred_at) || float8send(m.importance)
        || float8send(m.decay_rate) || float8send(m.trust)
        || float8send(coalesce(m.embedding <#> (SELECT vector FROM asked), 'NaN'))
        || float8send(coalesce(m.lexical <#> %(lexical)s::sparsevec, 0)) || boolsend(m.content LIKE '%%?%%')
        || uuid_send(coalesce(m.episode_id, '{none}')) || float8send(m.emotional_valence) AS packed"""

# pgvector's operator returns the negative inner product: `away` and `unsaid` are the less the better. `OFFSET 0` keeps
# each from being computed anew wherever it is used. The stretches around the seeds of a session do not overlap: each
# begins where the one before it ends. LIMIT 1: by key, for the planner expects many and would read all the tenant's.
_STATEMENT = """
WITH asked AS MATERIALIZED (
    SELECT {vector} AS vector
), sample AS MATERIALIZED (
    SELECT embedding <#> (SELECT vector FROM asked) AS away, lexical <#> %(lexical)s::sparsevec AS unsaid
    FROM {mind} LIMIT %(sample)s
), edge AS MATERIALIZED (
    SELECT coalesce(percentile_disc(%(share)s::float8) WITHIN GROUP (ORDER BY away), 'infinity') AS away,
        least(percentile_disc(%(share)s::float8) WITHIN GROUP (ORDER BY unsaid), 0) AS unsaid
    FROM sample
), scored AS MATERIALIZED (
    SELECT array_agg(ROW (id, away, unsaid, {timely})) FILTER {among} AS places,
        count(away) AS embedded, coalesce(avg(away), 0) AS mean, coalesce(sum(away * away) / nullif(count(away), 0), 0) AS square
    FROM (
        SELECT id, occurred_at, embedding <#> (SELECT vector FROM asked) AS away, lexical <#> %(lexical)s::sparsevec AS unsaid
        FROM {mind} OFFSET 0
    ) memory
), background AS MATERIALIZED (
    SELECT embedded, -mean AS mean, sqrt(greatest(0, square - mean * mean)) AS deviation FROM scored
), best AS MATERIALIZED (
    SELECT place.* FROM scored, unnest(scored.places) AS place (id uuid, away float8, unsaid float8, timely bool)
), chosen AS (
    (SELECT id FROM best WHERE away IS NOT NULL ORDER BY away, id LIMIT %(kept)s)
    UNION (SELECT id FROM best WHERE unsaid < 0 ORDER BY unsaid, id LIMIT %(kept)s)
    {or_timely}
    {or_recent}
), found AS MATERIALIZED (
    SELECT {row} FROM chosen JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = chosen.id
{lent}), stretch AS (
    SELECT session, position::bigint + {reach} AS until, greatest(
            position::bigint - {reach},
            lag(position::bigint) OVER (PARTITION BY session ORDER BY position) + {reach} + 1
        ) AS since
    FROM found WHERE session <> ''
), candidate AS (
    SELECT * FROM found
    UNION ALL
    SELECT turn.* FROM stretch CROSS JOIN LATERAL (
        SELECT {row} FROM memories_memory m
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND session = stretch.session AND status = 'active'
            AND position BETWEEN stretch.since AND stretch.until AND (expires_at IS NULL OR expires_at > %(now)s){conditions}
        ORDER BY position LIMIT {most_beside}
    ) turn
    UNION ALL
    (SELECT * FROM ({reminded_of}) reminded)
)
SELECT string_agg(c.packed || timestamptz_send(coalesce(a.last_at, c.occurred_at))
        || int4send(least(coalesce(a.count, 0)::bigint + coalesce(a.reinforced, 0), 1e9)::int)
        || float8send(coalesce(v.level, 0)) || timestamptz_send(coalesce(v.at, %(now)s)), ''::bytea),
    {packed_links}, array_agg(c.session), array_agg(c.role), array_agg(c.type),
    (SELECT mean FROM background), (SELECT deviation FROM background), (SELECT vector IS NOT NULL FROM asked),
    (SELECT count(*) FROM best WHERE away <= (SELECT away FROM edge))
        >= (SELECT least(%(kept)s, embedded) FROM background)
    AND ((SELECT unsaid FROM edge) = 0 OR (SELECT count(*) FROM best WHERE unsaid < (SELECT unsaid FROM edge)) >= %(kept)s)
FROM candidate c
LEFT JOIN LATERAL (SELECT last_at, count, reinforced FROM memories_memoryaccess
    WHERE tenant_id = %(tenant)s AND memory_id = c.id LIMIT 1) a ON true
LEFT JOIN LATERAL (SELECT level, at FROM memories_activation
    WHERE tenant_id = %(tenant)s AND memory_id = c.id LIMIT 1) v ON true
"""
_MIND = """memories_memory
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active'
        AND (expires_at IS NULL OR expires_at > %(now)s)"""
_RECENT = """UNION (SELECT id FROM (
        SELECT id, occurred_at FROM {mind} ORDER BY occurred_at DESC, id LIMIT %(limit)s
    ) recent)"""
_AMONG = "(WHERE away <= (SELECT away FROM edge) OR unsaid < (SELECT unsaid FROM edge){or_timely})"
_TIMELY = "occurred_at BETWEEN %(from)s AND %(to)s"
_BY_TIME = """UNION (
        SELECT id FROM best, background WHERE timely
        ORDER BY coalesce(unsaid, 0) + %(beside_words)s * coalesce((away + mean) / nullif(deviation, 0), 0), id
        LIMIT %(kept_by_time)s
    )"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A request with its text read: what is asked of an agent's mind."""

    request: RecallRequest
    reading: ReadQuery
    #: About how many memories the agent has: how much is read depends on it, what is found does not.
    documents: int
    #: The best fits, whose neighborhoods contribute, depend on them.
    weights: Weights = DEFAULT_WEIGHTS


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """Candidates, the background statistics of that mind, and beside each candidate the columns that are returned with it."""

    candidates: Candidates
    links: Links
    background: Background
    #: The query's vector could be compared with the agent's.
    compared: bool
    session: Sequence[str]
    type: Sequence[str]
    #: The terms that use does not change, where they are known already; `uses`, `used` and `level` are then those of the
    #: contenders alone.
    lasting: Mapping[str, Numbers] | None = None
    #: Texts that are known already, by the places of their candidates.
    contents: Mapping[int, str] = field(default_factory=dict)


def scan(query: Query) -> ScanResult:
    """Return the nearest by meaning, the best by words, the best of the time that is spoken of, and what belongs to them.

    SEEDS or `limit` of each of the first two, SPAN_SEEDS of the third; REACH turns on either side of each, and REMINDED
    of what the LENDERS best bring to mind. Where that is less than the limit, also what happened last. One statement,
    seldom more.
    """
    asked = query.request
    kept = max(SEEDS, asked.limit)
    around = query.reading.span.around() if query.reading.span else None
    values: dict[str, Any] = {
        "agent": asked.agent_id,
        "now": asked.now,
        **query_vector(asked.vector, asked.model),
        "lexical": sparsevec_text(query.reading.lexical),
        "kept": kept,
        "limit": asked.limit,
        **lending_values(query.weights),
    }
    if around:
        values |= {"from": around[0], "to": around[1]}
        values |= {"kept_by_time": SPAN_SEEDS, "beside_words": MEANING_BESIDE_WORDS}
    conditions, filtered = filter_conditions(asked.only)
    values |= filtered
    timed, filled = around is not None, False
    # How many a filter leaves is not known; a session to be left out is seldom most of a mind.
    narrow = replace(asked.only, without_session="") != EVERYTHING
    share, sample = (1.0, 0) if narrow else _guess(query.documents, kept)
    while True:
        statement = _statement(timed=timed, filled=filled, conditions=conditions)
        row = fetch_packed(statement, share=share, sample=sample, **values)
        if not row[-1]:
            sample = 0
            continue
        found = _found(row, asked.now)
        if filled or len(found.candidates) >= min(asked.limit, query.documents):
            return found
        # Too little fits at all: what happened last comes with it.
        filled = True


@cache
def _statement(*, timed: bool, filled: bool, conditions: str) -> str:
    mind = _MIND + conditions
    columns = _ROW.format(none=UUID(int=0))
    among = _AMONG.format(or_timely=f" OR {_TIMELY}" if timed else "")
    return _STATEMENT.format(
        vector=QUERY_VECTOR,
        row=columns,
        lent=LENT,
        reminded_of=REMINDED_OF.format(row=columns, conditions=conditions),
        packed_links=PACKED,
        mind=mind,
        conditions=conditions,
        or_recent=_RECENT.format(mind=mind) if filled else "",
        among=among,
        timely=_TIMELY if timed else "false",
        or_timely=_BY_TIME if timed else "",
        reach=REACH,
        most_beside=MOST_BESIDE,
    )


def _guess(documents: int, kept: int) -> tuple[float, int]:
    """Return the share of the memories to admit, and the size of the sample to guess from; a sample of 0 admits all."""
    share = _MARGIN * kept / max(documents, 1)
    return (share, max(_LEAST_SAMPLE, math.ceil(_ABOVE / share))) if share < 1 else (1.0, 0)


def _found(row: Sequence[Any], now: datetime) -> ScanResult:
    data, ties, *texts, mean, deviation, compared, _ = row
    rows = unpack(data, _LAYOUT)
    ids = rows["id"].astype(np.uint64)
    # A seed is in its own stretch too.
    order = np.lexsort((ids[:, 1], ids[:, 0]))
    first = np.ones(len(rows), dtype=np.bool_)
    first[1:] = (ids[order[1:]] != ids[order[:-1]]).any(axis=1)
    once = order[first]
    rows = rows[once]
    places = once.tolist()
    session, role, types = ([column[place] for place in places] if column else [] for column in texts)

    def numbers(name: str) -> npt.NDArray[np.float64]:
        return rows[name].astype(np.float64)

    candidates = Candidates(
        ids=ids[once],
        words=-numbers("unsaid"),
        similarity=-numbers("away"),
        session=session_numbers(session),
        position=rows["position"].astype(np.int64),
        role=role,
        asks=rows["asks"],
        occurred=moments(rows["occurred"]),
        used=moments(rows["used"]),
        importance=numbers("importance"),
        decay_rate=numbers("decay_rate"),
        trust=numbers("trust"),
        uses=numbers("uses"),
        episode=id_numbers(rows["episode"].astype(np.uint64)),
        level=levels_after(
            numbers("level"), microseconds(now) - moments(rows["active"]), settings.ARBOR_ACTIVATION_HALF_LIFE
        ),
        valence=numbers("valence"),
    )
    return ScanResult(
        candidates=candidates,
        links=links_among(candidates.ids, ties),
        background=Background(mean=mean, deviation=deviation),
        compared=compared,
        session=session,
        type=types,
    )


_LINK_LAYOUT = np.dtype([("lender", *ID), ("borrower", *ID), ("share", FLOAT)])

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
    rows = unpack(data, _LINK_LAYOUT)
    places = {key: place for place, key in enumerate(_keys(ids))}
    ends = [[places.get(key, -1) for key in _keys(rows[name])] for name in ("lender", "borrower")]
    lender, borrower = np.array(ends, dtype=np.int64)
    known = (lender >= 0) & (borrower >= 0)
    share = np.clip(rows["share"].astype(np.float64), 0.0, 1.0)
    return Links(lender=lender[known], borrower=borrower[known], share=share[known])


def _keys(ids: npt.NDArray[Any]) -> list[bytes]:
    data = ids.astype(">u8").tobytes()
    return [data[start : start + 16] for start in range(0, len(data), 16)]
