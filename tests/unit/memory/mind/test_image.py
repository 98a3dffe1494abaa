"""Mind images: updates, rows and visible transactions."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from arbor.memory.mind import image as image_module
from arbor.memory.mind.image import MindImage
from arbor.memory.mind.rows import NO_ROWS, Snapshot
from arbor.memory.recall.candidates import id_halves
from tests.unit.memory.mind.builders import DIMENSION, rows, vector

QUERY = np.array(vector(1), dtype=np.float16).astype(np.float32)


def values_by_id(image: MindImage) -> dict[int, tuple[Any, ...]]:
    """Return the values of each active memory of an image, by its id as a number; check that similarities are within their error."""
    words = image.word_scores({1: 0.5, 2: 0.25, 7: 1.0})
    all_rows = np.arange(len(image))
    exact = image.exact_similarities(all_rows, QUERY)
    about = image.similarities(QUERY)
    description = {}
    for row in np.flatnonzero(image.active).tolist():
        record = image.rows[row]
        number = (int(record["high"]) << 64) + int(record["low"])
        names = [image.names.texts_of([int(record[name])])[0] for name in ("session", "role", "type")]
        nearness = None if np.isnan(exact[row]) else float(exact[row])
        assert nearness is None or abs(nearness - about[row]) <= image.similarity_error(QUERY)
        description[number] = (
            *names,
            int(record["position"]),
            float(record["importance"]),
            words[row],
            nearness,
        )
    return description


def random_memory(chance: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "session": chance.choice(["", "talk", "walk"]),
        "role": chance.choice(["Ada", "Grace"]),
        "position": chance.randint(0, 9),
        "importance": chance.random(),
        "vector": vector(number) if chance.random() < 0.8 else None,
        "words": {term: 1 + chance.random() for term in chance.sample(range(1, 9), 3)},
    }


@pytest.mark.parametrize("min_merged", [1, 5, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_changes_in_any_order_end_in_the_same_image(
    seed: int, min_merged: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_module, "_MIN_MERGED", min_merged)
    chance = random.Random(seed)
    memories = {number: random_memory(chance, number) for number in range(1, 20)}
    image = MindImage.of(rows(*memories.values()), dimension=DIMENSION)
    for _ in range(30):
        changed: dict[int, dict[str, Any]] = {}
        for number in chance.sample(range(1, 40), chance.randint(0, 4)):
            changed[number] = random_memory(chance, number) | {"active": chance.random() < 0.7}
        before = values_by_id(image)
        after = image.with_changes(rows(*changed.values()) if changed else NO_ROWS)
        # An image is a value.
        assert values_by_id(image) == before
        memories = {
            number: memory for number, memory in {**memories, **changed}.items() if memory.get("active", True)
        }
        image = after
        anew = MindImage.of(rows(*memories.values()), dimension=DIMENSION)
        assert values_by_id(image) == values_by_id(anew)
        assert (np.diff(image.turns.keys) >= 0).all()
        assert image.nbytes > 0


def test_inactive_rows_are_removed_by_a_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_module, "_MIN_MERGED", 2)
    chance = random.Random(1)
    memories = [random_memory(chance, number) for number in range(1, 9)]
    image = MindImage.of(rows(*memories), dimension=DIMENSION)
    for number in (1, 2, 3):
        image = image.with_changes(rows({"id": number, "active": False}))
    assert len(image) == 5
    assert image.all_active


def test_ids_with_an_equal_half_are_distinguished() -> None:
    same_low = [5, (1 << 64) + 5, (2 << 64) + 5]
    image = MindImage.of(rows(*({"id": number} for number in same_low)), dimension=DIMENSION)
    image = image.with_changes(rows({"id": same_low[1], "position": 3}))
    wanted = id_halves([UUID(int=number) for number in (*same_low, (3 << 64) + 5, 6)])
    indexes = image.by_id.rows_of(wanted, among=image.active)
    assert image.rows["position"][indexes[1]] == 3
    assert (indexes >= 0).tolist() == [True, True, True, False, False]


def test_an_image_of_an_empty_mind_is_empty() -> None:
    image = MindImage.of(NO_ROWS, dimension=DIMENSION)
    assert values_by_id(image) == {}
    grown = image.with_changes(rows({"id": 1, "vector": vector(1), "words": {1: 1.0}}))
    assert list(values_by_id(grown)) == [1]


def test_vectors_of_another_dimension_are_refused() -> None:
    with pytest.raises(ValueError, match="must have 16 dimensions, got 8"):
        MindImage.of(rows({"id": 1, "vector": vector(1, 8)}), dimension=DIMENSION)


@pytest.mark.parametrize("dimension", [8, 12, 16, 35])
def test_equal_vectors_are_equally_near_wherever_they_are(dimension: int) -> None:
    image = MindImage.of(
        rows(*({"id": number, "vector": vector(number % 3, dimension)} for number in range(1, 200))),
        dimension=dimension,
    )
    query = np.array(vector(9, dimension), dtype=np.float16).astype(np.float32)
    exact = image.exact_similarities(np.arange(199), query)
    assert len(set(exact.tolist())) == 3
    truth = image.vectors[0].astype(np.float64) @ query.astype(np.float64)
    np.testing.assert_allclose(exact, truth, atol=1e-6)


@pytest.mark.parametrize(
    ("revision", "visible"), [(0, True), (99, True), (100, False), (101, True), (104, False), (110, False)]
)
def test_running_and_later_transactions_are_invisible(revision: int, visible: bool) -> None:
    assert Snapshot.parse("100:110:100,104", own=None).includes(revision) is visible


def test_the_own_transaction_is_invisible() -> None:
    assert Snapshot.parse("100:110:", own=None).includes(105)
    assert not Snapshot.parse("100:110:", own=105).includes(105)


@pytest.mark.parametrize("own", [90, 110, 120])
def test_an_own_transaction_outside_the_bounds_is_invisible(own: int) -> None:
    snapshot = Snapshot.parse("100:110:104", own=own)
    assert not snapshot.includes(own)
    assert snapshot.includes(103)
    assert not snapshot.includes(104)
    # Changes are read from `since` on, so those of the own transaction are among them.
    assert snapshot.since <= own
