"""Fenced code: blocks with their titles, the lines that close a fence, and the cost of fences that are never closed."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.text.code import CODE_LENGTH, code_blocks, left_out_code, without_code


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("no code", []),
        ("``` no fence ```", []),
        (
            "A loop:\n```python\nfor x in y:\n    pass\n```\nand\n~~~\nz\n~~~",
            [("python", "A loop", "for x in y:\n    pass"), ("", "and", "z")],
        ),
        ("```\n\n```", []),
        ("```py\nnever closed", []),
        ("````md\n```inner```\n````", [("md", "", "```inner```")]),
        (f"```\n{'x' * (CODE_LENGTH + 1)}\n```", []),
    ],
)
def test_fenced_code_blocks_are_found(text: str, blocks: list[tuple[str, str, str]]) -> None:
    assert [(block.language, block.title, block.code) for block in code_blocks(text)] == blocks


#: Texts of many fences.
fenced = st.lists(
    st.sampled_from(["```", "```py", "````", "~~~", "  ~~~~"]) | st.text(alphabet="`~ab ", max_size=6),
    max_size=20,
).map("\n".join)


@given(fenced)
def test_code_blocks_of_any_text_are_parts_of_it(text: str) -> None:
    assert all(block.code.strip() and block.code in text for block in code_blocks(text))


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
