"""Validation and hashes of memory content."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import ContentInvalid, Invalid
from arbor.memory.content import MAX_CONTENT_BYTES, check_content, check_json, check_text, content_hash


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "got an empty text"),
        (" \n\t\u3000", "got white space only"),
        ("half\0way", "NUL character, got one at position 4"),
        ("half \ud83d", "half a surrogate pair at position 5"),
        ("x" * (MAX_CONTENT_BYTES + 1), "at most 65,536 bytes of UTF-8, got 65,537"),
        ("€" * (MAX_CONTENT_BYTES // 3 + 1), "at most 65,536 bytes of UTF-8, got 65,538"),
    ],
)
def test_invalid_content_is_refused_with_a_reason(content: str, reason: str) -> None:
    with pytest.raises(ContentInvalid, match=reason):
        check_content(content)


@pytest.mark.parametrize("content", ["x", "  padded  ", "x" * MAX_CONTENT_BYTES, "тест 🌳", "a\u200bb"])
def test_valid_content_is_accepted(content: str) -> None:
    check_content(content)


@pytest.mark.parametrize("text", ["half\0way", "half \ud83d"])
def test_text_that_cannot_be_stored_is_refused(text: str) -> None:
    for check in (
        lambda: check_text("the input", text),
        lambda: check_json("the input", {"topic": [text]}),
        lambda: check_json("the input", {text: 1}),
    ):
        with pytest.raises(
            Invalid, match="the input must not contain a NUL character or half a surrogate pair"
        ):
            check()


def test_json_that_nests_too_deeply_is_refused() -> None:
    nested: dict[str, Any] = {}
    for _ in range(100_000):
        nested = {"a": nested}
    with pytest.raises(Invalid, match="the input must be JSON"):
        check_json("the input", nested)


@pytest.mark.parametrize("text", ["\\u0000", "\\\\u0000", "тест 🌳"])
def test_json_that_can_be_stored_is_returned(text: str) -> None:
    assert json.loads(check_json("the input", {"topic": text})) == {"topic": text}


def test_hash_ignores_white_space_runs_and_composition() -> None:
    assert content_hash("caf\u00e9  au\nlait ") == content_hash("cafe\u0301 au lait")


def test_hash_differs_by_case_and_word_boundaries() -> None:
    assert content_hash("ask US") != content_hash("ask us")
    assert content_hash("ab") != content_hash("a b")


@given(st.text())
def test_the_hash_of_a_text_has_32_bytes(content: str) -> None:
    assert len(content_hash(content)) == 32
