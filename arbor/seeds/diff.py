"""Compare two seeds section by section, in memory that grows with the number of rows and not with their size."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from arbor.quotations import shorten
from arbor.seeds.manifest import canonical_json
from arbor.seeds.reading import SeedRow

#: The most differences of each section that are shown.
EXAMPLES = 20
#: The columns that identify a row without an id, and each row where two agents are compared, because their ids differ. Such a
#: comparison leaves out the sections that are missing here.
_NATURAL: dict[str, tuple[str, ...]] = {
    "profile": (),
    "policy": (),
    "requests": ("resource",),
    "episodes": ("session", "started_at"),
    "memories": ("content", "type", "session", "position"),
    "concepts": ("key",),
    "buffer": ("content",),
    "code": ("code",),
    "aspects": ("kind", "content"),
    "preferences": ("key",),
    "beliefs": ("statement",),
    "boundaries": ("name",),
    "proposals": ("kind", "content"),
    "goals": ("title",),
    "experiences": ("action", "about", "at"),
    "peers": ("name",),
}
_LABELS = ("name", "title", "content", "statement", "key", "description", "action", "resource", "id")
_LABEL_LENGTH = 120


class RowChange(StrEnum):
    """The kinds of differences between two seeds."""

    #: Only the second seed has the row.
    ADDED = "added"
    #: Only the first seed has the row.
    REMOVED = "removed"
    #: Both have the row, with different values.
    CHANGED = "changed"


@dataclass(frozen=True, kw_only=True)
class RowDifference:
    """One difference; of a changed row with the values before and after, by each column that differs."""

    change: RowChange
    label: str
    fields: dict[str, tuple[Any, Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SectionDifference:
    """The counts of a section's rows by difference, and up to EXAMPLES of the differences."""

    name: str
    added: int
    removed: int
    changed: int
    same: int
    examples: tuple[RowDifference, ...] = ()


@dataclass(kw_only=True)
class _Section:
    added: int = 0
    changed: int = 0
    same: int = 0
    #: The first rows of the second seed that are added or changed, by key.
    found: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    #: The digests of the rows of the first seed that the second one has not shown yet, by key.
    removed: dict[bytes, bytes] = field(default_factory=dict)


def diff_rows(
    first: Callable[[], Iterable[SeedRow]],
    second: Callable[[], Iterable[SeedRow]],
    *,
    same_agent: bool,
) -> tuple[SectionDifference, ...]:
    """Compare the rows of two seeds, each of which can be read again.

    Rows of one agent are identified by their ids, rows of two agents by their texts or names: a section whose rows have
    neither is left out, and ids are not compared.
    """
    sections: dict[str, _Section] = {}
    for key, row in _keyed(first(), same_agent):
        sections.setdefault(row.section, _Section()).removed[key] = _digest(row.values, same_agent)
    for key, row in _keyed(second(), same_agent):
        section = sections.setdefault(row.section, _Section())
        known = section.removed.pop(key, None)
        if known == _digest(row.values, same_agent):
            section.same += 1
            continue
        if known is None:
            section.added += 1
        else:
            section.changed += 1
        if len(section.found) < EXAMPLES:
            section.found[key] = row.values
    examples = _examples(first, sections, same_agent)
    return tuple(
        SectionDifference(
            name=name,
            added=section.added,
            removed=len(section.removed),
            changed=section.changed,
            same=section.same,
            examples=tuple(examples[name][:EXAMPLES]),
        )
        for name, section in sections.items()
    )


def _examples(
    first: Callable[[], Iterable[SeedRow]], sections: dict[str, _Section], same_agent: bool
) -> dict[str, list[RowDifference]]:
    examples: dict[str, list[RowDifference]] = {name: [] for name in sections}
    if any(section.removed or section.changed for section in sections.values()):
        for key, row in _keyed(first(), same_agent):
            if len(examples[row.section]) >= EXAMPLES:
                continue
            section = sections[row.section]
            if key in section.removed:
                examples[row.section].append(
                    RowDifference(change=RowChange.REMOVED, label=_label(row.values))
                )
            elif key in section.found:
                after = section.found.pop(key)
                fields = _fields(row.values, after, same_agent)
                examples[row.section].append(
                    RowDifference(change=RowChange.CHANGED, label=_label(after), fields=fields)
                )
    for name, section in sections.items():
        added = min(section.added, len(section.found))
        examples[name] += [
            RowDifference(change=RowChange.ADDED, label=_label(values))
            for values in list(section.found.values())[:added]
        ]
    return examples


def _keyed(rows: Iterable[SeedRow], same_agent: bool) -> Iterator[tuple[bytes, SeedRow]]:
    """Yield the rows that are compared, each with a key of its own: rows of equal texts or names are numbered in their order."""
    counts: dict[tuple[str, bytes], int] = {}
    for row in rows:
        if (key := _key(row, same_agent)) is None:
            continue
        number = counts[row.section, key] = counts.get((row.section, key), 0) + 1
        yield key + number.to_bytes(4), row


def _key(row: SeedRow, same_agent: bool) -> bytes | None:
    if same_agent and "id" in row.values:
        return str(row.values["id"]).encode()
    names = _NATURAL.get(row.section)
    if names is None and same_agent:
        names = tuple(sorted(name for name in row.values if name.endswith("_id") or name == "relation"))
    # A digest, because the texts of memories are long.
    return None if names is None else _hash([row.values.get(name) for name in names])


def _compared(values: dict[str, Any], same_agent: bool) -> dict[str, Any]:
    if same_agent:
        return values
    return {name: value for name, value in values.items() if name != "id" and not name.endswith("_id")}


def _digest(values: dict[str, Any], same_agent: bool) -> bytes:
    return _hash(_compared(values, same_agent))


def _hash(value: Any) -> bytes:
    return hashlib.blake2b(canonical_json(value), digest_size=16).digest()


def _fields(before: dict[str, Any], after: dict[str, Any], same_agent: bool) -> dict[str, tuple[Any, Any]]:
    first, second = _compared(before, same_agent), _compared(after, same_agent)
    return {
        name: (first.get(name), second.get(name))
        for name in sorted(first.keys() | second.keys())
        if first.get(name) != second.get(name)
    }


def _label(values: dict[str, Any]) -> str:
    text = next((str(values[name]) for name in _LABELS if values.get(name)), "")
    return shorten(text, _LABEL_LENGTH)
