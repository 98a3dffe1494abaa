"""Fenced code: which lines close a fence, and the cost of fences that are never closed."""

from __future__ import annotations

import time

import pytest

from arbor.memory.text.code import code_blocks, left_out_code, without_code


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("```py\r\nrun()\r\n```\r\nand so on", ["run()"]),
        ("~~~~\na\n~~~\nb\n~~~~~", ["a\n~~~\nb"]),
        ("~~~~\nnever closed\n~~~", []),
        ("```\nnever closed\n~~~\ncode\n~~~", ["code"]),
    ],
    ids=["carriage returns", "shorter fence inside", "shorter fence only", "other marks"],
)
def test_a_fence_is_closed_by_a_line_of_its_own_marks(text: str, codes: list[str]) -> None:
    assert [block.code for block in code_blocks(text)] == codes


@pytest.mark.bar
@pytest.mark.parametrize("text", ["~" * 4_000 + "\n" * 4_000, "```a\n" * 4_000], ids=["one long", "many"])
def test_fences_that_are_never_closed_cost_little(text: str) -> None:
    started = time.perf_counter()
    assert not code_blocks(text)
    assert not left_out_code(text)
    assert without_code(text) == text
    assert time.perf_counter() - started < 0.5
