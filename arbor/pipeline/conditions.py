"""The condition language of edges, and the choice between edges.

    condition := clause *( "&&" clause )
    clause    := key ("=" | "!=" | ">=" | "<=" | ">" | "<") value
    key       := "outcome" | "context." name *( "." name )
    value     := word | number | 'quoted' | "quoted"

A missing key reads as empty. `=` and `!=` compare numbers when both sides are numbers, text otherwise; the four
orderings are true between numbers only.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from arbor.pipeline.outcomes import NODE_OUTCOMES, NodeOutcome

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Clause:
    """One comparison: `key test value`."""

    key: str
    test: str
    value: str

    def is_true(self, outcome: NodeOutcome, context: Any) -> bool:
        """Return whether the comparison is true here."""
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
        """Return whether every clause is true here."""
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


class Choosable(Protocol):
    """The attributes of an edge that decide the choice."""

    @property
    def target(self) -> str: ...
    @property
    def condition(self) -> Condition: ...
    @property
    def weight(self) -> int: ...
    @property
    def label(self) -> str: ...


def choose_edge[E: Choosable](
    edges: Iterable[E], outcome: NodeOutcome, context: Any, *, preferred: str = "", answered: bool = False
) -> E | None:
    """Choose an edge by a true condition, then the preferred label, the higher weight, the earlier name.

    After a failure or retry, only an edge whose condition tests the outcome is followed; `answered`: such an edge was just
    followed. None if there is no such edge.
    """
    went_well = answered or outcome in (NodeOutcome.SUCCESS, NodeOutcome.PARTIAL)
    edges = tuple(edges)
    if went_well and len(edges) == 1 and not edges[0].condition.clauses:
        # Most nodes have one edge.
        return edges[0]
    open_edges = [
        edge
        for edge in edges
        if edge.condition.is_true(outcome, context) and (went_well or edge.condition.tests_outcome)
    ]
    return min(
        open_edges,
        key=lambda edge: (
            not edge.condition.clauses,
            not preferred or edge.label != preferred,
            -edge.weight,
            edge.target,
        ),
        default=None,
    )


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


def _read(context: Any, key: str) -> str:
    """Return the value at `context.a.b` as text: of a mapping, or a public attribute; empty where there is none."""
    actual = context
    for name in key.split(".")[1:]:
        if isinstance(actual, Mapping):
            actual = actual.get(name)
        else:
            actual = None if name.startswith("_") else getattr(actual, name, None)
    if actual is None:
        return ""
    if isinstance(actual, bool):
        return "true" if actual else "false"
    return str(actual)


@lru_cache(maxsize=1024)
def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
