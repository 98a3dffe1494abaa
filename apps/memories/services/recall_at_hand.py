"""Recall from minds at hand: every memory is scored in this process, and the database is asked for what changes by recalling.

Equal to `scan`, whose statement says the same; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from django.conf import settings

from apps.memories.services.literals import sparsevec_weights
from apps.memories.services.minds import half_precision
from apps.memories.services.minds_at_hand import MINDS, MindAtHand
from apps.memories.services.packed import (
    FLOAT,
    ID,
    INTEGER,
    MOMENT,
    fetch_packed,
    moments,
    unpack,
    uuid_array,
)
from apps.memories.services.scan import Found, Query
from arbor.memory.activation import levels_after
from arbor.memory.candidates import Candidates, Places, microseconds
from arbor.memory.fusion import contenders, lasting_terms
from arbor.memory.mind.passing import can_answer
from arbor.memory.mind.search import Choice, Search, Ties, choose, complete, names_of
from arbor.memory.neighborhood import HIGHEST

_TIE = np.dtype([("lender", *ID), ("borrower", *ID), ("share", FLOAT)])
_TIES = f"""
SELECT string_agg(uuid_send(u.memory_id) || uuid_send(near.key::uuid) || float8send(near.value::float8 / {HIGHEST}), ''::bytea)
FROM unnest(%(ids)s::uuid[]) AS lender (id)
CROSS JOIN LATERAL (
    SELECT memory_id, neighbors FROM memories_upkeep WHERE tenant_id = %(tenant)s AND memory_id = lender.id LIMIT 1
) u CROSS JOIN LATERAL jsonb_each_text(CASE WHEN jsonb_typeof(u.neighbors) = 'object' THEN u.neighbors END) near
"""  # noqa: S608 (our own number)
_USE = np.dtype(
    [("place", INTEGER), ("used", MOMENT), ("uses", INTEGER), ("level", FLOAT), ("active", MOMENT)]
)
# What was never used has no row. LIMIT 1: by key.
_USES = """
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
"""
#: `timestamptz_send` of minus infinity.
_NEVER_USED = np.iinfo(np.int64).min


def find_at_hand(queries: Sequence[Query]) -> list[Found | None]:
    """Return what each query finds, in the open transaction; None where the agent's mind has to be scanned.

    At most four statements for all queries.
    """
    documents = {
        query.request.agent_id: query.documents for query in queries if can_answer(query.request.only)
    }
    minds = MINDS.fetch(documents) if documents else {}
    searches = [
        _search(query, minds[query.request.agent_id])
        if query.request.agent_id in minds and can_answer(query.request.only)
        else None
        for query in queries
    ]
    begun = [search for search in searches if search is not None]
    answers = iter(_found(begun))
    return [None if search is None else next(answers) for search in searches]


def _search(query: Query, mind: MindAtHand) -> Search:
    request = query.request
    vector = None
    if request.vector is not None:
        vector = half_precision(request.vector)
        if len(vector) != mind.model.dimension or (
            request.model is not None and request.model.name != mind.model.name
        ):
            vector = None
    return Search(
        image=mind.image,
        request=request,
        reading=query.reading,
        lexical=sparsevec_weights(query.reading.lexical),
        vector=vector,
        documents=query.documents,
        weights=query.weights,
    )


def _found(searches: Sequence[Search]) -> list[Found]:
    choices = [choose(search) for search in searches]
    all_ties = _read_ties(searches, choices)
    found = [
        _completed(search, choice, ties)
        for search, choice, ties in zip(searches, choices, all_ties, strict=True)
    ]
    return _with_uses(searches, found)


def _read_ties(searches: Sequence[Search], choices: Sequence[Choice]) -> list[Ties]:
    """Return the ties of each search's lenders. One statement; none where nothing lends."""
    lenders = [search.image.ids_of(choice.lenders) for search, choice in zip(searches, choices, strict=True)]
    ids = np.unique(np.concatenate(lenders), axis=0) if lenders else np.empty((0, 2), dtype=np.uint64)
    rows = unpack(fetch_packed(_TIES, ids=uuid_array(ids))[0] if len(ids) else None, _TIE)
    ties = Ties(
        lender=rows["lender"].astype(np.uint64),
        borrower=rows["borrower"].astype(np.uint64),
        share=rows["share"].astype(np.float64),
    )
    # Another agent's memories are none of an image's rows, so each search finds its own ties among all of them.
    return [ties] * len(searches)


def _completed(search: Search, choice: Choice, ties: Ties) -> Found:
    rows, candidates, links = complete(search, choice, ties)
    return Found(
        candidates=candidates,
        links=links,
        background=choice.background,
        compared=search.vector is not None,
        session=names_of(search.image, rows, "session"),
        type=names_of(search.image, rows, "type"),
        lasting=lasting_terms(
            candidates,
            reading=search.reading,
            background=choice.background,
            weights=search.weights,
            links=links,
            mood=search.request.mood,
        ),
    )


def _with_uses(searches: Sequence[Search], found: Sequence[Found]) -> list[Found]:
    """Return what was found with the use of those that may be among the best. One statement."""
    places = [
        contenders(each.candidates, each.lasting or {}, weights=search.weights, limit=search.request.limit)
        for search, each in zip(searches, found, strict=True)
    ]
    ids = [each.candidates.ids[chosen] for each, chosen in zip(found, places, strict=True)]
    asked = uuid_array(np.concatenate(ids)) if any(map(len, ids)) else ""
    rows = unpack(fetch_packed(_USES, ids=asked)[0] if asked else None, _USE)
    at = rows["place"].astype(np.int64) - 1
    answers = []
    first = 0
    for search, each, chosen in zip(searches, found, places, strict=True):
        among = (at >= first) & (at < first + len(chosen))
        candidates = _used(search, each.candidates, chosen[at[among] - first], rows[among])
        answers.append(replace(each, candidates=candidates))
        first += len(chosen)
    return answers


def _used(search: Search, candidates: Candidates, places: Places, rows: npt.NDArray[Any]) -> Candidates:
    """Return the candidates with what is known of the use of those in these places."""
    if not len(places):
        return candidates
    last = rows["used"].astype(np.int64)
    ever = last != _NEVER_USED
    used, uses, level = candidates.used.copy(), candidates.uses.copy(), candidates.level.copy()
    used[places[ever]] = moments(last[ever])
    uses[places] = rows["uses"]
    level[places] = levels_after(
        rows["level"].astype(np.float64),
        microseconds(search.request.now) - moments(rows["active"]),
        settings.ARBOR_ACTIVATION_HALF_LIFE,
    )
    return replace(candidates, used=used, uses=uses, level=level)
