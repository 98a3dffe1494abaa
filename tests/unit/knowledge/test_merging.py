"""The merge of four sources: the score of seed 001, duplicates, and the settings that change it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from arbor.errors import ConfigurationInvalid
from arbor.knowledge.merging import (
    DEFAULT_WEIGHTS,
    MergeWeights,
    SearchSource,
    SourceResult,
    merge,
    min_similarity_of,
    parse_merge_weights,
    parse_min_similarity,
    recency_of,
    word_share,
)
from arbor.knowledge.search_terms import search_term

NOW = datetime(2026, 5, 1, tzinfo=UTC)
MONTH = timedelta(days=30)


def result(source: SearchSource, content: str = "", **parts: Any) -> SourceResult:
    fields = {"id": f"{source}-{content}", "at": NOW, "similarity": 0.8, **parts}
    return SourceResult(source=source, content=content or source.value, **fields)


@pytest.mark.parametrize(
    ("source", "parts", "score"),
    [
        # 0.5 · similarity + 0.2 · recency + 0.2 · importance + 0.1 · source priority
        (SearchSource.MEMORY, {"similarity": 0.9, "importance": 1.0}, 0.45 + 0.2 + 0.2 + 0.1),
        (SearchSource.AUDIT, {"similarity": 1.0, "at": NOW - MONTH}, 0.5 + 0.1 + 0.1 + 0.08),
        (SearchSource.WORKFLOW, {"similarity": 0.5, "at": NOW - 2 * MONTH}, 0.25 + 0.05 + 0.1 + 0.06),
        (SearchSource.KNOWLEDGE, {"similarity": 0.0, "importance": 0.0}, 0.2 + 0.05),
    ],
)
def test_the_score_is_that_of_the_formula(source: SearchSource, parts: Any, score: float) -> None:
    (merged,) = merge([result(source, **parts)], now=NOW)
    assert merged.score == pytest.approx(score)


def test_equal_results_are_ordered_by_the_priority_of_their_source() -> None:
    equal: dict[str, Any] = {"similarity": 0.8, "importance": 0.6, "at": NOW - MONTH}
    merged = merge([result(source, **equal) for source in reversed(SearchSource)], now=NOW)
    # 0.5 · 0.8 + 0.2 · 0.5 + 0.2 · 0.6 = 0.62, and a tenth of 1.0, 0.8, 0.6 and 0.5
    assert [(found.source, round(found.score, 6)) for found in merged] == [
        (SearchSource.MEMORY, 0.72),
        (SearchSource.AUDIT, 0.70),
        (SearchSource.WORKFLOW, 0.68),
        (SearchSource.KNOWLEDGE, 0.67),
    ]


def test_the_best_of_equal_texts_is_among_the_best_five() -> None:
    results = [result(source, "The quay is closed.") for source in SearchSource]
    results += [result(SearchSource.KNOWLEDGE, f"text {n}", similarity=n / 10) for n in range(7)]
    merged = merge(results, now=NOW)
    assert [found.source for found in merged] == [SearchSource.MEMORY] + 4 * [SearchSource.KNOWLEDGE]
    assert [found.content for found in merged[1:]] == ["text 6", "text 5", "text 4", "text 3"]


def test_texts_that_differ_in_white_space_are_equal() -> None:
    merged = merge([result(SearchSource.MEMORY, "a  b"), result(SearchSource.AUDIT, "a b")], now=NOW)
    assert [found.source for found in merged] == [SearchSource.MEMORY]


def test_recency_halves_and_the_future_is_now() -> None:
    assert recency_of(NOW - timedelta(days=60), now=NOW) == pytest.approx(0.25)
    assert recency_of(NOW - timedelta(days=7), now=NOW, half_life=timedelta(days=7)) == pytest.approx(0.5)
    assert recency_of(NOW + MONTH, now=NOW) == 1


def test_weights_are_settings() -> None:
    weights = parse_merge_weights("recency=0.7, similarity=0.1")
    assert weights == MergeWeights(similarity=0.1, recency=0.7)
    assert parse_merge_weights("") == DEFAULT_WEIGHTS
    old_but_near = result(SearchSource.KNOWLEDGE, "near", at=NOW - 10 * MONTH, similarity=1.0)
    fresh = result(SearchSource.KNOWLEDGE, "fresh", similarity=0.3)
    assert merge([old_but_near, fresh], now=NOW)[0].content == "near"
    assert merge([old_but_near, fresh], now=NOW, weights=weights)[0].content == "fresh"


@pytest.mark.parametrize("wrong", ["speed=1", "recency", "recency=much", "recency=1.5", "recency=nan"])
def test_wrong_weights_are_refused(wrong: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="ARBOR_SEARCH_WEIGHTS"):
        parse_merge_weights(wrong)


def test_the_least_similarity_is_the_embedders_unless_chosen() -> None:
    assert min_similarity_of("openai/text-embedding-3-small") == 0.7
    assert min_similarity_of("wordllama") < 0.3
    assert min_similarity_of("wordllama", chosen=parse_min_similarity("0.5")) == 0.5
    assert parse_min_similarity(" ") is None
    for wrong in ("high", "1.2", "nan"):
        with pytest.raises(ConfigurationInvalid, match="ARBOR_SEARCH_MIN_SIMILARITY"):
            parse_min_similarity(wrong)


@pytest.mark.parametrize(
    ("query", "text", "share"),
    [
        ("quay repairs", "The quay was repaired.", 1.0),
        ("quay repairs", "The quay is closed.", 0.5),
        ("quay repairs", "Nothing.", 0.0),
        ("which of them", "Which of them?", 1.0),
    ],
)
def test_without_vectors_similarity_is_the_share_of_words(query: str, text: str, share: float) -> None:
    assert word_share(query, text) == share


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("quay repairs", "quay repairs"),
        ("quay  repairs?", "quay repairs"),
        ("user:ada", "user:ada"),
        ("error: timeout.", "error: timeout"),
        ("arbor://fs/read", "arbor://fs/read"),
        ("What did we decide about the invoice of Meyer?", "Meyer"),
        ("What happened to the order ZX-4711 in spring?", "ZX-4711"),
        ('who wrote "closed until May" on the wall', "closed until May"),
        ("how is it there", ""),
        ("what do we know about the breakwater then", "breakwater"),
        ('The "  " of invoice 4711', "4711"),
    ],
)
def test_the_term_is_the_most_telling_part(text: str, term: str) -> None:
    assert search_term(text) == term
