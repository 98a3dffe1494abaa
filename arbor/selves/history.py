"""The history of a self as values: fold changes to the self at a version, and compare versions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from arbor.errors import NotFound
from arbor.selves.values import BeliefStatus

#: The versions offered for comparison and rollback besides the birth (seed 000, 2), and the changes of a growth log.
VERSIONS_OFFERED = 10
GROWTH_LOG = 100
#: The version of the birth.
BIRTH = 1
#: The category of beliefs that have become aspects; earlier changes of a history still have them as beliefs.
_FORMER_VALUES = "values"


class PartKind(StrEnum):
    """A part of a self that has a history."""

    #: An aspect, among them traits, values and capabilities.
    ASPECT = "aspect"
    #: A belief.
    BELIEF = "belief"
    #: A preference.
    PREFERENCE = "preference"
    #: A boundary of the agent's own.
    BOUNDARY = "boundary"


#: `what` of the change that records a birth, all parts at once.
BIRTH_CHANGE = "birth"
#: The field that names a part.
_NAMES: Mapping[PartKind, str] = MappingProxyType(
    {
        PartKind.ASPECT: "content",
        PartKind.BELIEF: "statement",
        PartKind.PREFERENCE: "key",
        PartKind.BOUNDARY: "name",
    }
)

#: The values of one part by field.
type PartValues = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class RecordedChange:
    """A change of the history: `what` is a `PartKind`, or the birth with all parts in `after`."""

    version: int
    what: str
    target_id: str
    before: PartValues
    after: PartValues


@dataclass(frozen=True, kw_only=True)
class SelfState:
    """The self at a version: the values of each part by its id. Dropped parts are left out."""

    parts: Mapping[PartKind, Mapping[str, PartValues]] = field(default_factory=dict)

    def of(self, part: PartKind) -> Mapping[str, PartValues]:
        """Return the parts of one kind by id."""
        return self.parts.get(part, {})

    def to_json(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the state as the record of a birth."""
        return {
            part.value: {target: dict(values) for target, values in rows.items()}
            for part, rows in self.parts.items()
            if rows
        }


class DifferenceKind(StrEnum):
    """The kind of a difference between two versions."""

    #: Only the later version has the part.
    ADDED = "added"
    #: Only the earlier one has it.
    REMOVED = "removed"
    #: Both have it, with other values.
    CHANGED = "changed"


#: The verbs of restoring parts, by the difference from before the restoration to after it.
RESTORATION_VERBS = MappingProxyType(
    {
        DifferenceKind.REMOVED: "took away",
        DifferenceKind.CHANGED: "reset",
        DifferenceKind.ADDED: "brought back",
    }
)


@dataclass(frozen=True, kw_only=True)
class PartDifference:
    """A difference of one part between two versions; `before` or `after` is empty where the version has no such part."""

    part: PartKind
    target_id: str
    before: PartValues
    after: PartValues

    @property
    def difference(self) -> DifferenceKind:
        """Return whether the part was added, removed or changed."""
        if not self.before:
            return DifferenceKind.ADDED
        return DifferenceKind.CHANGED if self.after else DifferenceKind.REMOVED

    @property
    def act(self) -> str:
        """Return the difference in words: a row of its own disables a default boundary."""
        if self.part is PartKind.BOUNDARY:
            was_on, is_on = (values.get("enabled", True) for values in (self.before, self.after))
            if was_on != is_on:
                return "enabled" if is_on else "disabled"
        return self.difference.value

    @property
    def name(self) -> str:
        """Return the name of the part: an aspect's content, a preference's key."""
        return str((self.after or self.before).get(_NAMES[self.part], ""))

    @property
    def kind(self) -> str:
        """Return the kind of an aspect, such as `trait`, else the kind of the part."""
        kind = (self.after or self.before).get("kind") if self.part is PartKind.ASPECT else None
        return str(kind or self.part)

    @property
    def fields(self) -> Mapping[str, tuple[Any, Any]]:
        """Return the values before and after of the fields that differ."""
        names = dict.fromkeys([*self.before, *self.after])
        return {
            name: (self.before.get(name), self.after.get(name))
            for name in names
            if self.before.get(name) != self.after.get(name)
        }


def fold(changes: Iterable[RecordedChange], *, until: int | None = None) -> SelfState:
    """Return the self after all changes up to a version; `changes` are in the order of their versions."""
    parts: dict[PartKind, dict[str, PartValues]] = {part: {} for part in PartKind}
    for change in changes:
        if until is not None and change.version > until:
            break
        if change.what == BIRTH_CHANGE:
            for part in PartKind:
                parts[part].update(change.after.get(part.value, {}))
        elif change.after:
            parts[PartKind(change.what)][change.target_id] = change.after
        else:
            parts[PartKind(change.what)].pop(change.target_id, None)
    return state_of(parts)


def unfold(current: SelfState, changes: Iterable[RecordedChange]) -> SelfState:
    """Return the self before all changes; `changes` are in the order of their versions, without a birth."""
    parts = {part: dict(current.of(part)) for part in PartKind}
    for change in reversed(list(changes)):
        rows = parts[PartKind(change.what)]
        if change.before:
            rows[change.target_id] = change.before
        else:
            rows.pop(change.target_id, None)
    return state_of(parts)


def state_of(parts: Mapping[PartKind, Mapping[str, PartValues]]) -> SelfState:
    """Return the parts that are not dropped as a state."""
    return SelfState(
        parts={
            part: {target: values for target, values in rows.items() if _is_present(values)}
            for part, rows in parts.items()
        }
    )


def differences(
    earlier: SelfState, later: SelfState, *, parts: Collection[PartKind] = tuple(PartKind)
) -> tuple[PartDifference, ...]:
    """Return the differences between two versions, sorted by part, kind and name.

    A field that one version did not record yet is no difference.
    """
    found = [
        difference
        for part in PartKind
        if part in parts
        for difference in _differences_of(part, earlier.of(part), later.of(part))
    ]
    return tuple(
        sorted(found, key=lambda difference: (difference.part, difference.kind, difference.name.casefold()))
    )


def _differences_of(
    part: PartKind, earlier: Mapping[str, PartValues], later: Mapping[str, PartValues]
) -> list[PartDifference]:
    found = []
    for target in dict.fromkeys([*earlier, *later]):
        before, after = earlier.get(target, {}), later.get(target, {})
        if before and after:
            recorded = (before.keys() & after.keys()) | _LEFT_OUT_WHERE_EMPTY
            before, after = (
                {name: value for name, value in values.items() if name in recorded}
                for values in (before, after)
            )
        if before != after:
            found.append(PartDifference(part=part, target_id=target, before=before, after=after))
    return found


#: Fields that a record has only if they are not empty: a missing one is empty, not unknown.
_LEFT_OUT_WHERE_EMPTY = frozenset({"filters"})


def _is_present(values: PartValues) -> bool:
    return values.get("status") != BeliefStatus.DROPPED and values.get("category") != _FORMER_VALUES


def offered_versions(latest: int) -> tuple[int, ...]:
    """Return the versions that can be compared and restored: the birth and the latest ones, the newest first."""
    recent = range(latest, max(latest - VERSIONS_OFFERED, 0), -1)
    return (*recent, *((BIRTH,) if latest > VERSIONS_OFFERED else ()))


def require_offered(version: int, *, latest: int) -> int:
    """Return a version that is offered. Raises NotFound with the offered versions."""
    if version not in offered_versions(latest):
        first = max(latest - VERSIONS_OFFERED + 1, BIRTH)
        birth = f"{BIRTH} (its birth) and " if first > BIRTH else ""
        there_are = f"there is only {latest}" if first == latest else f"there are {birth}{first} to {latest}"
        raise NotFound(f"the self has no version {version} to compare or restore; {there_are}")
    return version
