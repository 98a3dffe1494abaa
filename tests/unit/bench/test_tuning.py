"""Rankings of the same candidates with one weight changed at a time."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import numpy as np

from apps.memories.services.recall.scan import Query, ScanResult
from arbor.memory.recall.candidates import Candidate, Candidates, Links
from arbor.memory.recall.fusion import Background
from arbor.memory.recall.recall_request import ReadQuery, RecallRequest
from arbor.memory.recall.weights import DEFAULT_WEIGHTS, WEIGHT_NAMES
from bench.support.figures import table
from bench.tuning import JudgedQuestion, tune, variants

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def judged_question(*, words: float, association: float) -> JudgedQuestion:
    """Return a question whose answer, the second candidate, has these scores for words and association with the third."""
    fits = [0.5, words, 0.6]
    candidates = Candidates.of(
        [
            Candidate(
                id=UUID(int=place + 1),
                words=fit,
                similarity=None,
                session="",
                position=0,
                role="",
                asks=False,
                occurred_at=NOW,
                last_access_at=None,
                importance=0.5,
                decay_rate=0.01,
                trust=1.0,
            )
            for place, fit in enumerate(fits)
        ]
    )
    query = Query(
        request=RecallRequest(agent_id=UUID(int=9), text="?", limit=2, now=NOW),
        reading=ReadQuery(lexical={}, speakers=frozenset(), span=None),
        memory_count=3,
    )
    scan = ScanResult(
        candidates=candidates,
        links=Links.of([(2, 1, association)]),
        background=Background(mean=0.0, deviation=0.0),
        compared=True,
        session=[""] * 3,
        type=["episodic"] * 3,
    )
    return JudgedQuestion(query=query, found=scan, hits=np.array([False, True, False]), evidence=1)


def test_each_weight_is_removed_halved_and_doubled_alone() -> None:
    for weight, _, changed in variants(DEFAULT_WEIGHTS):
        different = {
            name for name in WEIGHT_NAMES if getattr(changed, name) != getattr(DEFAULT_WEIGHTS, name)
        }
        assert different == {weight}
    assert len(list(variants(DEFAULT_WEIGHTS))) == 3 * len(WEIGHT_NAMES)


def test_a_row_compares_recall_with_and_without_the_change() -> None:
    # Without its association, the answer to the first question is third of three.
    rows = tune(
        [judged_question(words=0.4, association=1.0), judged_question(words=0.9, association=0.0)],
        depths=(1, 2),
        weights=DEFAULT_WEIGHTS,
    )
    by_name = {row["weight"]: row for row in rows}
    assert by_name["as they are"]["recall_at_2"] == 1.0
    removed = by_name["association removed"]
    assert (removed["value"], removed["recall_at_2"], removed["change_at_2"]) == (0.0, 0.5, -0.5)
    assert removed["between_2"] == "-1.000 to +0.000"
    assert by_name["mood doubled"]["change_at_1"] == 0.0
    assert table(rows).splitlines()[0].startswith("weight")
