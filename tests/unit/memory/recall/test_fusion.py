"""The ranker: bounded and monotonic scores as sums of score components."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from arbor.memory.forgetting import effective_importance
from arbor.memory.recall.candidates import Candidate, Candidates, Links
from arbor.memory.recall.fusion import (
    Background,
    LimitedCandidates,
    RankedCandidate,
    ScoreInputs,
    all_components,
    contenders,
    lasting_components,
    rank,
    select_best,
)
from arbor.memory.recall.recall_request import ReadQuery
from arbor.memory.recall.timespan import TimeSpan
from arbor.memory.recall.weights import DEFAULT_WEIGHTS
from arbor.memory.values import COMPONENT_NAMES

NOW = datetime(2026, 11, 21, tzinfo=UTC)
BACKGROUND = Background(mean=0.1, deviation=0.1)
EMPTY_QUERY = ReadQuery(lexical={}, speakers=frozenset(), span=None)
PLAIN = Candidate(
    id=UUID(int=1),
    words=0.0,
    similarity=0.1,
    session="",
    position=0,
    role="",
    asks=False,
    occurred_at=NOW - timedelta(days=100),
    last_access_at=None,
    importance=0.5,
    decay_rate=0.01,
    trust=1.0,
)


def candidates_of(*changes: Mapping[str, object]) -> list[Candidate]:
    return [PLAIN._replace(**{"id": UUID(int=n), **change}) for n, change in enumerate(changes, start=1)]  # type: ignore[arg-type]


def ranking_of(
    candidates: list[Candidate],
    limit: int = 99,
    *,
    associations: Sequence[tuple[int, int, float]] = (),
    mood: float | None = None,
    **query: object,
) -> dict[int, RankedCandidate]:
    reading = replace(EMPTY_QUERY, **query)  # type: ignore[arg-type]
    ranking = rank(
        ScoreInputs(
            candidates=Candidates.of(candidates),
            reading=reading,
            background=BACKGROUND,
            links=Links.of(associations),
            mood=mood,
        ),
        now=NOW,
        limit=limit,
    )
    return {ranked.id.int: ranked for ranked in ranking}


def test_words_and_meaning_are_scaled_by_their_background() -> None:
    ranking = ranking_of(candidates_of({"words": 0.4}, {"similarity": 0.4}, {}))
    assert list(ranking) == [1, 2, 3]
    assert ranking[1].components.words == pytest.approx(0.4 * DEFAULT_WEIGHTS.words)
    # Three deviations above the mean, of at most six.
    assert ranking[2].components.meaning == pytest.approx(0.5 * DEFAULT_WEIGHTS.meaning)
    assert ranking[3].components.meaning == 0


def test_a_memory_that_is_not_embedded_yet_is_found_by_its_words() -> None:
    ranking = ranking_of(candidates_of({"similarity": 0.15}, {"similarity": None, "words": 0.3}))
    assert list(ranking) == [2, 1]
    assert ranking[2].components.meaning == 0


def test_a_turn_is_raised_by_its_neighbors_of_the_same_session() -> None:
    ranking = ranking_of(
        candidates_of(
            {"session": "a", "position": 4, "words": 0.4},
            {"session": "a", "position": 5},
            {"session": "a", "position": 6},
            {"session": "a", "position": 7},
            {"session": "b", "position": 5},
        )
    )
    assert ranking[2].components.neighbours == pytest.approx(0.4 * DEFAULT_WEIGHTS.neighbours)
    assert ranking[3].components.neighbours == pytest.approx(0.2 * DEFAULT_WEIGHTS.neighbours)
    assert ranking[4].components.neighbours == ranking[5].components.neighbours == 0
    assert ranking[4].components.session == pytest.approx(0.4 * DEFAULT_WEIGHTS.session)
    assert ranking[5].components.session == 0


def test_the_answer_to_a_matching_question_is_raised_more() -> None:
    question = {"session": "a", "position": 4, "words": 0.4, "asks": True}
    before, after = {"session": "a", "position": 3}, {"session": "a", "position": 5}
    ranking = ranking_of(candidates_of(question, before, after))
    assert ranking[3].components.neighbours == pytest.approx(
        0.4 * (DEFAULT_WEIGHTS.neighbours + DEFAULT_WEIGHTS.answer)
    )
    assert ranking[2].components.neighbours == pytest.approx(0.4 * DEFAULT_WEIGHTS.neighbours)


def test_a_memory_outside_of_any_session_is_a_session_of_its_own() -> None:
    ranking = ranking_of(candidates_of({"words": 0.4}, {"words": 0.2, "position": 1}))
    assert ranking[1].components.session == pytest.approx(0.4 * DEFAULT_WEIGHTS.session)
    assert ranking[2].components.session == pytest.approx(0.2 * DEFAULT_WEIGHTS.session)
    assert ranking[1].components.neighbours == ranking[2].components.neighbours == 0


def test_memories_of_the_named_speaker_rank_first() -> None:
    ranking = ranking_of(
        candidates_of({"role": "Caroline"}, {"role": "Melanie Ann"}), speakers=frozenset({"melanie"})
    )
    assert list(ranking) == [2, 1]
    assert ranking[2].components.speaker == DEFAULT_WEIGHTS.speaker


def test_memories_of_the_named_time_rank_first() -> None:
    june = TimeSpan(start=datetime(2026, 6, 1, tzinfo=UTC), end=datetime(2026, 7, 1, tzinfo=UTC))
    moments = [datetime(2026, month, 5, tzinfo=UTC) for month in (4, 6, 9)]
    ranking = ranking_of(candidates_of(*({"occurred_at": moment} for moment in moments)), span=june)
    assert next(iter(ranking)) == 2
    assert ranking[2].components.time == DEFAULT_WEIGHTS.time
    assert ranking[1].components.time < 0.05 * DEFAULT_WEIGHTS.time


def test_a_recently_recalled_memory_has_not_faded() -> None:
    ranking = ranking_of(candidates_of({}, {"last_access_at": NOW - timedelta(days=1)}, {"importance": 1.0}))
    assert ranking[2].components.recency == pytest.approx(0.05 * 0.5 * math.exp(-0.01))
    assert ranking[1].components.recency == pytest.approx(0.05 * 0.5 * math.exp(-1))
    assert ranking[3].components.recency == pytest.approx(0.05 * math.exp(-1))


def test_the_highest_association_counts() -> None:
    ranking = ranking_of(
        candidates_of({"words": 0.8}, {"words": 0.4}, {}, {}),
        associations=[(0, 2, 0.5), (1, 2, 1.0), (2, 0, 1.0), (1, 0, 0.25)],
    )
    assert ranking[3].components.association == pytest.approx(0.4 * DEFAULT_WEIGHTS.association)
    assert ranking[1].components.association == pytest.approx(0.1 * DEFAULT_WEIGHTS.association)
    assert ranking[2].components.association == ranking[4].components.association == 0
    assert list(ranking) == [1, 2, 3, 4]


def test_the_best_memory_raises_its_whole_episode() -> None:
    one, two = UUID(int=71), UUID(int=72)
    ranking = ranking_of(
        candidates_of({"words": 0.8, "episode": one}, {"episode": one}, {"episode": two}, {"words": 0.2})
    )
    assert (
        ranking[1].components.episode
        == ranking[2].components.episode
        == pytest.approx(0.8 * DEFAULT_WEIGHTS.episode)
    )
    assert ranking[3].components.episode == 0
    # A memory without an episode is an episode of its own.
    assert ranking[4].components.episode == pytest.approx(0.2 * DEFAULT_WEIGHTS.episode)


def test_activated_memories_rank_first() -> None:
    ranking = ranking_of(candidates_of({}, {"level": 0.2}, {"level": 1.0}))
    assert list(ranking) == [3, 2, 1]
    assert ranking[2].components.activation == pytest.approx(0.2 * DEFAULT_WEIGHTS.activation)


@pytest.mark.parametrize(
    ("mood", "valence", "share"),
    [
        (None, 1.0, 0.0),
        (0.0, 1.0, 0.0),
        (0.5, 1.0, 0.5),
        (-0.5, -1.0, 0.5),
        (1.0, 0.0, 0.0),
        (1.0, -1.0, 0.0),
        (-1.0, 0.3, 0.0),
    ],
)
def test_memories_of_a_similar_mood_score_higher(mood: float | None, valence: float, share: float) -> None:
    ranking = ranking_of(candidates_of({"valence": valence}), mood=mood)
    assert ranking[1].components.mood == pytest.approx(share * DEFAULT_WEIGHTS.mood)


def test_use_raises_importance_and_recency() -> None:
    ranking = ranking_of(candidates_of({}, {"uses": 3}))
    worth = effective_importance(importance=0.5, uses=3)
    assert ranking[2].components.importance == pytest.approx(DEFAULT_WEIGHTS.importance * worth)
    assert ranking[2].components.recency == pytest.approx(ranking[1].components.recency * worth / 0.5)
    assert list(ranking) == [2, 1]


def test_equal_scores_are_ordered_by_id_and_cut_at_the_limit() -> None:
    assert list(ranking_of(candidates_of(*[{}] * 9), limit=4)) == [1, 2, 3, 4]


def test_no_candidates_or_a_limit_of_zero_yield_no_ranking() -> None:
    assert ranking_of([]) == {}
    assert ranking_of(candidates_of({}), limit=0) == {}


def test_equal_vectors_score_no_meaning() -> None:
    flat = Background(mean=0.7, deviation=0.0)
    candidates = Candidates.of(candidates_of({"similarity": 0.7}))
    inputs = ScoreInputs(candidates=candidates, reading=EMPTY_QUERY, background=flat)
    ranking = rank(inputs, now=NOW, limit=1)
    assert ranking[0].components.meaning == 0


def test_the_best_memory_of_a_place_raises_its_neighbors() -> None:
    shared = [{"session": "a", "position": 4, "words": words} for words in (0.4, 0.2)]
    ranking = ranking_of(candidates_of(*shared, {"session": "a", "position": 5}))
    assert ranking[3].components.neighbours == pytest.approx(0.4 * DEFAULT_WEIGHTS.neighbours)
    assert ranking[1].components.neighbours == ranking[2].components.neighbours == 0


def test_places_of_different_sessions_are_not_neighbors() -> None:
    ranking = ranking_of(
        candidates_of(
            {"session": "a", "position": 2**31 - 1, "words": 0.4},
            {"session": "b", "position": 0},
            {"session": "b", "position": 1},
        )
    )
    assert ranking[2].components.neighbours == ranking[3].components.neighbours == 0


def test_every_memory_that_use_can_lift_is_a_contender() -> None:
    chance = random.Random(3)
    accesses = [None, NOW, NOW - timedelta(days=30), NOW + timedelta(days=9)]
    for limit in (1, 5, 30):
        bare = [
            PLAIN._replace(
                id=UUID(int=number),
                words=chance.random() * 0.4,
                importance=chance.random(),
                decay_rate=chance.choice([0.0, 0.01, 0.5]),
                occurred_at=NOW - timedelta(days=chance.randint(0, 400)),
            )
            for number in range(1, 200)
        ]
        candidates = Candidates.of(bare)
        inputs = ScoreInputs(
            candidates=candidates, reading=EMPTY_QUERY, background=BACKGROUND, weights=DEFAULT_WEIGHTS
        )
        places = contenders(candidates, lasting_components(inputs), weights=DEFAULT_WEIGHTS, limit=limit)
        assert limit <= len(places) < 199
        for _ in range(20):
            used = [
                memory._replace(
                    uses=chance.choice([0, 1, 10**6]),
                    last_access_at=chance.choice(accesses),
                    level=chance.choice([0.0, 0.5, 1.0]),
                )
                for memory in bare
            ]
            best = rank(
                ScoreInputs(candidates=Candidates.of(used), reading=EMPTY_QUERY, background=BACKGROUND),
                now=NOW,
                limit=limit,
            )
            assert {ranked.index for ranked in best} <= set(places.tolist())


def test_only_the_best_of_limited_candidates_are_selected() -> None:
    candidates = Candidates.of(candidates_of(*({"words": words} for words in (0.9, 0.8, 0.8, 0.7, 0.1, 0.2))))
    components = {"words": candidates.words} | {
        name: np.zeros(6) for name in COMPONENT_NAMES if name != "words"
    }
    limited = LimitedCandidates(flags=np.array([True, True, True, True, False, False]), most=2)
    for limit, expected in ((1, [0]), (3, [0, 1, 5]), (9, [0, 1, 5, 4])):
        best = select_best(candidates, components, limit, limited)
        assert [ranked.index for ranked in best] == expected


def test_contenders_are_found_among_limited_and_other_candidates() -> None:
    chance = random.Random(2)
    bare = [PLAIN._replace(id=UUID(int=number), words=chance.random()) for number in range(1, 100)]
    flags = np.array([number < 60 for number in range(99)])
    limited = LimitedCandidates(flags=flags, most=2)
    candidates = Candidates.of(
        [memory._replace(words=memory.words + (memory.id.int <= 60)) for memory in bare]
    )
    inputs = ScoreInputs(candidates=candidates, reading=EMPTY_QUERY, background=BACKGROUND)
    lasting = lasting_components(inputs)
    places = contenders(candidates, lasting, weights=DEFAULT_WEIGHTS, limit=8, limited=limited)
    components = all_components(lasting, candidates, now=NOW, weights=DEFAULT_WEIGHTS)
    best = {ranked.index for ranked in select_best(candidates, components, 8, limited)}
    assert best <= set(places.tolist())
    assert len(places) < 99


def test_heartbeats_raise_no_scores_of_each_other() -> None:
    turns = ({"words": 0.8, "position": 1}, {"words": 0.1, "position": 2})
    talk = ranking_of(candidates_of(*({**turn, "session": "talk"} for turn in turns)))
    heartbeats = ranking_of(candidates_of(*({**turn, "session": "heartbeats"} for turn in turns)))
    alone = ranking_of(candidates_of(*turns))
    assert {number: ranked.components for number, ranked in heartbeats.items()} == {
        number: ranked.components for number, ranked in alone.items()
    }
    assert talk[2].components.session > heartbeats[2].components.session
    assert talk[2].components.neighbours > heartbeats[2].components.neighbours == 0
