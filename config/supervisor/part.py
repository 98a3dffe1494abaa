"""What the supervisor is told about each part, and the rule for starting one again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from config.supervisor.launch import Launch

#: A part that ran this long was well; if it ends now, that is a new story.
STABLE_AFTER_S = 30.0
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
#: So many quick ends in a row are called by their name.
CRASH_LOOP_AFTER = 5


class Status(StrEnum):
    """Where a part stands."""

    #: Not started: something it needs is not ready.
    WAITING = "waiting"
    #: Its process runs but does not answer yet.
    STARTING = "starting"
    #: It answers.
    READY = "ready"
    #: A step that ended well.
    DONE = "done"
    #: It ended and will be started again in a moment.
    BACKOFF = "backoff"
    #: It ended again and again; it is still tried, at the longest delay.
    CRASH_LOOP = "crash loop"
    #: Without it nothing can go on, and it failed.
    FAILED = "failed"
    #: Ended because we wanted it.
    STOPPED = "stopped"


def _nothing() -> None:
    """Do nothing: the part needs no such step."""


def _at_once() -> bool:
    """Count as ready as soon as the process runs."""
    return True


@dataclass(frozen=True, kw_only=True)
class Part:
    """One process of the installation, and how to tell how it is."""

    name: str
    #: Called for every start, so that a change of circumstances is met.
    launch: Callable[[], Launch]
    #: Names of the parts that must be ready (or done) before this one starts for the first time.
    needs: tuple[str, ...] = ()
    #: Done before every start; raises an ArborError when it cannot be.
    prepare: Callable[[], None] = _nothing
    #: Asked often while it starts; must answer within a fraction of a second.
    ready: Callable[[], bool] = _at_once
    #: Done each time it has become ready.
    after_ready: Callable[[], None] = _nothing
    #: A step: it ends by itself, and others wait until it has ended well.
    once: bool = False
    #: Everything ends when it cannot be started at all.
    essential: bool = False
    #: After this it is said that it is late.
    ready_within_s: float = 60.0
    #: How long its end is awaited before it is killed.
    stop_within_s: float = 5.0
    #: Lines of its output that tell nothing to a reader.
    noise: re.Pattern[str] | None = None


def restart_delay_s(quick_ends: int) -> float:
    """Return how long to wait after so many quick ends in a row: 0.5 s, doubled each time, at most 30 s."""
    if quick_ends <= 0:
        return FIRST_DELAY_S
    return float(min(FIRST_DELAY_S * 2.0 ** min(quick_ends - 1, 16), LONGEST_DELAY_S))
