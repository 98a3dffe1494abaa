"""The search of a mind image for candidates of the ranker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from arbor.memory.mind.image import MindImage
from arbor.memory.mind.row_filter import can_answer
from arbor.memory.mind.search import Associations, MindSearch, choose_by_fit, complete_candidates
from arbor.memory.recall.candidates import Candidates, Links, id_halves, ids_of_halves
from arbor.memory.recall.fusion import MAX_ASSOCIATED_MEMORIES, MAX_BESIDE, SEEDS
from arbor.memory.recall.recall_request import ReadQuery, RecallFilter, RecallRequest
from arbor.memory.recall.timespan import mentioned_span
from arbor.memory.recall.weights import DEFAULT_WEIGHTS
from arbor.memory.values import MemoryType
from tests.unit.memory.mind.builders import DIMENSION, NOW, rows, vector

NO_ASSOCIATIONS = Associations(source=id_halves([]), target=id_halves([]), share=np.empty(0))


def search(*memories: dict[str, Any], near: int | None = None, text: str = "?", **asked: Any) -> MindSearch:
    """Return a search for term 1 in these memories, near the vector of that seed."""
    image = MindImage.of(rows(*memories), dimension=DIMENSION)
    request = RecallRequest(agent_id=UUID(int=1), text=text, **{"limit": 3, "now": NOW, **asked})
    query = None if near is None else np.array(vector(near), dtype=np.float16).astype(np.float32)
    span = mentioned_span(text, now=NOW)
    return MindSearch(
        image=image,
        request=request,
        reading=ReadQuery(lexical={1: 0.5}, speakers=frozenset(), span=span),
        lexical={1: 0.5},
        vector=query,
        documents=len(memories),
        weights=DEFAULT_WEIGHTS,
    )


def candidate_ids(mind_search: MindSearch, associations: Associations = NO_ASSOCIATIONS) -> list[int]:
    _, candidates, _ = complete_search(mind_search, associations)
    return [memory_id.int for memory_id in ids_of_halves(candidates.ids)]


def complete_search(
    mind_search: MindSearch, associations: Associations = NO_ASSOCIATIONS
) -> tuple[Any, Candidates, Links]:
    return complete_candidates(mind_search, choose_by_fit(mind_search), associations)


def matching(number: int, **parts: Any) -> dict[str, Any]:
    return {"id": number, "words": {1: 1.0}, **parts}


def test_the_nearest_and_the_best_by_words_are_chosen() -> None:
    far = [{"id": number, "vector": vector(100 + number)} for number in range(1, 2 * SEEDS)]
    mind_search = search(
        *far, {"id": 500, "vector": vector(7)}, matching(600), matching(601, words={1: 2.0}), near=7
    )
    choice = choose_by_fit(mind_search)
    chosen = [
        memory_id.int for memory_id in ids_of_halves(mind_search.image.ids_of(np.flatnonzero(choice.chosen)))
    ]
    assert len(chosen) == SEEDS + 2
    assert {500, 600, 601} <= set(chosen)
    sources = choice.sources[np.argsort(-choice.fits)]
    assert [memory_id.int for memory_id in ids_of_halves(mind_search.image.ids_of(sources))][:2] == [601, 600]
    assert choice.background.deviation > 0


def test_equal_candidates_are_chosen_in_the_order_of_their_ids() -> None:
    mind_search = search(*(matching(number) for number in range(2 * SEEDS, 0, -1)))
    assert sorted(candidate_ids(mind_search)) == list(range(1, SEEDS + 1))


def test_turns_beside_a_chosen_one_are_candidates_too() -> None:
    talk = [{"id": 10 + place, "session": "talk", "position": place} for place in range(9)]
    trip = [{"id": 30 + place, "session": "walk", "position": place} for place in range(9)]
    talk[4]["words"] = {1: 1.0}
    assert candidate_ids(search(*talk, *trip)) == [12, 13, 14, 15, 16]


def test_a_crowded_place_adds_a_limited_number_of_neighbors() -> None:
    numbers = range(3 * MAX_BESIDE, 0, -1)
    crowd = [{"id": 100 + number, "session": "talk", "position": 1} for number in numbers]
    found = sorted(candidate_ids(search(matching(1, session="talk", position=0), *crowd)))
    # The turn itself is among its neighbors.
    assert found == [1, *range(101, 100 + MAX_BESIDE)]


@pytest.mark.parametrize(
    ("only", "left"),
    [
        (RecallFilter(without_session="talk"), [2, 3]),
        (RecallFilter(without_session="nowhere"), [1, 2, 3]),
        (RecallFilter(without_session="talk", without_since=NOW - timedelta(days=3)), [2, 3]),
        (RecallFilter(without_session="talk", without_since=NOW + timedelta(days=3)), [1, 2, 3]),
        (RecallFilter(session="talk"), [1]),
        (RecallFilter(session="nowhere"), []),
        (RecallFilter(types=frozenset({MemoryType.SEMANTIC})), [2]),
        (RecallFilter(since=NOW - timedelta(days=3)), [1, 3]),
        (RecallFilter(until=NOW - timedelta(days=3)), [2]),
        (RecallFilter(min_importance=0.8), [3]),
        (RecallFilter(min_trust=0.5), [1, 3]),
        (RecallFilter(episode=UUID(int=77)), [3]),
        (RecallFilter(episode=UUID(int=78)), []),
    ],
)
def test_a_filter_admits_only_matching_memories(only: RecallFilter, left: list[int]) -> None:
    memories = [
        matching(1, session="talk"),
        matching(2, type="semantic", occurred=NOW - timedelta(days=5), trust=0.4),
        matching(3, importance=0.9, episode=77),
    ]
    assert candidate_ids(search(*memories, only=only)) == left
    assert can_answer(only)
    assert not can_answer(RecallFilter(concept="tree"))


def test_expired_memories_are_not_found() -> None:
    memories = [matching(1, expires=NOW), matching(2, expires=NOW + timedelta(seconds=1)), matching(3)]
    mind_search = search(*memories)
    assert candidate_ids(mind_search) == [2, 3]
    assert candidate_ids(search(*memories, now=NOW + timedelta(seconds=1))) == [3]


def test_the_latest_memories_fill_the_limit() -> None:
    memories = [{"id": number, "occurred": NOW - timedelta(days=number)} for number in range(1, 9)]
    assert candidate_ids(search(*memories)) == [1, 2, 3]
    old = matching(20, occurred=NOW - timedelta(days=30))
    assert candidate_ids(search(*memories, old, limit=2)) == [1, 2, 20]


def test_a_named_time_adds_memories_of_that_time() -> None:
    old = [{"id": 900, "occurred": NOW - timedelta(days=380)}]
    assert 900 in candidate_ids(search(*old, *(matching(n) for n in range(1, 6)), text="in May 2023"))
    assert 900 not in candidate_ids(search(*old, *(matching(n) for n in range(1, 6)), text="in May 2022"))


def test_associations_add_associated_memories() -> None:
    others = [{"id": number} for number in range(100, 150)]
    targets = [*range(100, 140), 4_000]
    associations = Associations(
        source=id_halves([UUID(int=1)] * len(targets)),
        target=id_halves([UUID(int=number) for number in targets]),
        share=np.linspace(0.9, 0.1, len(targets)),
    )
    _, candidates, links = complete_search(search(matching(1), *others, limit=1), associations)
    ids = [memory_id.int for memory_id in ids_of_halves(candidates.ids)]
    assert ids == [1, *range(100, 100 + MAX_ASSOCIATED_MEMORIES)]
    assert [ids[place] for place in links.source.tolist()] == [1] * MAX_ASSOCIATED_MEMORIES
    assert sorted(ids[place] for place in links.target.tolist()) == ids[1:]


def test_associations_of_another_agent_are_ignored() -> None:
    associations = Associations(
        source=id_halves([UUID(int=50)]), target=id_halves([UUID(int=2)]), share=np.array([1.0])
    )
    _, candidates, links = complete_search(search(matching(1), {"id": 2}, limit=1), associations)
    assert [memory_id.int for memory_id in ids_of_halves(candidates.ids)] == [1]
    assert not len(links.share)


def test_an_empty_mind_yields_no_results() -> None:
    assert candidate_ids(search(near=3)) == []
