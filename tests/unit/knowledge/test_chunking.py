"""Passages: within sections, at the ends of blocks or sentences, with an overlap, and whole."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import ConfigurationInvalid
from arbor.knowledge import chunking
from arbor.knowledge.blocks import Block, BlockKind, ParsedDocument, place_of, with_headings
from arbor.knowledge.chunking import HEADING_LENGTH, PassageDraft, PassageSize, split_document
from arbor.models.token_estimates import estimate_tokens

SMALL = PassageSize(target=50, overlap=10)


def heading(text: str, level: int = 1) -> Block:
    return Block(kind=BlockKind.HEADING, text=text, level=level)


def prose(text: str, page: int | None = None) -> Block:
    return Block(kind=BlockKind.PROSE, text=text, page=page)


def split(*blocks: Block, size: PassageSize = SMALL) -> list[PassageDraft]:
    return split_document(ParsedDocument(blocks=blocks), size)


def sentences(number: int, word: str = "word") -> str:
    return " ".join(f"Sentence {index} has one {word}." for index in range(number))


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("The topsoil is dry.", "oil\nThe topsoil is dry."),
        ("oil\n\nIt is dry.", "oil\n\nIt is dry."),
        ("C++ needs oil, and so on.", "C++ needs oil, and so on."),
    ],
)
def test_a_heading_within_a_word_is_not_in_the_text(text: str, context: str) -> None:
    assert with_headings(text, ["oil"]) == context


def test_sections_are_passages_with_their_headings() -> None:
    passages = split(
        heading("Handbook"),
        prose(sentences(6, "start")),
        heading("Leave", 2),
        prose(sentences(6, "leave")),
        heading("Sick days", 3),
        prose(sentences(6, "sick")),
        heading("Travel", 2),
        prose(sentences(6, "train")),
    )
    assert [passage.headings for passage in passages] == [
        ("Handbook",),
        ("Handbook", "Leave"),
        ("Handbook", "Leave", "Sick days"),
        ("Handbook", "Travel"),
    ]
    assert all(passage.text.startswith(passage.headings[-1]) for passage in passages)
    assert passages[2].context.startswith("Handbook\nLeave\nSick days\n")


@pytest.mark.parametrize("text", ["word " * 100_000, "x" * 500_000, "漢" * 500_000])
def test_the_work_on_a_long_paragraph_is_linear(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0

    def count(part: str) -> int:
        nonlocal counted
        counted += len(part)
        return estimate_tokens(part)

    monkeypatch.setattr(chunking, "estimate_tokens", count)
    passages = split(prose(text), size=PassageSize())
    assert len(passages) > 300
    assert counted < 10 * len(text)


def test_passages_repeat_the_beginning_of_a_long_heading() -> None:
    passages = split(heading("wide " * 100_000), prose(sentences(40)))
    assert len(passages) > 3
    assert {len(title) for passage in passages for title in passage.headings} == {HEADING_LENGTH}


def test_short_sections_join_the_next() -> None:
    (passage,) = split(
        heading("Handbook"), heading("Leave", 2), prose("Thirty days."), heading("Sick", 2), prose("Call.")
    )
    assert passage.headings == ("Handbook", "Leave")
    assert passage.text == "Handbook\n\nLeave\n\nThirty days.\n\nSick\n\nCall."


def test_long_sections_are_cut_at_sentences_and_overlap() -> None:
    passages = split(prose(sentences(30)))
    assert len(passages) > 3
    for before, after in itertools.pairwise(passages):
        assert before.text.endswith(".")
        assert after.text.startswith("Sentence")
        assert before.start < after.start < before.end < after.end


def test_the_end_of_a_block_is_preferred() -> None:
    passages = split(
        prose(sentences(4, "first")), prose(sentences(4, "second")), size=PassageSize(target=50, overlap=0)
    )
    assert "second" not in passages[0].text


def test_lines_of_code_are_not_cut() -> None:
    code = "\n".join(f"value_{number} = compute(input, {number})" for number in range(30))
    passages = split(Block(kind=BlockKind.LINES, text=code))
    assert len(passages) > 2
    assert all(line in code.splitlines() for passage in passages for line in passage.text.splitlines())


def test_pages_are_those_of_the_first_block() -> None:
    passages = split(prose(sentences(10), page=3), prose(sentences(10), page=4))
    assert (passages[0].page, passages[-1].page) == (3, 4)


@given(
    st.lists(
        st.tuples(st.sampled_from(BlockKind), st.text(min_size=1, max_size=400).map(str.strip).filter(bool)),
        max_size=12,
    )
)
def test_every_character_is_in_a_passage(parts: list[tuple[BlockKind, str]]) -> None:
    document = ParsedDocument(
        blocks=tuple(
            Block(kind=kind, text=text, level=2 if kind is BlockKind.HEADING else 0) for kind, text in parts
        )
    )
    passages = split_document(document, SMALL)
    text = document.text
    covered: set[int] = set()
    for passage in passages:
        assert passage.text == text[passage.start : passage.end]
        assert passage.tokens == estimate_tokens(passage.text)
        assert passage.tokens <= 2 * SMALL.target
        covered |= set(range(passage.start, passage.end))
    assert all(text[place].isspace() for place in range(len(text)) if place not in covered)


def test_a_long_word_is_cut() -> None:
    passages = split(prose("x" * 2_000))
    assert sum(len(passage.text) for passage in passages) == 2_000


@pytest.mark.parametrize(
    ("target", "overlap", "reason"),
    [
        (49, 0, "50 to 2,000"),
        (2_001, 0, "50 to 2,000"),
        (100, 51, "half of their 100"),
        (100, -1, "0 to half"),
    ],
)
def test_impossible_sizes_are_refused(target: int, overlap: int, reason: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=reason):
        PassageSize(target=target, overlap=overlap)


def test_a_place_names_page_headings_and_characters() -> None:
    assert (
        place_of(headings=("A", "B"), page=3, start=1_200, end=1_300)
        == "page 3, A › B, characters 1,200 to 1,300"
    )
    assert place_of(headings=(), page=None, start=0, end=9) == "characters 0 to 9"
