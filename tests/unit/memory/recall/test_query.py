"""Queries, each parsed once: text to embed, words, speaker and time."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.recall.recall_request import ReadQuery, meaning_text, read_query
from arbor.memory.text.lexical import speaker_index, term_index

NOW = datetime(2026, 11, 21, tzinfo=UTC)
FREQUENCIES = {speaker_index("caroline"): 9, speaker_index("melanie"): 9, term_index("paint"): 2}


def read(text: str) -> ReadQuery:
    return read_query(text, df=FREQUENCIES, documents=20, now=NOW)


def test_names_of_speakers_are_not_embedded() -> None:
    text = "What did Caroline paint  with Melanie's kids?"
    assert meaning_text(text, FREQUENCIES) == "What did paint with kids?"
    reading = read(text)
    assert reading.speakers == {"caroline", "melanie"}
    assert {term_index("paint"), speaker_index("caroline")} <= reading.lexical.keys()


def test_a_query_that_is_only_a_name_is_embedded_whole() -> None:
    assert meaning_text("Caroline?", FREQUENCIES) == "Caroline?"


def test_other_names_are_embedded() -> None:
    text = "What did Grace paint in June 2023?"
    assert meaning_text(text, FREQUENCIES) == text


def test_the_time_that_a_query_names_is_read() -> None:
    span = read("What did Melanie paint in June 2023?").span
    assert span is not None
    assert span.start == datetime(2023, 6, 1, tzinfo=UTC)
    assert read("What did Melanie paint?").span is None


@given(st.text())
def test_any_text_is_a_valid_query(text: str) -> None:
    assert meaning_text(text, FREQUENCIES) or not text
    assert read(text).speakers <= {"caroline", "melanie"}
