"""Parse replies to maintenance calls leniently, entry by entry; each dropped entry gets its reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from arbor.errors import Invalid, ReplyInvalid
from arbor.memory.concepts import concept_key
from arbor.memory.text.extraction import EXTRACTED_NAME_LENGTH, MAX_CONCEPTS, ExtractedConcept
from arbor.memory.text.facts import FACT_LENGTH, MAX_FACTS, names_secret
from arbor.memory.text.summary import SUMMARY_LENGTH
from arbor.models.json_text import UnreadableObject, find_objects, storable
from arbor.quotations import counted, first_lines

#: The longest summary and the longest reply that are accepted.
LONGEST_SUMMARY = 2_000
LONGEST_REPLY = 40_000
#: Characters of a dropped value that its reason quotes, and the most reasons that one call stores.
_QUOTED = 60
MAX_REASONS = 50


class Answers[T](NamedTuple):
    """The entries of a reply that are used, by memory, and the dropped ones with their reasons."""

    #: Entries by a memory's position in the call, from 0. A memory without an entry was left out.
    by_place: dict[int, T]
    #: The reasons, each naming the memory by its number in the prompt, from 1.
    dropped: tuple[str, ...] = ()


def read_summary(text: str) -> str:
    """Return the summary in a model's reply. Raises ReplyInvalid for a missing, empty or overlong one."""
    summary = _object(text, "summary").get("summary")
    if not isinstance(summary, str) or not summary.strip():
        raise ReplyInvalid('"summary" must be a text that is not empty')
    summary = " ".join(summary.split())
    if len(summary) > LONGEST_SUMMARY:
        # The error names the length that the prompt asks for; a longer text than that is accepted.
        raise ReplyInvalid(f'"summary" must have at most {SUMMARY_LENGTH} characters, got {len(summary):,}')
    return summary


def read_concepts(text: str, *, count: int) -> Answers[tuple[ExtractedConcept, ...]]:
    """Return the concepts by memory in a reply; raises ReplyInvalid for a reply without a usable entry.

    A memory without a readable concept is left out, unless its list is empty.
    """
    by_memory: dict[int, tuple[ExtractedConcept, ...]] = {}
    dropped: list[str] = []
    for place, concepts in _entries_of(text, "memories", "concepts", count, dropped):
        if not isinstance(concepts, list):
            dropped.append(f'memory {place + 1}: "concepts" must be a list, got {_quote(concepts)}')
            continue
        by_key: dict[str, ExtractedConcept] = {}
        for item in concepts:
            try:
                concept = _concept(item)
                by_key.setdefault(concept_key(concept.name), concept)
            except Invalid as error:
                dropped.append(f"memory {place + 1}: {_quote(item)}: {error}")
        unique = tuple(by_key.values())
        dropped += [
            f"memory {place + 1}: {_quote(concept.name)}: above the {MAX_CONCEPTS} concepts of one memory"
            for concept in unique[MAX_CONCEPTS:]
        ]
        if unique or not concepts:
            by_memory[place] = unique[:MAX_CONCEPTS]
    if not by_memory:
        raise ReplyInvalid(
            f'"memories" must have {counted(count, "entry", "entries")}, each with the "concepts" of a memory'
        )
    return Answers(by_memory, first_lines(dropped, MAX_REASONS))


def read_facts(text: str, *, count: int) -> Answers[tuple[str, ...]]:
    """Return the facts by memory in a reply that `read_concepts` reads; a reply without any is complete."""
    by_memory: dict[int, tuple[str, ...]] = {}
    dropped: list[str] = []
    entries = _object(text, "memories").get("memories")
    for entry in entries if isinstance(entries, list) else []:
        number = _parse_number(entry.get("n")) if isinstance(entry, Mapping) else None
        if number is None or not 1 <= number <= count or number - 1 in by_memory:
            continue  # `read_concepts` gives the reason.
        facts = entry.get("facts") or []
        if not isinstance(facts, list):
            dropped.append(f'memory {number}: "facts" must be a list, got {_quote(facts)}')
            continue
        usable = [fact for fact in facts if _is_fact(fact) and not names_secret(fact)]
        # Without a quotation, because the reason is stored.
        dropped += [
            f"memory {number}: a fact that names a secret is not proposed"
            for fact in facts
            if _is_fact(fact) and names_secret(fact)
        ]
        dropped += [
            f"memory {number}: a fact is one sentence of 1 to {FACT_LENGTH} characters, got {_quote(fact)}"
            for fact in facts
            if not _is_fact(fact)
        ]
        dropped += [
            f"memory {number}: {_quote(fact)}: above the {MAX_FACTS} facts of one memory"
            for fact in usable[MAX_FACTS:]
        ]
        by_memory[number - 1] = tuple(storable(" ".join(fact.split())) for fact in usable[:MAX_FACTS])
    return Answers(by_memory, first_lines(dropped, MAX_REASONS))


def _is_fact(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(" ".join(value.split())) <= FACT_LENGTH


def read_scores(text: str, *, count: int) -> Answers[float]:
    """Return the importance by memory in a reply, each 0 to 1; raises ReplyInvalid for a reply without a usable entry.

    Any other value is dropped.
    """
    by_memory: dict[int, float] = {}
    dropped: list[str] = []
    for place, score in _entries_of(text, "scores", "importance", count, dropped):
        if _is_number(score) and 0 <= score <= 1:
            by_memory[place] = float(score)
        else:
            dropped.append(f"memory {place + 1}: an importance is a number from 0 to 1, got {_quote(score)}")
    if not by_memory:
        raise ReplyInvalid(
            f'"scores" must have {counted(count, "entry", "entries")}, each with the "importance" of a memory from 0 to 1'
        )
    return Answers(by_memory, first_lines(dropped, MAX_REASONS))


def _object(text: str, key: str) -> Mapping[str, Any]:
    """Return the last JSON object with a key, because a model may reason aloud before its answer."""
    if len(text) > LONGEST_REPLY:
        raise ReplyInvalid(f"a reply has at most {LONGEST_REPLY:,} characters, got {len(text):,}")
    last: Mapping[str, Any] | None = None
    for found in find_objects(text, keys=(key,)):
        if isinstance(found, UnreadableObject):
            raise ReplyInvalid(found.fault)
        if key in found.value:
            last = found.value
    if last is None:
        raise ReplyInvalid(f'expected a JSON object with the key "{key}"')
    return last


def _entries_of(text: str, key: str, name: str, count: int, dropped: list[str]) -> Iterator[tuple[int, Any]]:
    """Yield (position from 0, value) of the entries that name a memory; the first one of several for a memory."""
    entries = _object(text, key).get(key)
    used: set[int] = set()
    for entry in entries if isinstance(entries, list) else []:
        number = _parse_number(entry.get("n")) if isinstance(entry, Mapping) else None
        if not isinstance(entry, Mapping) or name not in entry or number is None or not 1 <= number <= count:
            dropped.append(f'no "n" from 1 to {count} with its "{name}": {_quote(entry)}')
        elif number in used:
            dropped.append(f"memory {number}: a second entry, {_quote(entry[name])}")
        else:
            used.add(number)
            yield number - 1, entry[name]


def _parse_number(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        return int(value.strip()[:6])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _concept(item: Any) -> ExtractedConcept:
    """Read a concept: an object, or its bare name. Raises Invalid for anything else."""
    name, strength = (
        (item.get("name"), item.get("strength", 1.0)) if isinstance(item, Mapping) else (item, 1.0)
    )
    if not isinstance(name, str):
        raise Invalid("a concept is its name, or an object with one")
    name = " ".join(name.split())
    if not any(character.isalnum() for character in name) or len(name) > EXTRACTED_NAME_LENGTH:
        raise Invalid(
            f"a concept's name has 1 to {EXTRACTED_NAME_LENGTH} characters, with a letter or digit among them"
        )
    return ExtractedConcept(name, float(min(1, max(0, strength))) if _is_number(strength) else 1.0)


def _quote(value: Any) -> str:
    """Return the beginning of a value in ASCII, which can always be stored."""
    shown = ascii(value)
    return shown if len(shown) <= _QUOTED else f"{shown[:_QUOTED]}…"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf
