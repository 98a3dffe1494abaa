"""Answer queries: find candidates in a cached mind or by a scan, rank them, and load the memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from apps.memories.services.recall.cached_recall import find_at_hand
from apps.memories.services.recall.mind_cache import MindAtHand
from apps.memories.services.recall.scan import Query, ScanResult, scan
from apps.tenants.statements import fetch
from arbor.memory.candidates import moment
from arbor.memory.fusion import Ranked, all_terms, rank, select_best
from arbor.memory.values import MemoryType, Recalled

_CONTENTS = """
SELECT id, content FROM memories_memory WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
"""


def find(queries: Sequence[Query], minds: Mapping[UUID, MindAtHand]) -> list[tuple[Query, ScanResult]]:
    """Return the candidates of each query, not ranked yet: from a cached mind, or by a scan."""
    found = find_at_hand(queries, minds)
    return [(query, here or scan(query)) for query, here in zip(queries, found, strict=True)]


def recalled(answers: Sequence[tuple[Query, ScanResult]]) -> list[list[Recalled]]:
    """Return the best of what each query found, whole; what was deleted a moment ago is left out."""
    ranked = [(found, _ranked(query, found)) for query, found in answers]
    missing = {place.id for found, places in ranked for place in places if place.index not in found.contents}
    contents: dict[UUID, str] = dict(fetch(_CONTENTS, ids=sorted(missing))) if missing else {}
    return [
        [
            _whole(found, place, content)
            for place in places
            if (content := found.contents.get(place.index, contents.get(place.id))) is not None
        ]
        for found, places in ranked
    ]


def _ranked(query: Query, found: ScanResult) -> list[Ranked]:
    if found.lasting is not None:
        terms = all_terms(found.lasting, found.candidates, now=query.request.now, weights=query.weights)
        return select_best(found.candidates, terms, query.request.limit)
    return rank(
        found.candidates,
        reading=query.reading,
        background=found.background,
        now=query.request.now,
        limit=query.request.limit,
        weights=query.weights,
        links=found.links,
        mood=query.request.mood,
    )


def _whole(found: ScanResult, place: Ranked, content: str) -> Recalled:
    return Recalled(
        id=place.id,
        type=MemoryType(found.type[place.index]),
        content=content,
        role=found.candidates.role[place.index],
        session=found.session[place.index],
        occurred_at=moment(found.candidates.occurred[place.index]),
        importance=float(found.candidates.importance[place.index]),
        terms=place.terms,
    )
