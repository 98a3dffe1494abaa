"""Recall from the mind cache: score every memory in this process, and read from the database only what recalls change.

`find_in_cached_minds` returns the same results as `scan`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.conf import settings

from apps.memories.services.embedding.literals import sparsevec_weights
from apps.memories.services.embedding.minds import half_precision
from apps.memories.services.recall import queries
from apps.memories.services.recall.mind_cache import CachedMind
from apps.memories.services.recall.packed_rows import (
    FLOAT,
    INTEGER,
    MOMENT,
    fetch_packed,
    moments,
    unpack,
    uuid_array,
)
from apps.memories.services.recall.scan import LINK_LAYOUT, Query, ScanResult, StoredText, limited_candidates
from arbor.memory.activation import levels_after
from arbor.memory.mind.row_filter import can_answer
from arbor.memory.mind.rows import Halves
from arbor.memory.mind.search import (
    Associations,
    Choice,
    MindSearch,
    choose_by_fit,
    column_texts,
    complete_candidates,
)
from arbor.memory.recall.candidates import Candidates, Flags, Places, microseconds
from arbor.memory.recall.fusion import ScoreInputs, contenders, lasting_components

_USE = np.dtype(
    [("place", INTEGER), ("used", MOMENT), ("uses", INTEGER), ("level", FLOAT), ("active", MOMENT)]
)
#: `timestamptz_send` of minus infinity.
_NEVER_USED = np.iinfo(np.int64).min
#: The most memories for each request whose texts are read together with their uses, though only some of them are returned.
MAX_CONTENTS = 128
#: The most memories of a small mind: the state of all of them is read at once, before candidates are known.
_SMALL_MIND = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """The uses and activations of some memories, as columns; memories with neither are missing."""

    #: The places of the memories among those that were read.
    places: npt.NDArray[np.int64]
    #: Whether the memory was ever recalled, and the time of the last recall, in microseconds since EPOCH.
    recalled: npt.NDArray[np.bool_]
    used: npt.NDArray[np.int64]
    uses: npt.NDArray[np.float64]
    #: The activation, and the time of it.
    level: npt.NDArray[np.float64]
    active: npt.NDArray[np.int64]

    def part(self, first: int, count: int) -> Uses:
        """Return the uses of the `count` memories from place `first` on, with places from 0."""
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

    associations: Associations
    uses: Uses
    #: The text of each memory in order, None for a deleted memory; empty if there were too many to read.
    texts: Sequence[StoredText | None]


def read_state(*, sources: Halves, ids: Halves, requests: int) -> MemoryState:
    """Return the associations of sources, and the uses and the texts of memories, in the open transaction.

    One statement for any number of agents; none without sources and ids.
    """
    if not len(sources) and not len(ids):
        return _state(None, None, None, None)
    return _state(
        *fetch_packed(
            queries.MEMORY_STATE,
            sources=uuid_array(sources),
            ids=uuid_array(ids),
            with_contents=len(ids) <= MAX_CONTENTS * requests,
        )
    )


def _state(associations: Any, uses: Any, contents: Any, details: Any) -> MemoryState:
    associated, used = unpack(associations, LINK_LAYOUT), unpack(uses, _USE)
    last = used["used"].astype(np.int64)
    recalled = last != _NEVER_USED
    return MemoryState(
        associations=Associations(
            source=associated["source"].astype(np.uint64),
            target=associated["target"].astype(np.uint64),
            share=associated["share"].astype(np.float64),
        ),
        uses=Uses(
            places=used["place"].astype(np.int64) - 1,
            recalled=recalled,
            used=moments(np.where(recalled, last, 0)),
            uses=used["uses"].astype(np.float64),
            level=used["level"].astype(np.float64),
            active=moments(used["active"]),
        ),
        texts=[
            None if content is None else StoredText(content, detail)
            for content, detail in zip(contents or (), details or (), strict=True)
        ],
    )


def find_in_cached_minds(
    queries: Sequence[Query], minds: Mapping[UUID, CachedMind]
) -> list[ScanResult | None]:
    """Return the result of each query in these minds, in the open transaction; None for a query whose mind has to be scanned.

    At most two statements for all queries.
    """
    searches = [
        _search(query, minds[query.request.agent_id])
        if query.request.agent_id in minds and can_answer(query.request.only)
        else None
        for query in queries
    ]
    results = iter(_find([search for search in searches if search is not None]))
    return [None if search is None else next(results) for search in searches]


def _search(query: Query, mind: CachedMind) -> MindSearch:
    request = query.request
    vector = None
    if request.vector is not None:
        vector = half_precision(request.vector)
        if len(vector) != mind.model.dimension or (
            request.model is not None and request.model.name != mind.model.name
        ):
            vector = None
    return MindSearch(
        image=mind.image,
        request=request,
        reading=query.reading,
        lexical=sparsevec_weights(query.reading.lexical),
        vector=vector,
        documents=query.memory_count,
        weights=query.weights,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowState:
    """The state of some rows of an image."""

    #: The rows in ascending order.
    rows: Places
    uses: Uses
    texts: Sequence[StoredText | None]


def _find(searches: Sequence[MindSearch]) -> list[ScanResult]:
    choices = [choose_by_fit(search) for search in searches]
    sources = [search.image.ids_of(choice.sources) for search, choice in zip(searches, choices, strict=True)]
    # The associations of all agents are read together; each search finds its own, because an image has only its agent's memories.
    associations, states = _read(searches, [_all_if_small(search) for search in searches], sources=sources)
    found = [
        _complete(search, choice, associations) for search, choice in zip(searches, choices, strict=True)
    ]
    # The state of small minds has been read already.
    unread = [place for place, state in enumerate(states) if not len(state.rows)]
    if unread:
        wanted = [rows[places] for rows, places, _ in (found[place] for place in unread)]
        _, late = _read([searches[place] for place in unread], wanted)
        for place, state in zip(unread, late, strict=True):
            states[place] = state
    return [
        _with_state(search, result, rows, state)
        for search, (rows, _, result), state in zip(searches, found, states, strict=True)
    ]


def _all_if_small(search: MindSearch) -> Places:
    """Return the rows of all active memories of a small mind; none of a larger one."""
    image = search.image
    return np.flatnonzero(image.active) if len(image) <= _SMALL_MIND else np.empty(0, dtype=np.int64)


def _read(
    searches: Sequence[MindSearch], rows: Sequence[Places], *, sources: Sequence[Halves] = ()
) -> tuple[Associations, list[_RowState]]:
    """Return the associations of sources, and the state of each search's rows. One statement; none without sources and rows."""
    ids = [search.image.ids_of(places) for search, places in zip(searches, rows, strict=True)]
    state = read_state(sources=_concatenated(sources), ids=_concatenated(ids), requests=len(searches))
    states, first = [], 0
    for places in rows:
        end = first + len(places)
        uses = state.uses.part(first, len(places))
        states.append(_RowState(rows=places, uses=uses, texts=state.texts[first:end]))
        first = end
    return state.associations, states


def _concatenated(ids: Sequence[Halves]) -> Halves:
    return np.concatenate(ids) if ids else np.empty((0, 2), dtype=np.uint64)


def _complete(
    search: MindSearch, choice: Choice, associations: Associations
) -> tuple[Places, Places, ScanResult]:
    """Return the rows of all candidates, the places of the contenders among them, and the result without uses and texts."""
    rows, candidates, links = complete_candidates(search, choice, associations)
    lasting = lasting_components(
        ScoreInputs(
            candidates=candidates,
            reading=search.reading,
            background=choice.background,
            weights=search.weights,
            links=links,
            mood=search.request.mood,
        )
    )
    found = ScanResult(
        candidates=candidates,
        links=links,
        background=choice.background,
        compared=search.vector is not None,
        session=column_texts(search.image, rows, "session"),
        type=column_texts(search.image, rows, "type"),
        lasting=lasting,
    )
    places = contenders(
        candidates,
        lasting,
        weights=search.weights,
        limit=search.request.limit,
        limited=limited_candidates(search.request, found.session),
    )
    return rows, places, found


def _with_state(search: MindSearch, found: ScanResult, rows: Places, state: _RowState) -> ScanResult:
    """Add the uses and texts of the candidates whose state was read to a result; `rows` are those of the candidates."""
    if not len(state.rows) or not len(rows):
        return found
    at = np.minimum(np.searchsorted(rows, state.rows), len(rows) - 1)
    is_candidate = rows[at] == state.rows
    return replace(
        found,
        candidates=_with_uses(search, found.candidates, at, is_candidate, state.uses),
        texts=_texts(at, is_candidate, state.texts),
    )


def _with_uses(
    search: MindSearch, candidates: Candidates, at: Places, is_candidate: Flags, read: Uses
) -> Candidates:
    chosen = is_candidate[read.places]
    places = at[read.places[chosen]]
    if not len(places):
        return candidates
    used, uses, level = candidates.used.copy(), candidates.uses.copy(), candidates.level.copy()
    recalled = read.recalled[chosen]
    used[places[recalled]] = read.used[chosen][recalled]
    uses[places] = read.uses[chosen]
    level[places] = levels_after(
        read.level[chosen],
        microseconds(search.request.now) - read.active[chosen],
        settings.ARBOR_ACTIVATION_HALF_LIFE,
    )
    return replace(candidates, used=used, uses=uses, level=level)


def _texts(at: Places, is_candidate: Flags, texts: Sequence[StoredText | None]) -> Mapping[int, StoredText]:
    """Return the texts that were read, by the places of their candidates."""
    return {
        place: text
        for place, candidate, text in zip(at.tolist(), is_candidate.tolist(), texts, strict=False)
        if candidate and text is not None
    }
