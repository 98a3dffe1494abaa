"""The condition language of edges, and the outcomes that conditions test.

    condition := clause *( "&&" clause )
    clause    := key ("=" | "!=" | ">=" | "<=" | ">" | "<") value
    key       := "outcome" | "context." name *( "." name )
    value     := word | number | 'quoted' | "quoted"

A missing key reads as empty. `=` and `!=` compare numbers when both sides are numbers, text otherwise; the four
orderings are true between numbers only.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

_CLAUSE = re.compile(
    r"""\s*(?P<key>outcome|context(?:\.[A-Za-z_][A-Za-z0-9_]*)+)
        \s*(?P<test>!=|>=|<=|=|>|<)
        \s*(?P<value>"[^"]*"|'[^']*'|[^\s"'&=!<>]*)\s*""",
    re.VERBOSE,
)
_ORDERINGS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class NodeOutcome(StrEnum):
    """The outcomes of a node or a run."""

    #: Everything was done.
    SUCCESS = "success"
    #: Only an edge for `outcome=failure` or a retry target leads on.
    FAILURE = "failure"
    #: An edge for `outcome=retry` or a retry target leads on.
    RETRY = "retry"
    #: A part was done; leads on like success.
    PARTIAL = "partial"
    #: Nothing to do: only of a run, at an exit with this outcome.
    SKIPPED = "skipped"


#: Outcomes of a node.
NODE_OUTCOMES = (NodeOutcome.SUCCESS, NodeOutcome.FAILURE, NodeOutcome.RETRY, NodeOutcome.PARTIAL)
#: Outcomes of an exit.
EXIT_OUTCOMES = (NodeOutcome.SUCCESS, NodeOutcome.FAILURE, NodeOutcome.SKIPPED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Clause:
    """One comparison: `key test value`."""

    key: str
    test: str
    value: str

    def is_true(self, outcome: NodeOutcome, context: Any) -> bool:
        """Return whether the comparison is true for an outcome and a context."""
        actual = outcome.value if self.key == "outcome" else _read(context, self.key)
        left, right = _number(actual), _number(self.value)
        if self.test in _ORDERINGS:
            return left is not None and right is not None and _ORDERINGS[self.test](left, right)
        same = left == right if left is not None and right is not None else actual == self.value
        return same if self.test == "=" else not same


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """A conjunction of clauses; true without clauses."""

    clauses: tuple[Clause, ...] = ()
    #: Whether a clause tests the outcome: only such an edge is followed after a failure.
    tests_outcome: bool = field(init=False)

    def __post_init__(self) -> None:
        """Look for the outcome once; each step asks."""
        object.__setattr__(self, "tests_outcome", any(clause.key == "outcome" for clause in self.clauses))

    def is_true(self, outcome: NodeOutcome, context: Any) -> bool:
        """Return whether every clause is true for an outcome and a context."""
        return all(clause.is_true(outcome, context) for clause in self.clauses)


def parse_condition(text: str) -> Condition:
    """Parse a condition; the empty text is always true. Raises ValueError for a malformed clause."""
    if not text.strip():
        return Condition()
    clauses, at = [], 0
    while True:
        match = _CLAUSE.match(text, at)
        if match is None or text[match.end() : match.end() + 2] not in ("", "&&"):
            raise _clause_error(text[at:])
        clauses.append(_clause(match))
        if match.end() == len(text):
            return Condition(clauses=tuple(clauses))
        at = match.end() + len("&&")


def _clause_error(text: str) -> ValueError:
    return ValueError(
        f"{text.strip()!r} is not a comparison; write `outcome=success` or `context.name >= 3`, joined by `&&`"
    )


def _clause(match: re.Match[str]) -> Clause:
    key, test, value = match.group("key", "test", "value")
    if value[:1] in ("'", '"'):
        value = value[1:-1]
    if key == "outcome" and test in ("=", "!=") and value not in NODE_OUTCOMES:
        raise ValueError(f"an outcome is one of {', '.join(NODE_OUTCOMES)}; {value!r} is none of them")
    if test in _ORDERINGS and _number(value) is None:
        raise ValueError(f"`{test}` compares numbers; {value!r} is not a number")
    return Clause(key=key, test=test, value=value)


#: Fields of a heartbeat that older graphs name otherwise.
_RENAMED: Mapping[str, str] = {
    "turn": "round_trip",
    "turns": "round_trips",
    "turns_allowed": "round_trips_allowed",
    "beat_number": "heartbeat_number",
    "stale_beats": "stale_heartbeats",
    "idle_beats": "idle_heartbeats",
    "last_beat": "last_heartbeat",
    "last_beat_at": "last_heartbeat_at",
}


def _read_part(context: Any, name: str) -> Any:
    if isinstance(context, Mapping):
        return context.get(name)
    return None if name.startswith("_") else getattr(context, name, None)


def _read(context: Any, key: str) -> str:
    """Return the value at `context.a.b` as text: of a mapping, or a public attribute; empty where there is none."""
    actual = context
    for name in key.split(".")[1:]:
        found = _read_part(actual, name)
        actual = _read_part(actual, _RENAMED[name]) if found is None and name in _RENAMED else found
    if actual is None:
        return ""
    if isinstance(actual, bool):
        return "true" if actual else "false"
    return str(actual)


@lru_cache(maxsize=1024)
def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    # "nan" is a word: as a number it would not even equal itself.
    return None if math.isnan(number) else number
