"""Summaries by rule: bounded, made of original sentences in their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.text.summary import SUMMARY_LENGTH, SpokenText, extractive_summary

_WORDS = st.sampled_from(
    ["keel", "oak", "Lisbon", "sails", "the", "again", "compass", "gull", "tide", "rope"]
)
_SENTENCES = st.lists(_WORDS, min_size=1, max_size=12).map(lambda words: f"{' '.join(words)}.")
_LINES = st.lists(
    st.builds(
        SpokenText,
        speaker=st.sampled_from(["", "Ada", "Ben"]),
        text=st.lists(_SENTENCES, min_size=1, max_size=4).map(" ".join),
    ),
    max_size=60,
)


def _lines(*texts: str) -> list[SpokenText]:
    return [SpokenText(text=text) for text in texts]


def test_a_short_episode_is_quoted_completely_with_its_speakers() -> None:
    lines = [
        SpokenText(speaker="Ada", text="The keel is laid. It is oak."),
        SpokenText(speaker="Ada", text="From Galicia."),
        SpokenText(speaker="Ben", text="Good!"),
        SpokenText(text="I was glad."),
    ]
    summary = "Ada: The keel is laid. It is oak. From Galicia. Ben: Good! I was glad."
    assert extractive_summary(lines) == summary


def test_a_sentence_keeps_its_closing_marks() -> None:
    text = 'He asked (why?) and said "Stop." Then he left [sic.] at once.'
    assert extractive_summary(_lines(text)) == text


def test_shared_subjects_are_summarized_before_isolated_ones() -> None:
    lines = _lines(
        "The Heron is a ship of oak.",
        "Somebody sneezed in the corridor.",
        "The ship needs a mast of oak before the Heron can sail.",
        "Porridge was served.",
        "The Heron sails on Friday.",
    )
    summary = extractive_summary(lines, longest=84)
    assert "Heron" in summary
    assert "sneezed" not in summary
    assert "Porridge" not in summary


def test_repeated_statements_count_less() -> None:
    lines = _lines(
        "The mast is oak.", "The mast is oak!", "The mast is oak?", "The mast needs a rope from Lisbon."
    )
    assert extractive_summary(lines, longest=52).endswith("The mast needs a rope from Lisbon.")


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("", 600, ""),
        (" \n ", 600, ""),
        ("word " * 40, 20, "word word word word…"),
        ("x" * 50, 10, "xxxxxxxxx…"),
        ("Erste Zeile\nzweite Zeile", 600, "Erste Zeile zweite Zeile"),
        ("今日は海へ行った。とても寒かった。", 600, "今日は海へ行った。 とても寒かった。"),
    ],
)
def test_any_text_has_a_summary(text: str, longest: int, expected: str) -> None:
    assert extractive_summary(_lines(text), longest=longest) == expected


def test_an_episode_of_many_sentences_has_a_short_summary() -> None:
    lines = _lines(*(f"Entry {number} of the log tells of wind and of waves." for number in range(5_000)))
    summary = extractive_summary(lines)
    assert 0 < len(summary) <= SUMMARY_LENGTH


@given(lines=_LINES, longest=st.integers(20, 300))
def test_a_summary_is_bounded_and_quotes_only_its_lines(lines: list[SpokenText], longest: int) -> None:
    summary = extractive_summary(lines, longest=longest)
    assert len(summary) <= longest
    assert bool(summary) == any(line.text.strip() for line in lines)
    text = " ".join(line.text for line in lines)
    bare = summary.replace("Ada: ", "").replace("Ben: ", "").removesuffix("…")
    position = 0
    for sentence in filter(None, bare.split(". ")):
        start = text.find(sentence.rstrip("."), position)
        assert start >= 0, f"{sentence!r} was not said there"
        position = start
    assert summary == extractive_summary(lines, longest=longest)
