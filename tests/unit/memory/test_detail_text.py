"""Details of memories as words of the index and as lines of prompts."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.memory.detail_text import detail_lines, indexed_terms, indexed_words
from arbor.memory.text.lexical import document_vector, term_index, term_of
from arbor.memory.values import MemoryType

PROCEDURE = {"steps": ["Fill the kettle", "Boil it"], "prerequisites": ["clean water"]}


@pytest.mark.parametrize(
    ("kind", "detail", "lines"),
    [
        (
            MemoryType.PROCEDURAL,
            {**PROCEDURE, "practice": [3, 1]},
            ("steps: 1. Fill the kettle; 2. Boil it", "needs first: clean water", "worked 3 of 4 times"),
        ),
        (MemoryType.PROCEDURAL, {"practice": None}, ("not tried yet",)),
        (
            MemoryType.STRATEGIC,
            {
                "pattern": "Ask early",
                "evidence": ["May", "June"],
                "applicability": ["ports"],
                "confidence": 0.6,
            },
            ("pattern: Ask early", "seen in: May; June", "applies to: ports", "confidence 60%"),
        ),
        (
            MemoryType.EPISODIC,
            {"context": "at sea", "action": "turned", "result": "no damage", "mode": "reflection"},
            ("context: at sea", "done: turned", "outcome: no damage"),
        ),
        (
            MemoryType.SEMANTIC,
            {"confidence": 0.5, "context": "he said so"},
            ("context: he said so", "confidence 50%"),
        ),
        (MemoryType.SEMANTIC, {"steps": 3, "confidence": "high", "pattern": {"a": 1}, "result": " "}, ()),
        # An accepted proposal names its evidence by ids.
        (
            MemoryType.STRATEGIC,
            {"evidence": ["0198c0de-0000-7000-8000-000000000001", "May"]},
            ("seen in: May",),
        ),
        (MemoryType.SEMANTIC, {"focus": "reefs", "artifact": "text"}, ("about: reefs",)),
        (MemoryType.EPISODIC, {"topic": "reefs", "context": "at sea"}, ("about: reefs", "context: at sea")),
        (MemoryType.EPISODIC, {}, ()),
    ],
)
def test_a_detail_becomes_lines(kind: MemoryType, detail: dict[str, Any], lines: tuple[str, ...]) -> None:
    assert detail_lines(kind, detail) == lines


@pytest.mark.parametrize("detail", [{}, {"source_id": "D1:3"}, {"mode": "reflection"}, {"confidence": 0.4}])
def test_a_plain_memory_is_indexed_as_its_text(detail: dict[str, Any]) -> None:
    text = "Caroline went to the pottery class on Friday."
    plain = document_vector(text, speaker="Caroline")
    assert indexed_words(detail) == ""
    assert list(indexed_terms(text, speaker="Caroline", detail=detail).items()) == list(plain.items())


def test_the_words_of_a_detail_are_indexed_beside_the_text() -> None:
    text = "How to make tea"
    plain = document_vector(text)
    found = indexed_terms(text, speaker="", detail=PROCEDURE)
    assert found.items() >= plain.items()
    assert {term_index(term_of(word)) for word in ("kettle", "boil", "clean")} <= found.keys()


def test_many_steps_leave_the_weight_of_the_text_alone() -> None:
    steps = [f"Turn screw number {number} until tea comes" for number in range(100)]
    found = indexed_terms("How to make tea", speaker="", detail={"steps": steps})
    tea = term_index(term_of("tea"))
    assert found[tea] >= document_vector("How to make tea")[tea]
