"""The finding of a check: its verdict, its detail and a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class CheckVerdict(StrEnum):
    """The verdict of a check."""

    #: Everything is right.
    OK = "ok"
    #: The subject works, but a person should know about a problem.
    WARN = "warn"
    #: The subject does not work.
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check."""

    check: str
    verdict: CheckVerdict
    detail: str
    remedy: str = ""


def name_first(names: Sequence[str], *, most: int | None = None, total: int | None = None) -> str:
    """Return the first names, with the number of the others; `total` counts all where `names` has only the first ones."""
    first = names[:most]
    others = (len(names) if total is None else total) - len(first)
    return ", ".join(first) + (f" and {others:,} more" if others else "")


def ok(check: str, detail: str) -> Finding:
    return Finding(check=check, verdict=CheckVerdict.OK, detail=detail)


def warn(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check=check, verdict=CheckVerdict.WARN, detail=detail, remedy=remedy)


def fail(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check=check, verdict=CheckVerdict.FAIL, detail=detail, remedy=remedy)
