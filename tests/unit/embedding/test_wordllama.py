"""The built-in embedder: no download, no side effects."""

from __future__ import annotations

import importlib.util
import logging
import socket
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from arbor.adapters import wordllama
from arbor.adapters.wordllama import WordLlamaEmbedder
from arbor.errors import EmbeddingFailed

EMBEDDER = WordLlamaEmbedder()
#: Embedded by wordllama 0.4.0 itself; their vectors are in `wordllama_vectors.npy`. Stored memories have such vectors.
TEXTS = [
    "I walked my dog.",
    "The tax form is due on Friday, 14 March 2026.",
    "日本語 🌳 naïve café",
    "x",
    "  def f(a):\n\treturn a * 2\n",
    "What did we agree about the boat?",
    "word " * 300,
]


def test_vectors_are_those_that_wordllama_computes() -> None:
    stored = np.load(Path(__file__).with_name("wordllama_vectors.npy"))
    np.testing.assert_allclose(EMBEDDER.embed(TEXTS), stored, atol=1e-6)


def test_no_code_of_the_package_runs() -> None:
    EMBEDDER.embed(["loaded"])
    assert "wordllama" not in sys.modules


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    wordllama._load.cache_clear()
    with pytest.raises(EmbeddingFailed, match="wordllama has no usable weights: it is not installed"):
        EMBEDDER.embed(["text"])


def test_texts_of_one_meaning_are_nearer_than_others() -> None:
    dog, puppy, tax = EMBEDDER.embed(["I walked my dog.", "She took the puppy out.", "The tax form is due."])
    assert dog @ puppy > dog @ tax + 0.1


def test_rows_have_the_promised_shape_and_length() -> None:
    rows = EMBEDDER.embed(["one", "two words", "日本語 🌳"])
    assert rows.shape == (3, EMBEDDER.dimension)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0)
    assert EMBEDDER.embed([]).shape == (0, EMBEDDER.dimension)


def test_a_text_has_the_same_vector_alone_and_in_company() -> None:
    alone = EMBEDDER.embed(["The kettle is blue."])[0]
    company = EMBEDDER.embed(["x " * 40_000, "short", "The kettle is blue.", "y " * 40_000])[2]
    assert alone == pytest.approx(company, abs=1e-6)


def test_one_long_text_among_short_ones_does_not_fill_the_memory() -> None:
    texts = ["a b " * 16_000, *["short"] * 63]
    EMBEDDER.embed(["loaded"])
    tracemalloc.start()
    EMBEDDER.embed(texts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 150_000_000


def test_the_model_loads_once_for_all_threads_without_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    wordllama._load.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda n: EMBEDDER.embed([f"kettle {n}", "tea"])[1], range(32)))
    assert wordllama._load.cache_info().misses == 1
    assert all((row == rows[0]).all() for row in rows)
    assert (root.handlers, root.level) == before


@pytest.mark.parametrize(
    ("text", "message"), [("", "nothing to embed"), ("half \ud83d", "not valid Unicode")]
)
def test_a_text_that_cannot_be_embedded_is_refused(text: str, message: str) -> None:
    with pytest.raises(EmbeddingFailed, match=message):
        EMBEDDER.embed(["fine", text])


def test_a_text_that_cannot_be_embedded_is_named_by_its_number() -> None:
    with pytest.raises(EmbeddingFailed, match="text 3 has nothing to embed"):
        EMBEDDER.embed(["x " * 40_000, "fine", ""])


@pytest.mark.parametrize("dimension", [64, 128])
def test_shorter_vectors_are_the_beginning_of_longer_ones(dimension: int) -> None:
    texts = ["I walked my dog.", "She took the puppy out.", "The tax form is due."]
    short = WordLlamaEmbedder(dimension)
    rows = short.embed(texts)
    cut = EMBEDDER.embed(texts)[:, :dimension]
    np.testing.assert_allclose(rows, cut / np.linalg.norm(cut, axis=1, keepdims=True), atol=1e-6)
    assert rows[0] @ rows[1] > rows[0] @ rows[2]
    assert short.model != EMBEDDER.model
    assert EMBEDDER.model == "wordllama/l2_supercat_256"
