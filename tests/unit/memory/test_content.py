"""A memory's text is stored exactly or refused, and its hash ignores invisible differences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import ContentInvalid
from arbor.memory.content import MAX_CONTENT_BYTES, check_content, content_hash


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "got an empty text"),
        (" \n\t\u3000", "got white space only"),
        ("half\0way", "NUL character, got one at position 4"),
        ("half \ud83d", "half a surrogate pair at position 5"),
        ("x" * (MAX_CONTENT_BYTES + 1), "at most 65,536 bytes of UTF-8, got 65,537"),
        ("€" * (MAX_CONTENT_BYTES // 3 + 1), "at most 65,536 bytes of UTF-8, got 65,538"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(content: str, said: str) -> None:
    with pytest.raises(ContentInvalid, match=said):
        check_content(content)


@pytest.mark.parametrize("content", ["x", "  padded  ", "x" * MAX_CONTENT_BYTES, "тест 🌳", "a\u200bb"])
def test_what_can_be_kept_is_let_through(content: str) -> None:
    check_content(content)


def test_white_space_and_composition_do_not_make_another_text() -> None:
    assert content_hash("caf\u00e9  au\nlait ") == content_hash("cafe\u0301 au lait")


def test_case_and_words_make_another_text() -> None:
    assert content_hash("ask US") != content_hash("ask us")
    assert content_hash("ab") != content_hash("a b")


@given(st.text(min_size=1).filter(str.strip))
def test_every_text_that_passes_has_a_hash_of_32_bytes(content: str) -> None:
    try:
        check_content(content)
    except ContentInvalid:
        return
    assert len(content_hash(content)) == 32
