"""Properties of rankings, for any candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.forgetting import days_between, effective_importance, relevance
from arbor.memory.recall.candidates import Candidate, Candidates, Links
from arbor.memory.recall.fusion import Background, ScoreInputs, rank
from arbor.memory.recall.recall_request import ReadQuery
from arbor.memory.recall.timespan import TimeSpan
from arbor.memory.recall.weights import DEFAULT_WEIGHTS, Weights

NOW = datetime(2026, 11, 21, tzinfo=UTC)
BACKGROUND = Background(mean=0.1, deviation=0.1)
CANDIDATES = st.builds(
    Candidate,
    id=st.uuids(),
    words=st.floats(0, 1),
    similarity=st.none() | st.floats(-1, 1),
    session=st.sampled_from(["", "a", "b"]),
    position=st.integers(0, 12),
    role=st.sampled_from(["", "Caroline", "Melanie"]),
    asks=st.booleans(),
    occurred_at=st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    last_access_at=st.none() | st.just(NOW),
    importance=st.floats(0, 1),
    decay_rate=st.floats(0, 1e3),
    trust=st.floats(0, 1),
    uses=st.integers(-1, 10**9),
    episode=st.none() | st.sampled_from([UUID(int=7), UUID(int=8)]),
    level=st.floats(0, 1),
    valence=st.floats(-1, 1),
)


BACKGROUNDS = st.builds(Background, mean=st.floats(-1, 1), deviation=st.floats(0, 1))


READING = ReadQuery(
    lexical={},
    speakers=frozenset({"caroline"}),
    span=TimeSpan(start=NOW - timedelta(days=9), end=NOW),
)


@given(candidates=st.lists(CANDIDATES, max_size=20), background=BACKGROUNDS, limit=st.integers(0, 25))
def test_scores_are_ordered_bounded_and_never_nan(
    candidates: list[Candidate], background: Background, limit: int
) -> None:
    ranking = rank(
        ScoreInputs(candidates=Candidates.of(candidates), reading=READING, background=background),
        now=NOW,
        limit=limit,
    )
    assert len(ranking) == min(limit, len(candidates))
    highest = sum(getattr(DEFAULT_WEIGHTS, weight.name) for weight in fields(Weights)) * 4
    for ranked in ranking:
        assert 0 <= ranked.score <= highest
        assert ranked.score == pytest.approx(ranked.components.total)
    assert [ranked.score for ranked in ranking] == sorted((ranked.score for ranked in ranking), reverse=True)


@given(
    candidates=st.lists(CANDIDATES, min_size=1, max_size=12, unique_by=lambda candidate: candidate.id),
    background=BACKGROUNDS,
    better=st.sampled_from(["words", "importance", "trust", "similarity"]),
)
def test_a_memory_that_fits_better_is_never_scored_lower(
    candidates: list[Candidate], background: Background, better: str
) -> None:
    def score(memories: list[Candidate]) -> float:
        ranking = rank(
            ScoreInputs(candidates=Candidates.of(memories), reading=READING, background=background),
            now=NOW,
            limit=99,
        )
        return next(ranked.score for ranked in ranking if ranked.id == candidates[0].id)

    best = candidates[0]._replace(**{better: 1.0})  # type: ignore[arg-type]
    assert score([best, *candidates[1:]]) >= score(candidates) - 1e-12


@given(candidates=st.lists(CANDIDATES, min_size=1, max_size=12), yearly=st.booleans())
def test_batch_scores_equal_single_scores(candidates: list[Candidate], yearly: bool) -> None:
    span = TimeSpan(start=NOW - timedelta(days=40), end=NOW - timedelta(days=9), yearly=yearly)
    ranking = rank(
        ScoreInputs(
            candidates=Candidates.of(candidates), reading=replace(READING, span=span), background=BACKGROUND
        ),
        now=NOW,
        limit=99,
    )
    for ranked in ranking:
        memory = candidates[ranked.index]
        assert ranked.id == memory.id
        assert ranked.components.time == pytest.approx(
            DEFAULT_WEIGHTS.time * span.nearness(memory.occurred_at)
        )
        assert ranked.components.recency == pytest.approx(
            DEFAULT_WEIGHTS.recency
            * relevance(
                importance=effective_importance(importance=memory.importance, uses=memory.uses),
                decay_rate=memory.decay_rate,
                days_since_access=days_between(memory.last_access_at or memory.occurred_at, NOW),
            )
        )


@given(
    candidates=st.lists(CANDIDATES, min_size=1, max_size=12, unique_by=lambda candidate: candidate.id),
    associations=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.floats(0, 1)), max_size=30),
    background=BACKGROUNDS,
    mood=st.none() | st.floats(-1, 1),
    data=st.data(),
)
def test_components_are_bounded_by_weights_in_any_order(
    candidates: list[Candidate],
    associations: list[tuple[int, int, float]],
    background: Background,
    mood: float | None,
    data: st.DataObject,
) -> None:
    associations = [association for association in associations if max(association[:2]) < len(candidates)]

    def components_by_id(
        order: Sequence[int], links: Sequence[tuple[int, int, float]]
    ) -> dict[UUID, dict[str, float]]:
        places = {old: new for new, old in enumerate(order)}
        moved = [(places[source], places[target], share) for source, target, share in links]
        ranking = rank(
            ScoreInputs(
                candidates=Candidates.of([candidates[place] for place in order]),
                reading=READING,
                background=background,
                links=Links.of(moved),
                mood=mood,
            ),
            now=NOW,
            limit=99,
        )
        return {memory.id: memory.components.as_dict() for memory in ranking}

    order = list(range(len(candidates)))
    ranking = components_by_id(order, associations)
    assert (
        components_by_id(data.draw(st.permutations(order)), data.draw(st.permutations(associations)))
        == ranking
    )
    most_fit = DEFAULT_WEIGHTS.words + DEFAULT_WEIGHTS.meaning
    for components in ranking.values():
        for name in ("association", "episode"):
            assert 0 <= components[name] <= getattr(DEFAULT_WEIGHTS, name) * most_fit + 1e-12
        for name in ("activation", "mood", "importance", "recency"):
            assert 0 <= components[name] <= getattr(DEFAULT_WEIGHTS, name) + 1e-12
        assert not any(math.isnan(value) for value in components.values())
