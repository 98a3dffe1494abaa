"""Parse replies to maintenance calls leniently, entry by entry; each dropped entry gets its reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from arbor.errors import Invalid, ReplyInvalid
from arbor.heartbeat.json_text import Broken, find_objects
from arbor.memory.concepts import concept_key
from arbor.memory.extraction import MAX_CONCEPTS, NAME_LENGTH, Extracted
from arbor.memory.summary import SUMMARY_LENGTH

#: The longest summary and the longest reply that are taken.
LONGEST_SUMMARY = 2_000
LONGEST_REPLY = 40_000
#: Characters of what was not taken that its reason quotes, and reasons that one call keeps.
_QUOTED = 60
MAX_REASONS = 50


class Answers[T](NamedTuple):
    """The entries of a reply that are used, by memory, and the dropped ones with their reasons."""

    #: By a memory's place in the call, from 0. A memory that is not here was left out.
    by_place: dict[int, T]
    #: The reasons, each naming the memory by its number in the prompt, from 1.
    dropped: tuple[str, ...] = ()


def read_summary(text: str) -> str:
    """Return the summary in a model's reply. Raises ReplyInvalid where there is none, or it is no summary."""
    summary = _object(text, "summary").get("summary")
    if not isinstance(summary, str) or not summary.strip():
        raise ReplyInvalid('"summary" must be a text that says something')
    summary = " ".join(summary.split())
    if len(summary) > LONGEST_SUMMARY:
        raise ReplyInvalid(f'"summary" must have at most {SUMMARY_LENGTH} characters, got {len(summary):,}')
    return summary


def read_concepts(text: str, *, count: int) -> Answers[tuple[Extracted, ...]]:
    """Return the concepts of each memory that the reply names; raises ReplyInvalid for none.

    A memory of whose concepts none can be read is left out, as if it had not been answered.
    """
    found: dict[int, tuple[Extracted, ...]] = {}
    dropped: list[str] = []
    for place, concepts in _entries_of(text, "memories", "concepts", count, dropped):
        if not isinstance(concepts, list):
            dropped.append(f'memory {place + 1}: "concepts" must be a list, got {_quoted(concepts)}')
            continue
        read: dict[str, Extracted] = {}
        for item in concepts:
            try:
                concept = _concept(item)
                read.setdefault(concept_key(concept.name), concept)
            except Invalid as error:
                dropped.append(f"memory {place + 1}: {_quoted(item)}: {error}")
        unique = tuple(read.values())
        dropped += [
            f"memory {place + 1}: {_quoted(concept.name)}: above the {MAX_CONCEPTS} concepts of one memory"
            for concept in unique[MAX_CONCEPTS:]
        ]
        if unique or not concepts:
            found[place] = unique[:MAX_CONCEPTS]
    if not found:
        raise ReplyInvalid(f'"memories" must list each of the {count} memories with its "concepts"')
    return Answers(found, bounded(dropped))


def read_scores(text: str, *, count: int) -> Answers[float]:
    """Return the importance, 0 to 1, of each memory that the reply weighs; raises ReplyInvalid when it weighs none.

    What is no number from 0 to 1 is no weight.
    """
    found: dict[int, float] = {}
    dropped: list[str] = []
    for place, score in _entries_of(text, "scores", "importance", count, dropped):
        if _is_number(score) and 0 <= score <= 1:
            found[place] = float(score)
        else:
            dropped.append(f"memory {place + 1}: an importance is a number from 0 to 1, got {_quoted(score)}")
    if not found:
        raise ReplyInvalid(
            f'"scores" must list each of the {count} memories with an "importance" from 0 to 1'
        )
    return Answers(found, bounded(dropped))


def bounded(reasons: list[str]) -> tuple[str, ...]:
    """Return the first MAX_REASONS, and how many more there were."""
    more = len(reasons) - MAX_REASONS
    return (*reasons[:MAX_REASONS], *([f"and {more:,} more"] if more > 0 else []))


def _object(text: str, key: str) -> Mapping[str, Any]:
    """Return the last JSON object with that key: what a model thinks aloud comes before its answer."""
    if len(text) > LONGEST_REPLY:
        raise ReplyInvalid(f"a reply has at most {LONGEST_REPLY:,} characters, got {len(text):,}")
    last: Mapping[str, Any] | None = None
    for found in find_objects(text, keys=(key,)):
        if isinstance(found, Broken):
            raise ReplyInvalid(found.fault)
        if key in found.value:
            last = found.value
    if last is None:
        raise ReplyInvalid(f'expected a JSON object with the key "{key}"')
    return last


def _entries_of(text: str, key: str, name: str, count: int, dropped: list[str]) -> Iterator[tuple[int, Any]]:
    """Yield (place from 0, value) of the entries that name one of the memories; of two for one, the first."""
    entries = _object(text, key).get(key)
    used: set[int] = set()
    for entry in entries if isinstance(entries, list) else []:
        place = _place(entry.get("n")) if isinstance(entry, Mapping) else None
        if not isinstance(entry, Mapping) or name not in entry or place is None or not 1 <= place <= count:
            dropped.append(f'no "n" from 1 to {count} with its "{name}": {_quoted(entry)}')
        elif place in used:
            dropped.append(f"memory {place}: a second entry, {_quoted(entry[name])}")
        else:
            used.add(place)
            yield place - 1, entry[name]


def _place(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        return int(value.strip()[:6])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _concept(item: Any) -> Extracted:
    """Read a concept: an object, or its bare name. Raises Invalid for what is neither."""
    name, strength = (
        (item.get("name"), item.get("strength", 1.0)) if isinstance(item, Mapping) else (item, 1.0)
    )
    if not isinstance(name, str):
        raise Invalid("a concept is its name, or an object with one")
    name = " ".join(name.split())
    if not any(character.isalnum() for character in name) or len(name) > NAME_LENGTH:
        raise Invalid(f"a concept's name has 1 to {NAME_LENGTH} characters, some of them letters")
    return Extracted(name, min(1.0, max(0.0, float(strength))) if _is_number(strength) else 1.0)


def _quoted(value: Any) -> str:
    """Return the beginning of a value as it can be stored: of text, its characters, whatever they are, made visible."""
    shown = ascii(value)
    return shown if len(shown) <= _QUOTED else f"{shown[:_QUOTED]}…"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
