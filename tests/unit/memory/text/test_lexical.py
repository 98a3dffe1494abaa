"""Sparse vectors of texts, whose inner product with a query is BM25 from 0 to 1."""

from __future__ import annotations

import math
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.duplicates import says_the_same
from arbor.memory.text.lexical import (
    LEXICAL_DIMENSIONS,
    MAX_TERMS,
    SATURATION,
    counted_indices,
    document_vector,
    named_speakers,
    query_terms,
    query_vector,
    speaker_index,
    speaker_words,
    term_index,
    term_of,
    words_of,
)


def score(query: str, document: dict[int, float], memories: list[dict[int, float]]) -> float:
    df = Counter(index for memory in memories for index in memory)
    vector = query_vector(query_terms(query), df, len(memories))
    return sum(weight * document.get(index, 0.0) for index, weight in vector.items())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't touch O’Brien's kettle!", ["don't", "touch", "o'brien", "kettle"]),
        ("Café STRASSE straße", ["café", "strasse", "strasse"]),
        ("3,000.50 and 1,2023 and v1.2.3", ["3000.50", "and", "1", "2023", "and", "v1", "2.3"]),
        ("111,222,3333 and 44,555,666", ["111", "222", "3333", "and", "44555666"]),
        ("123,5,112 and 1234,567,890", ["123", "5112", "and", "1234", "567890"]),
        ("GPT-4 snake_case a@b.org", ["gpt", "4", "snake", "case", "a", "b", "org"]),
        ("日本語 テ GPTで", ["日本", "本語", "テ", "gpt", "で"]),
        ("ﬁne", ["fine"]),
        ("... — !", []),
    ],
)
def test_text_is_cut_into_words_of_any_script(text: str, words: list[str]) -> None:
    assert list(words_of(text)) == words


@pytest.mark.bar
def test_a_long_list_of_numbers_costs_little() -> None:
    text = "111," * 12_000
    started = time.perf_counter()
    assert document_vector(text)
    assert says_the_same(text, text)
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize(
    ("form", "same"),
    [
        ("camping", "camped"),
        ("bought", "buying"),
        ("children", "child"),
        ("stories", "story"),
        ("went", "goes"),
    ],
)
def test_inflections_are_the_same_term(form: str, same: str) -> None:
    assert term_of(form) == term_of(same)


def test_a_term_has_the_same_index_in_every_release() -> None:
    assert term_index("kettl") == 388636232
    assert term_index("kettl") != term_index("speaker:kettl")


def test_threads_stem_alike() -> None:
    words = [
        f"{stem}{ending}" for stem in ("paint", "walk", "jump", "bak") for ending in ("ing", "ed", "s")
    ] * 20
    term_of.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        terms = list(pool.map(term_of, words))
    assert set(terms) == {"paint", "walk", "jump", "bake", "bak"}
    assert terms == [term_of.__wrapped__(word) for word in words]


def test_stop_words_are_not_part_of_a_vector() -> None:
    assert document_vector("It is what it is, and you know it's not just that.").keys() == {
        term_index(term_of("know"))
    }


def test_a_repeated_word_weighs_more_up_to_a_bound() -> None:
    once, twice, often = (
        document_vector(" ".join(["kettle"] * n + ["tea"] * (12 - n)))[term_index(term_of("kettle"))]
        for n in (1, 2, 12)
    )
    assert once == pytest.approx(1.0)
    assert once < twice < often < SATURATION + 1


def test_a_word_weighs_less_in_a_longer_text() -> None:
    short = document_vector("blue kettle")
    long = document_vector("blue kettle " + " ".join(f"word{n}" for n in range(50)))
    kettle = term_index(term_of("kettle"))
    assert long[kettle] < short[kettle]


def test_a_long_text_retains_its_heaviest_terms_and_speaker() -> None:
    text = " ".join(f"word{n}" for n in range(5_000)) + " kettle kettle"
    vector = document_vector(text, speaker="Melanie")
    assert len(vector) == MAX_TERMS
    assert {term_index(term_of("kettle")), term_index("word0"), speaker_index("melanie")} <= vector.keys()
    assert term_index("word4999") not in vector


def test_rare_words_of_the_query_count_most() -> None:
    memories = [document_vector(text) for text in ("blue kettle", "blue sky", "blue sea", "red kite")]
    assert score("blue kettle", memories[0], memories) > score("blue kettle", memories[1], memories) > 0
    assert score("blue kettle", memories[3], memories) == 0


def test_the_name_of_the_speaker_counts_as_a_word() -> None:
    own = document_vector("I painted a lake.", speaker="Melanie")
    other = document_vector("I painted a lake.", speaker="Caroline")
    memories = [own, other, document_vector("Hello!", speaker="Caroline")]
    assert score("What did Melanie paint?", own, memories) > score("What did Melanie paint?", other, memories)


def test_a_name_weighs_less_the_more_its_bearer_speaks() -> None:
    terms = query_terms("Caroline kettle")
    name, kettle = speaker_index("caroline"), term_index(term_of("kettle"))
    always = query_vector(terms, {name: 100, kettle: 2}, 100)
    seldom = query_vector(terms, {name: 2, kettle: 2}, 100)
    assert always[name] < 0.01 * always[kettle]
    assert seldom[name] == pytest.approx(seldom[kettle])


def test_only_speakers_of_memories_are_names_in_a_query() -> None:
    terms = query_terms("Did Melanie tell Grace about Paris?")
    df = {speaker_index("melanie"): 3, term_index("pari"): 2, speaker_index("paris"): 0}
    assert named_speakers(terms, df) == {"melanie"}


def test_a_capitalized_stop_word_is_looked_up_as_a_name() -> None:
    assert speaker_index("will") in counted_indices(query_terms("What does Will's dog eat?"))
    assert speaker_index("will") not in counted_indices(query_terms("what will the dog eat?"))
    assert 0 not in counted_indices(query_terms("What does Will's dog eat?"))


def test_the_role_of_a_machine_is_no_name() -> None:
    assert speaker_words("tool_result") == frozenset()
    assert speaker_words("Dr. Evan Smith") == {"dr", "evan", "smith"}
    assert speaker_words("Will") == {"will"}


def test_a_query_about_nothing_known_has_an_empty_vector() -> None:
    assert query_vector(query_terms("anything at all"), {}, 0) == {}
    assert query_vector((), {}, 10) == {}


TEXTS = st.text(max_size=300) | st.lists(
    st.sampled_from(
        ["Caroline", "blue", "kettles", "painted", "the", "lake", "in", "2023", "—", "what?", "日本語"]
    ),
    max_size=40,
).map(" ".join)


@given(text=TEXTS, speaker=TEXTS)
def test_stored_vectors_fit_the_limits_of_the_database(text: str, speaker: str) -> None:
    vector = document_vector(text, speaker=speaker)
    assert len(vector) <= MAX_TERMS
    assert all(1 <= index <= LEXICAL_DIMENSIONS for index in vector)
    assert all(0 < weight <= SATURATION + 1 for weight in vector.values())


@given(
    texts=st.lists(st.tuples(TEXTS, st.sampled_from(["", "Caroline", "Blue Lake"])), min_size=1, max_size=8),
    query=TEXTS,
    drift=st.integers(-3, 3),
)
def test_scores_stay_within_0_and_1_with_drifted_statistics(
    texts: list[tuple[str, str]], query: str, drift: int
) -> None:
    memories = [document_vector(text, speaker=speaker) for text, speaker in texts]
    df = {index: n + drift for index, n in Counter(i for memory in memories for i in memory).items()}
    vector = query_vector(query_terms(query), df, len(memories) - drift)
    for memory in memories:
        product = sum(weight * memory.get(index, 0.0) for index, weight in vector.items())
        assert not math.isnan(product)
        assert 0 <= product <= 1 + 1e-9
