"""Render the details of memories: as words of the index, and as lines beside the text in prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from arbor.ids import read_id
from arbor.memory.text.lexical import document_vector
from arbor.memory.values import MemoryType
from arbor.quotations import counted

#: Fields whose words are indexed beside the text, in this order.
INDEXED_FIELDS = (
    "context",
    "action",
    "result",
    "category",
    "steps",
    "prerequisites",
    "pattern",
    "evidence",
    "applicability",
)
#: Fields that are shown unchanged, with their labels, for memories of all types: an agent may add `context` or `pattern` to any.
#: `focus` is the subject of an insight, `topic` that of an artifact.
_SHOWN = {
    "focus": "about",
    "topic": "about",
    "context": "context",
    "action": "done",
    "result": "outcome",
    "pattern": "pattern",
    "evidence": "seen in",
    "applicability": "applies to",
    "prerequisites": "needs first",
}
#: Fields of a memory's detail that no prompt shows.
HIDDEN_FIELDS = ("sources", "wordings", "wordings_more", "alignment", "source_id", "mode")
#: The field under which a recall reads the successes and failures of a procedure.
PRACTICE_FIELD = "practice"


@dataclass(frozen=True, kw_only=True, slots=True)
class PracticeCounts:
    """The outcomes of a procedure so far."""

    successes: int = 0
    failures: int = 0

    def __str__(self) -> str:
        tried = self.successes + self.failures
        return f"worked {self.successes} of {counted(tried, 'time')}" if tried else "not tried yet"


def indexed_words(detail: Mapping[str, Any]) -> str:
    """Return the text of a memory's detail that the word index includes; empty for a turn of a conversation."""
    return "\n".join(text for name in INDEXED_FIELDS if name in detail for text in _texts(detail[name]))


def indexed_terms(content: str, *, speaker: str, detail: Mapping[str, Any]) -> dict[int, float]:
    """Return the lexical vector of a memory: of its content, and of the indexed words of its detail.

    The two are weighed separately, so that a procedure of many steps is found by its title as before.
    """
    vector = document_vector(content, speaker=speaker)
    if words := indexed_words(detail):
        for place, weight in document_vector(words).items():
            vector[place] = max(weight, vector.get(place, 0.0))
    return vector


def detail_lines(kind: MemoryType, detail: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a memory's detail as lines of text: steps, outcome, pattern, confidence…

    `detail` is the JSON of its row, with the outcomes of a procedure under PRACTICE_FIELD; unreadable fields are left out.
    """
    return tuple(_lines(kind, detail))


def _lines(kind: MemoryType, detail: Mapping[str, Any]) -> Iterator[str]:
    if "steps" in detail and (steps := _texts(detail["steps"])):
        yield "steps: " + "; ".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))
    for name, label in _SHOWN.items():
        if name in detail and (texts := _texts(detail[name])):
            yield f"{label}: {'; '.join(texts)}"
    if kind is MemoryType.PROCEDURAL:
        yield str(_practice(detail.get(PRACTICE_FIELD)))
    confidence = detail.get("confidence")
    if isinstance(confidence, int | float) and 0 <= confidence <= 1:
        yield f"confidence {confidence:.0%}"


def _practice(counts: Any) -> PracticeCounts:
    match counts:
        case [int(successes), int(failures)]:
            return PracticeCounts(successes=successes, failures=failures)
    return PracticeCounts()


def _texts(value: Any) -> list[str]:
    """Return the texts of a field, a single one or a list, without empty texts and ids, which are not words."""
    listed = value if isinstance(value, list | tuple) else [value]
    texts = [text for item in listed if isinstance(item, str) and (text := item.strip())]
    return [text for text in texts if read_id(text) is None]
