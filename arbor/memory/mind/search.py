"""The search of a mind image: score every memory, and choose candidates as the scan chooses them.

`apps/memories/services/recall/scan.py` does the same in the database. There are two steps, because the image has no neighborhoods, which
are read between them: `choose_by_fit` finds the memories that fit by themselves, `complete_candidates` adds the turns beside them, those from the
neighborhoods of the best, and the latest where too few fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arbor.memory.mind.image import MindImage
from arbor.memory.mind.lookup import turn_keys
from arbor.memory.mind.row_filter import passing_rows
from arbor.memory.mind.rows import UNNAMED, Halves
from arbor.memory.recall.candidates import (
    NO_LINKS,
    Candidates,
    Flags,
    Links,
    Numbers,
    Places,
    id_numbers,
    microseconds,
)
from arbor.memory.recall.fusion import (
    MAX_ASSOCIATED_MEMORIES,
    MAX_ASSOCIATION_SOURCES,
    MAX_BESIDE,
    MEANING_BESIDE_WORDS,
    REACH,
    SEEDS,
    SPAN_SEEDS,
    Background,
    deviations,
)
from arbor.memory.recall.recall_request import ReadQuery, RecallRequest, SessionLimit
from arbor.memory.recall.weights import Weights
from arbor.memory.values import HEARTBEATS_SESSION


@dataclass(frozen=True, slots=True, kw_only=True)
class MindSearch:
    """A request and the image that answers it."""

    image: MindImage
    request: RecallRequest
    reading: ReadQuery
    #: The query's vector for BM25, in single precision like the stored ones.
    lexical: dict[int, float]
    #: The query's vector, in half precision like the stored vectors; None: words alone decide.
    vector: npt.NDArray[np.float32] | None
    #: The approximate number of the agent's memories.
    documents: int
    weights: Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The memories that fit the query by themselves, and the best of them, the sources of associations."""

    #: A flag for each row of the image, and the cosines of the chosen rows with the query's vector.
    chosen: Flags
    similarity: Numbers
    background: Background
    #: The rows of the sources, unordered, and their fits.
    sources: Places
    fits: Numbers
    #: The rows that pass the filter and have not expired; None: every row.
    passing: Flags | None
    words: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Associations:
    """Associations from neighborhoods: source, target, and share of the source's fit. Columns of one length."""

    source: Halves
    target: Halves
    share: Numbers


def choose_by_fit(search: MindSearch) -> Choice:
    """Return the memories nearest by meaning, best by words, and best among those of the time that the query mentions."""
    image = search.image
    max_seeds = max(SEEDS, search.request.limit)
    passing = passing_rows(image, search.request.only, now=microseconds(search.request.now))
    words = image.word_scores(search.lexical)
    similarity, background = _by_meaning(search, passing)
    around = search.reading.span.around() if search.reading.span else None
    chosen = np.zeros(len(image), dtype=np.bool_)
    for among in _pools(search, passing):
        chosen[_nearest(search, among, similarity, max_seeds)] = True
        with_words = (words > 0 if among is None else (words > 0) & among).nonzero()[0]
        chosen[_first(-words[with_words], with_words, max_seeds, image)] = True
        if around is not None:
            since, until = map(microseconds, around)
            chosen[_timely(search, among, words, similarity, background, since=since, until=until)] = True
    rows = chosen.nonzero()[0]
    exact = np.full(len(image), np.nan)
    exact[rows] = _similarities(search, rows)
    sources, fits = _association_sources(search, rows, words, deviations(exact[rows], background))
    return Choice(
        chosen=chosen,
        similarity=exact,
        background=background,
        sources=sources,
        fits=fits,
        passing=passing,
        words=words,
    )


def complete_candidates(
    search: MindSearch, choice: Choice, associations: Associations
) -> tuple[Places, Candidates, Links]:
    """Return the rows of all candidates, the candidates without their uses, and the associations between them."""
    rows = _with_associated(search, choice, choice.chosen, associations)
    if len(rows) - _excess(search, rows) < min(search.request.limit, search.documents):
        # Too few memories fit: add the latest ones.
        chosen = choice.chosen.copy()
        for among in _pools(search, choice.passing):
            chosen[_recent(search, among)] = True
        rows = _with_associated(search, choice, chosen, associations)
    return rows, _candidates(search, choice, rows), _links(search.image, rows, associations)


def _with_associated(search: MindSearch, choice: Choice, chosen: Flags, associations: Associations) -> Places:
    """Return the chosen rows, the turns beside them, and the rows associated with the sources."""
    together = chosen.copy()
    together[_beside(search, chosen.nonzero()[0], choice.passing)] = True
    together[_associated(search, choice, chosen, associations)] = True
    return together.nonzero()[0]


def _pools(search: MindSearch, passing: Flags | None) -> Iterator[Flags | None]:
    """Yield the rows to choose seeds from: all, and with a session limit also those of other sessions; None for every row."""
    yield passing
    if search.request.session_limit is not None:
        others = ~of_limited_session(search.image, search.request.session_limit)
        yield others if passing is None else others & passing


def of_limited_session(image: MindImage, limit: SessionLimit) -> Flags:
    """Return a flag for each row of the image: whether it is of the limited session."""
    number = image.names.number_of(limit.session)
    flags: Flags = image.session == (-1 if number is None else number)
    return flags


def _excess(search: MindSearch, rows: Places) -> int:
    limit = search.request.session_limit
    return 0 if limit is None else limit.excess(int(of_limited_session(search.image, limit)[rows].sum()))


def _by_meaning(
    search: MindSearch, passing: Flags | None
) -> tuple[npt.NDArray[np.float32] | None, Background]:
    """Return the approximate similarity of each row, and the background of similarities."""
    if search.vector is None or not len(search.image):
        return None, Background(mean=0.0, deviation=0.0)
    similarity = search.image.similarities(search.vector)
    near = _embedded(search.image, passing)
    if not len(near):
        return similarity, Background(mean=0.0, deviation=0.0)
    precise = similarity[near].astype(np.float64)
    mean = float(precise.mean())
    variance = float(precise @ precise) / len(precise) - mean * mean
    return similarity, Background(mean=mean, deviation=math.sqrt(max(0.0, variance)))


def _embedded(image: MindImage, among: Flags | None) -> Places:
    return (image.embedded if among is None else image.embedded & among).nonzero()[0]


def _nearest(
    search: MindSearch, among: Flags | None, similarity: npt.NDArray[np.float32] | None, count: int
) -> Places:
    """Return the `count` rows nearest by meaning, unordered."""
    if similarity is None or search.vector is None:
        return np.empty(0, dtype=np.int64)
    image = search.image
    near = _embedded(image, among)
    if len(near) <= count:
        return near
    # Similarities are rounded: rows within the rounding error of the limit are compared exactly.
    known = similarity[near]
    near = near[known >= np.partition(known, -count)[-count] - 2 * image.similarity_error(search.vector)]
    return _first(-image.exact_similarities(near, search.vector), near, count, image)


def _first(values: npt.NDArray[Any], rows: Places, count: int, image: MindImage) -> Places:
    """Return the `count` rows with the least values, unordered; of equal values, the rows with the lower ids."""
    if len(rows) <= count:
        return rows
    edge = np.partition(values, count - 1)[count - 1]
    least = values <= edge
    rows, values = rows[least], values[least]
    if len(rows) == count:
        return rows
    order = np.lexsort((image.rows["low"][rows], image.rows["high"][rows], values))
    return rows[order[:count]]


def _timely(
    search: MindSearch,
    passing: Flags | None,
    words: npt.NDArray[np.float32],
    similarity: npt.NDArray[np.float32] | None,
    background: Background,
    *,
    since: int,
    until: int,
) -> Places:
    """Return the best-fitting rows of a time: by their words, and by meaning where words fit equally."""
    image = search.image
    timely = (image.occurred >= since) & (image.occurred <= until)
    rows = np.flatnonzero(timely if passing is None else timely & passing)
    misfit = -words[rows].astype(np.float64)
    if similarity is None or search.vector is None or not background.deviation:
        return _first(misfit, rows, SPAN_SEEDS, image)
    scale = MEANING_BESIDE_WORDS / background.deviation
    if len(rows) > SPAN_SEEDS:
        about = misfit + np.where(image.embedded[rows], scale * (background.mean - similarity[rows]), 0.0)
        edge = np.partition(about, SPAN_SEEDS - 1)[SPAN_SEEDS - 1]
        near = about <= edge + 2 * scale * image.similarity_error(search.vector)
        rows, misfit = rows[near], misfit[near]
    away = background.mean - image.exact_similarities(rows, search.vector)
    return _first(misfit + np.nan_to_num(scale * away, nan=0.0), rows, SPAN_SEEDS, image)


def _recent(search: MindSearch, passing: Flags | None) -> Places:
    rows = np.arange(len(search.image)) if passing is None else np.flatnonzero(passing)
    return _first(-search.image.occurred[rows], rows, search.request.limit, search.image)


def _association_sources(
    search: MindSearch, rows: Places, words: npt.NDArray[np.float32], meaning: Numbers
) -> tuple[Places, Numbers]:
    """Return the chosen rows that fit the query best, and their fits."""
    fit = search.weights.words * words[rows].astype(np.float64) + search.weights.meaning * meaning
    fitting = fit > 0
    sources = _first(-fit[fitting], rows[fitting], MAX_ASSOCIATION_SOURCES, search.image)
    return sources, fit[rows.searchsorted(sources)]


def _similarities(search: MindSearch, rows: Places) -> Numbers:
    if search.vector is None:
        return np.full(len(rows), np.nan)
    return search.image.exact_similarities(rows, search.vector)


def _associated(search: MindSearch, choice: Choice, chosen: Flags, associations: Associations) -> Places:
    """Return the rows that were not chosen and have the strongest associations with a source."""
    if not len(associations.share):
        return np.empty(0, dtype=np.int64)
    image = search.image
    among = image.active if choice.passing is None else choice.passing
    targets = image.by_id.rows_of(associations.target, among=among)
    sources = image.by_id.rows_of(associations.source, among=image.active)
    fits = dict(zip(choice.sources.tolist(), choice.fits.tolist(), strict=True))
    worth: dict[int, float] = {}
    for row, source, share in zip(
        targets.tolist(), sources.tolist(), associations.share.tolist(), strict=True
    ):
        if row >= 0 and not chosen[row] and source in fits:
            worth[row] = max(worth.get(row, 0.0), fits[source] * share)
    associated = np.fromiter(worth, dtype=np.int64, count=len(worth))
    return _first(-np.array(list(worth.values())), associated, MAX_ASSOCIATED_MEMORIES, image)


def _beside(search: MindSearch, rows: Places, passing: Flags | None) -> Places:
    """Return the turns within REACH of these rows in their sessions."""
    found = search.image.rows[rows]
    within = found["session"] != UNNAMED
    keys = turn_keys(found["session"][within], found["position"][within])
    return search.image.turns.rows_beside(
        keys, reach=REACH, most=MAX_BESIDE, among=passing, ids_of=search.image.ids_of
    )


def _candidates(search: MindSearch, choice: Choice, rows: Places) -> Candidates:
    found = search.image.rows[rows]
    similarity = choice.similarity[rows]
    if search.vector is not None and len(added := (~choice.chosen[rows]).nonzero()[0]):
        similarity[added] = _similarities(search, rows[added])
    occurred = found["occurred"].copy()
    session = found["session"].astype(np.int64) - 1
    if (heartbeats := search.image.names.number_of(HEARTBEATS_SESSION)) is not None:
        session[found["session"] == heartbeats] = -1
    nothing = np.zeros(len(rows))
    return Candidates(
        ids=search.image.ids_of(rows),
        words=choice.words[rows].astype(np.float64),
        similarity=similarity,
        session=session,
        position=found["position"].astype(np.int64),
        role=search.image.names.texts_of(found["role"].tolist()),
        asks=found["asks"],
        occurred=occurred,
        used=occurred,
        importance=found["importance"],
        decay_rate=found["decay_rate"],
        trust=found["trust"],
        uses=nothing,
        episode=id_numbers(np.stack([found["episode_high"], found["episode_low"]], axis=1)),
        level=nothing,
        valence=found["valence"],
    )


def _links(image: MindImage, rows: Places, associations: Associations) -> Links:
    """Return the associations between candidates; associations with other memories are left out."""
    if not len(associations.share):
        return NO_LINKS
    source, target = (
        _places(rows, image.by_id.rows_of(ids, among=image.active))
        for ids in (associations.source, associations.target)
    )
    known = (source >= 0) & (target >= 0)
    return Links(
        source=source[known], target=target[known], share=np.clip(associations.share[known], 0.0, 1.0)
    )


def _places(rows: Places, wanted: Places) -> Places:
    """Return the place of each wanted row among `rows`, which are in order; -1 for a row that is not among them."""
    at = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
    return np.where(rows[at] == wanted, at, -1)


def column_texts(image: MindImage, rows: Places, column: str) -> Sequence[str]:
    """Return the texts of a column of names: the session, role or type of each row."""
    return image.names.texts_of(image.rows[column][rows].tolist())
