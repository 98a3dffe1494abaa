"""Checks of the vectors of an embedder, and the fake embedder."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.embedding.ports import Embedder, HashEmbedder, unit_rows
from arbor.errors import EmbeddingFailed


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 2.0, 3.0]], "must give 2 vectors, got an array of shape"),
        ([1.0, 2.0], "must give 2 vectors, got an array of shape"),
        ([[1.0, 2.0], [3.0, 4.0]], "gives vectors of 2 numbers; this installation stores 3"),
        ([[1.0, 2.0, 3.0], [1.0, 2.0]], "vectors of numbers, all of one length"),
        ([[1.0, 2.0, 3.0], [1.0, "x", 2.0]], "vectors of numbers"),
        ([[1.0, 2.0, 3.0], None], "vectors of numbers"),
        ([[1.0, 2.0, 3.0], [math.nan, 1.0, 1.0]], "text 2 of 2 that is zero or not finite"),
        ([[math.inf, 2.0, 3.0], [1.0, 1.0, 1.0]], "text 1 of 2 that is zero or not finite"),
        ([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], "text 2 of 2 that is zero"),
        ([[3e38, 3e38, 3e38], [1.0, 1.0, 1.0]], "text 1 of 2"),
    ],
)
def test_vectors_that_cannot_be_used_are_refused_with_the_reason(vectors: Any, message: str) -> None:
    with pytest.raises(EmbeddingFailed, match=message):
        unit_rows(vectors, count=2, dimension=3, model="some/model")


def test_vectors_are_made_of_length_one() -> None:
    rows = unit_rows([[3.0, 4.0]], count=1, dimension=2, model="some/model")
    assert rows.dtype == np.float32
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]


def test_an_empty_list_of_texts_gives_no_vectors() -> None:
    assert HashEmbedder(8).embed([]).shape == (0, 8)


def test_the_fake_embeds_texts_with_shared_words_near_each_other() -> None:
    embedder: Embedder = HashEmbedder()
    kettle, blue_kettle, kite = embedder.embed(["the kettle", "the blue kettle", "a red kite"])
    assert kettle @ blue_kettle > 0.6
    assert abs(kettle @ kite) < 0.3


def test_the_fake_gives_the_same_vectors_in_every_process() -> None:
    assert HashEmbedder(4).embed(["kettle"])[0].tolist() == pytest.approx(
        [0.0380, 0.1680, 0.7273, -0.6644], abs=1e-4
    )


@given(st.lists(st.text(), max_size=5))
def test_the_fake_embeds_any_text(texts: list[str]) -> None:
    rows = HashEmbedder(16).embed(texts)
    assert rows.shape == (len(texts), 16)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0)
