"""Retention: the time until a memory expires, by its kind (seed 001, "Automatic Expiration")."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum


class Retention(StrEnum):
    """The kinds of memories, as far as retention depends on them."""

    #: Small talk, acknowledgments, what was said in passing.
    ROUTINE = "routine"
    #: A task was carried out.
    TASK = "task"
    #: Something was decided, approved, paid.
    DECISION = "decision"
    #: Something failed.
    ERROR = "error"
    #: Kept as long as it matters: it has no time of its own, but fades and counts for the quota.
    LASTING = "lasting"
    #: "Remember this": kept until a person says otherwise. No job of maintenance touches it.
    PERMANENT = "permanent"


#: Seed 001, "Automatic Expiration". Settings turn them; None is for ever.
DEFAULT_TTL: dict[Retention, timedelta | None] = {
    Retention.ROUTINE: timedelta(days=7),
    Retention.TASK: timedelta(days=30),
    Retention.DECISION: timedelta(days=90),
    Retention.ERROR: timedelta(days=14),
    Retention.LASTING: None,
    Retention.PERMANENT: None,
}
