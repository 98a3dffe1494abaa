"""The scan of a mind: score every memory exactly in one pass over one index, and fetch the best.

Of memories that cannot be among the best, only the score is computed. The least score of the best is guessed from a sample;
where the guess was too high, which the result shows, the statement is run again without a guess.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.conf import settings

from apps.memories.services.embedding import queries as embedding_queries
from apps.memories.services.embedding.literals import sparsevec_text
from apps.memories.services.embedding.minds import query_vector
from apps.memories.services.recall import queries, scan_queries
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
from arbor.memory.concepts import concept_key
from arbor.memory.recall.candidates import (
    NO_LINKS,
    Candidates,
    Links,
    Numbers,
    id_numbers,
    microseconds,
    session_numbers,
)
from arbor.memory.recall.fusion import (
    MAX_BESIDE,
    MEANING_BESIDE_WORDS,
    REACH,
    SEEDS,
    SPAN_SEEDS,
    Background,
    LimitedCandidates,
    ScoreInputs,
)
from arbor.memory.recall.recall_request import EVERYTHING, ReadQuery, RecallFilter, RecallRequest
from arbor.memory.recall.weights import DEFAULT_WEIGHTS, Weights

#: The multiple of the wanted memories that the guess admits.
_MARGIN = 6
#: The number of the sample's scores above the guess: with fewer, the guess is less reliable.
_ABOVE = 16
_MIN_SAMPLE = 100

_LAYOUT = np.dtype(
    [
        ("id", *ID),
        ("position", INTEGER),
        ("occurred", MOMENT),
        ("importance", FLOAT),
        ("decay_rate", FLOAT),
        ("trust", FLOAT),
        ("distance", FLOAT),
        ("word_distance", FLOAT),
        ("asks", FLAG),
        ("episode", *ID),
        ("valence", FLOAT),
        ("used", MOMENT),
        ("uses", INTEGER),
        ("level", FLOAT),
        ("active", MOMENT),
    ]
)
#: An association: its source, its target, and the target's share.
LINK_LAYOUT = np.dtype([("source", *ID), ("target", *ID), ("share", FLOAT)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A request with its parsed text."""

    request: RecallRequest
    reading: ReadQuery
    #: The approximate number of the agent's memories, by which the scan samples; it does not change the result.
    memory_count: int
    #: The weights of score components, by which the sources of associations are chosen too.
    weights: Weights = DEFAULT_WEIGHTS


class StoredText(NamedTuple):
    """A memory's text, and the part of its detail that prompts show, as JSON; None: none."""

    content: str
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """The candidates of a query with further columns for each, and the background statistics of the mind."""

    candidates: Candidates
    links: Links
    background: Background
    #: Whether the query's vector could be compared with the agent's vectors.
    compared: bool
    session: Sequence[str]
    type: Sequence[str]
    #: The score components that uses do not change, if they are computed already: then only the contenders among the candidates
    #: have `uses`, `used` and `level`.
    lasting: Mapping[str, Numbers] | None = None
    #: The texts that were read already, by the places of their candidates.
    texts: Mapping[int, StoredText] = field(default_factory=dict)


def score_inputs(query: Query, found: ScanResult) -> ScoreInputs:
    """Return the inputs from which the candidates of a query are ranked."""
    return ScoreInputs(
        candidates=found.candidates,
        reading=query.reading,
        background=found.background,
        weights=query.weights,
        links=found.links,
        mood=query.request.mood,
    )


def limited_candidates(request: RecallRequest, sessions: Sequence[str]) -> LimitedCandidates | None:
    """Return the candidates that the session limit of a request applies to; `sessions` has that of each candidate."""
    limit = request.session_limit
    if limit is None:
        return None
    return LimitedCandidates(
        flags=np.array([name == limit.session for name in sessions], dtype=np.bool_), most=limit.most
    )


def scan(query: Query, *, memory_id: UUID | None = None) -> ScanResult:
    """Return the candidates of a query: the nearest in meaning, the best by words, the best of the time span in the text, and their neighbors.

    The seeds are SEEDS of each of the first two, or `limit` if that is more, and SPAN_SEEDS of the third; with a session limit, as many of other
    sessions too. Their neighbors are REACH turns on either side of each, and MAX_ASSOCIATED_MEMORIES associated with the
    MAX_ASSOCIATION_SOURCES best. If these are fewer than the limit, the latest memories are added. With `memory_id`, only this memory
    is a candidate. One statement, seldom more.
    """
    request = query.request
    max_seeds = max(SEEDS, request.limit)
    around = query.reading.span.around() if query.reading.span else None
    values: dict[str, Any] = {
        "agent": request.agent_id,
        "now": request.now,
        **query_vector(request.vector, request.model),
        "lexical": sparsevec_text(query.reading.lexical),
        "max_seeds": max_seeds,
        "limit": request.limit,
        "documents": query.memory_count,
        "words": query.weights.words,
        "meaning": query.weights.meaning,
    }
    if around:
        values |= {"from": around[0], "to": around[1]}
        values |= {"span_seeds": SPAN_SEEDS, "beside_words": MEANING_BESIDE_WORDS}
    conditions, filtered = filter_conditions(request.only)
    values |= filtered
    if memory_id is not None:
        conditions += " AND id = %(memory_id)s"
        values["memory_id"] = memory_id
    limited = request.session_limit
    if limited:
        values["limited"] = limited.session
    timed, filled = around is not None, False
    # A filter may leave few memories, so the scan does not guess then; leaving out one session seldom removes most of a mind.
    is_filtered = (
        memory_id is not None or replace(request.only, without_session="", without_since=None) != EVERYTHING
    )
    share, sample = (1.0, 0) if is_filtered else _guess(query.memory_count, max_seeds)
    while True:
        statement = _statement(
            timed=timed, filled=filled, conditions=conditions, limits_session=limited is not None
        )
        row = fetch_packed(statement, share=share, sample=sample, **values)
        if not row[-1]:
            # The guess was too high.
            sample = 0
            continue
        found = _found(row, request.now)
        excess = limited.excess(found.session.count(limited.session)) if limited else 0
        if filled or len(found.candidates) - excess >= min(request.limit, query.memory_count):
            return found
        # Too few memories fit: add the latest ones.
        filled = True


@cache
def _statement(*, timed: bool, filled: bool, conditions: str, limits_session: bool) -> str:
    mind = scan_queries.SCANNED_MIND + conditions
    other_sessions = scan_queries.OTHER_SESSIONS if limits_session else ""
    columns = scan_queries.SCAN_ROW.format(none=UUID(int=0))
    among = scan_queries.AMONG_THE_BEST.format(or_timely=f" OR {scan_queries.TIMELY}" if timed else "")
    parts = []
    for other, sessions in (("", ""), (scan_queries.OTHER, other_sessions))[: 1 + limits_session]:
        parts += [scan_queries.NEAREST.format(other=other), scan_queries.BEST_BY_WORDS.format(other=other)]
        if timed:
            parts.append(scan_queries.BEST_TIMELY.format(other=other))
        if filled:
            parts.append(scan_queries.RECENT.format(mind=mind + sessions))
    return scan_queries.SCAN.format(
        vector=embedding_queries.QUERY_VECTOR,
        row=columns,
        associations=scan_queries.ASSOCIATIONS,
        associated_memories=scan_queries.ASSOCIATED_MEMORIES.format(row=columns, conditions=conditions),
        packed_links=scan_queries.PACKED_LINKS,
        mind=mind,
        conditions=conditions,
        other_sessions=other_sessions,
        limited=scan_queries.LIMITED if limits_session else "false",
        others=scan_queries.COUNT_OF_OTHERS if limits_session else "count(distance)",
        share=scan_queries.SHARE_OF_OTHERS if limits_session else scan_queries.SHARE,
        chosen=" UNION ".join(parts),
        among=among,
        timely=scan_queries.TIMELY if timed else "false",
        reach=REACH,
        most_beside=MAX_BESIDE,
    )


def _guess(memory_count: int, max_seeds: int) -> tuple[float, int]:
    """Return the share of the memories to admit, and the size of the sample for the guess; a sample of 0 admits all."""
    share = _MARGIN * max_seeds / max(memory_count, 1)
    return (share, max(_MIN_SAMPLE, math.ceil(_ABOVE / share))) if share < 1 else (1.0, 0)


def _found(row: Sequence[Any], now: datetime) -> ScanResult:
    data, associations, *texts, mean, deviation, compared, _ = row
    rows = unpack(data, _LAYOUT)
    ids = rows["id"].astype(np.uint64)
    # Seeds are twice among the rows: they are in their own stretches too.
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
        words=-numbers("word_distance"),
        similarity=-numbers("distance"),
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
        links=_links_among(candidates.ids, associations),
        background=Background(mean=mean, deviation=deviation),
        compared=compared,
        session=session,
        type=types,
    )


def _links_among(ids: npt.NDArray[np.uint64], data: bytes | None) -> Links:
    """Unpack the associations between the candidates with these ids; associations with other memories are left out."""
    if not data:
        return NO_LINKS
    rows = unpack(data, LINK_LAYOUT)
    places = {key: place for place, key in enumerate(_keys(ids))}
    ends = [[places.get(key, -1) for key in _keys(rows[name])] for name in ("source", "target")]
    source, target = np.array(ends, dtype=np.int64)
    known = (source >= 0) & (target >= 0)
    share = np.clip(rows["share"].astype(np.float64), 0.0, 1.0)
    return Links(source=source[known], target=target[known], share=share[known])


def _keys(ids: npt.NDArray[Any]) -> list[bytes]:
    data = ids.astype(">u8").tobytes()
    return [data[start : start + 16] for start in range(0, len(data), 16)]


def filter_conditions(only: RecallFilter) -> tuple[str, dict[str, Any]]:
    """Return the SQL conditions of a filter, each after an AND, and their values."""
    values = {
        "types": [memory_type.value for memory_type in sorted(only.types)] or None,
        "since": only.since,
        "until": only.until,
        "session": only.session or None,
        "without": only.without_session or None,
        "without_since": only.without_since if only.without_session else None,
        "min_importance": only.min_importance or None,
        "min_trust": only.min_trust or None,
        "episode": only.episode,
        "concept": only.concept if isinstance(only.concept, UUID) else None,
        "concept_key": concept_key(only.concept) if isinstance(only.concept, str) else None,
        "cluster": only.cluster if isinstance(only.cluster, UUID) else None,
        "cluster_name": " ".join(only.cluster.split()) if isinstance(only.cluster, str) else None,
    }
    given = {name: value for name, value in values.items() if value is not None}
    names = given.keys() - {"without"} if "without_since" in given else given.keys()
    return "".join(f" AND {queries.FILTER_CONDITIONS[name]}" for name in sorted(names)), given
