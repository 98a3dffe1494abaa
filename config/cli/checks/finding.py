"""The finding of a check: its verdict, its detail and a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CheckVerdict(StrEnum):
    """How a check came out."""

    #: As it should be.
    OK = "ok"
    #: It works, but a person should know.
    WARN = "warn"
    #: It does not work.
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check saw."""

    check: str
    verdict: CheckVerdict
    detail: str
    remedy: str = ""


def ok(check: str, detail: str) -> Finding:
    return Finding(check=check, verdict=CheckVerdict.OK, detail=detail)


def warn(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check=check, verdict=CheckVerdict.WARN, detail=detail, remedy=remedy)


def fail(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check=check, verdict=CheckVerdict.FAIL, detail=detail, remedy=remedy)
