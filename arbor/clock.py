"""The clock as a port, with a fake for tests, and the checks of times and time zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from arbor.errors import Invalid


class Clock(Protocol):
    """Returns the time."""

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""
        return datetime.now(UTC)


class FrozenClock:
    """A clock for tests that stops until it is moved."""

    def __init__(self, at: datetime) -> None:
        if at.tzinfo is None:
            raise ValueError(f"a clock needs an aware time (with a zone), got {at!r}")
        self._at = at

    def now(self) -> datetime:
        """Return the time of the clock."""
        return self._at

    def advance(self, by: timedelta) -> None:
        """Move the clock; `by` may be negative, as on a machine whose clock jumps."""
        self._at += by


def to_utc(at: datetime) -> datetime:
    """Return a time in UTC, which is assumed for a time without a zone.

    PostgreSQL accepts no offset of 16 hours or more, so a time from outside is converted before it is used.
    Raises Invalid if it is not in the years 1 to 9999 in UTC.
    """
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError as error:
        raise Invalid(f"a time must be in the years 1 to 9999 in UTC, got {at.isoformat()}") from error


def in_utc(at: datetime) -> datetime:
    """Return a time in UTC. Raises ValueError, which pydantic reports with the name of the field."""
    try:
        return to_utc(at)
    except Invalid as error:
        raise ValueError(str(error)) from error


def check_time_zone(name: str, at: datetime | None) -> None:
    """Raise Invalid for a time without a time zone; `name` names the time in the error."""
    if at is not None and at.utcoffset() is None:
        raise Invalid(f"{name} must have a time zone, got {at.isoformat()}")


def find_time_zone(name: str) -> ZoneInfo:
    """Return a time zone by its name. Raises Invalid."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Invalid(f"there is no time zone {name[:80]!r}; write one such as Europe/Berlin") from error


def format_time(at: datetime) -> str:
    """Format a time for prompts, in UTC, to the minute."""
    # `strftime` takes twice as long, and rendering a prompt formats about thirty times of day.
    return at.astimezone(UTC).isoformat(" ", "minutes").removesuffix("+00:00")
