"""Constraints of a grant: its times, its rate, its number of uses, and the hours of the week in which it is in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import lru_cache
from typing import Any, Self
from zoneinfo import ZoneInfo

import orjson

from arbor.clock import find_time_zone
from arbor.errors import CapabilityInvalid, Invalid

MAX_USES = 1_000_000
#: The longest period of a rate: 31 days.
MAX_PERIOD_S = 31 * 24 * 3600
_DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAYS = tuple(name[:3] for name in _DAY_NAMES)
_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES
_WINDOWS_CACHED = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """At most `uses` in any period of `seconds`."""

    uses: int
    seconds: int

    def __post_init__(self) -> None:
        if not 1 <= self.uses <= MAX_USES or not 1 <= self.seconds <= MAX_PERIOD_S:
            raise CapabilityInvalid(
                f"a rate is 1 to {MAX_USES} uses in 1 to {MAX_PERIOD_S} seconds, got {self}"
            )

    def __str__(self) -> str:
        return f"{self.uses} in {self.seconds} s"

    def includes(self, narrower: Rate) -> bool:
        """Return whether uses within the other rate are always within this one."""
        # A period of this rate is covered by this number of periods of the other one.
        periods = -(-self.seconds // narrower.seconds)
        return periods * narrower.uses <= self.uses


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeWindow:
    """Hours of the days of a week; an end before the start is on the next day. `days`: 0 is Monday."""

    start: time
    end: time
    days: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6)
    zone: str = "UTC"

    def __post_init__(self) -> None:
        # `to_json` stores hours and minutes only.
        if any(at != time(at.hour, at.minute) for at in (self.start, self.end)):
            raise CapabilityInvalid(
                "a time window begins and ends at whole minutes without an offset, such as 09:00-17:00"
            )
        if self.start == self.end:
            raise CapabilityInvalid("a time window begins and ends at different times, such as 09:00-17:00")
        if not self.days or any(day not in range(7) for day in self.days):
            raise CapabilityInvalid(f"a time window has days of {', '.join(_DAYS)}")
        try:
            find_time_zone(self.zone)
        except Invalid as error:
            raise CapabilityInvalid(str(error)) from error

    def __str__(self) -> str:
        days = "" if len(self.days) == len(_DAYS) else " " + ",".join(_DAYS[day] for day in self.days)
        return f"{self.start:%H:%M}-{self.end:%H:%M}{days} {self.zone}"

    @classmethod
    def parse(cls, text: str, *, zone: str = "UTC") -> Self:
        """Read `09:00-17:00` or `09:00-17:00 mon,tue,fri`, as entered. Raises CapabilityInvalid."""
        hours, _, days = text.strip().lower().partition(" ")
        try:
            start, end = (time.fromisoformat(part) for part in hours.split("-"))
            named = tuple(sorted({_day_number(day.strip()) for day in days.split(",")})) if days else ()
        except ValueError as error:
            raise CapabilityInvalid(
                f"a time window is written like 09:00-17:00 or 09:00-17:00 mon,fri, got {text[:80]!r}"
            ) from error
        return cls(start=start, end=end, zone=zone, **({"days": named} if named else {}))

    def is_open(self, now: datetime) -> bool:
        """Return whether the window is open."""
        local = now.astimezone(ZoneInfo(self.zone))
        minute = local.weekday() * _DAY_MINUTES + local.hour * 60 + local.minute
        begin, length = self._hours
        return any((minute - day * _DAY_MINUTES - begin) % _WEEK_MINUTES < length for day in self.days)

    def includes(self, narrower: TimeWindow) -> bool:
        """Return whether this window is open whenever the other one is; windows of two time zones are never compared."""
        return self.zone == narrower.zone and _open_minutes(narrower.days, *narrower._hours) <= _open_minutes(
            self.days, *self._hours
        )

    @property
    def _hours(self) -> tuple[int, int]:
        """Return the first minute of the day, and the number of minutes."""
        begin, end = (at.hour * 60 + at.minute for at in (self.start, self.end))
        return begin, (end - begin) % _DAY_MINUTES


def _day_number(text: str) -> int:
    """Return the number of a day from the first three letters of its name or more. Raises ValueError."""
    for number, name in enumerate(_DAY_NAMES):
        if len(text) >= 3 and name.startswith(text):
            return number
    raise ValueError(f"{text!r} is no day")


@lru_cache(maxsize=_WINDOWS_CACHED)
def _open_minutes(days: tuple[int, ...], begin: int, length: int) -> frozenset[int]:
    """Return the minutes of the week in which a window is open."""
    return frozenset(
        (day * _DAY_MINUTES + begin + minute) % _WEEK_MINUTES for day in days for minute in range(length)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Constraints:
    """The constraints of a grant; None: not constrained."""

    not_before: datetime | None = None
    expires_at: datetime | None = None
    rate: Rate | None = None
    max_uses: int | None = None
    window: TimeWindow | None = None

    def __post_init__(self) -> None:
        if self.max_uses is not None and not 1 <= self.max_uses <= MAX_USES:
            raise CapabilityInvalid(f"a grant has 1 to {MAX_USES} uses, got {self.max_uses}")
        if self.not_before and self.expires_at and self.expires_at <= self.not_before:
            raise CapabilityInvalid("a grant expires after it begins")

    @property
    def is_counted(self) -> bool:
        """Return whether uses have to be recorded."""
        return self.rate is not None or self.max_uses is not None

    def to_json(self) -> dict[str, Any]:
        """Return the constraints as JSON; empty if there are none."""
        values = {
            "not_before": _utc(self.not_before),
            "expires_at": _utc(self.expires_at),
            "rate": [self.rate.uses, self.rate.seconds] if self.rate else None,
            "max_uses": self.max_uses,
            "window": _window_json(self.window) if self.window else None,
        }
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> Self:
        """Read stored constraints. Raises CapabilityInvalid."""
        if not stored:
            return cls()
        if unknown := stored.keys() - set(cls.__dataclass_fields__):
            # An unknown constraint would otherwise be ignored, which would widen the grant.
            raise CapabilityInvalid(f"unknown constraints: {', '.join(sorted(map(str, unknown)))}")
        rate, window = stored.get("rate"), stored.get("window")
        try:
            return cls(
                not_before=_read_time(stored.get("not_before")),
                expires_at=_read_time(stored.get("expires_at")),
                rate=Rate(uses=rate[0], seconds=rate[1]) if rate else None,
                max_uses=stored.get("max_uses"),
                window=_read_window(window) if window else None,
            )
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise CapabilityInvalid(f"stored constraints are damaged: {error}") from error

    def canonical(self) -> bytes:
        """Return the bytes that a signature covers."""
        return orjson.dumps(self.to_json(), option=orjson.OPT_SORT_KEYS)

    def widening(self, parent: Constraints) -> str:
        """Return the constraint that is wider than the parent's; empty if none is."""
        if parent.not_before and (self.not_before is None or self.not_before < parent.not_before):
            return f"it would begin before {_utc(parent.not_before)}"
        if parent.expires_at and (self.expires_at is None or self.expires_at > parent.expires_at):
            return f"it would expire after {_utc(parent.expires_at)}"
        if parent.max_uses is not None and (self.max_uses is None or self.max_uses > parent.max_uses):
            return f"it would have more than {parent.max_uses} uses"
        if parent.rate and (self.rate is None or not parent.rate.includes(self.rate)):
            return f"its rate would be above {parent.rate}"
        if parent.window and (self.window is None or not parent.window.includes(self.window)):
            return f"it would be in force outside {parent.window}"
        return ""


#: The constraints of a grant without any.
UNCONSTRAINED = Constraints()


def constraints_from_input(
    *,
    not_before: datetime | None = None,
    expires_at: datetime | None = None,
    max_uses: int | None = None,
    rate_uses: int | None = None,
    rate_seconds: int | None = None,
    hours: str = "",
    time_zone: str = "UTC",
) -> Constraints:
    """Return the constraints that a person or a program gives. Raises CapabilityInvalid."""
    if (rate_uses is None) != (rate_seconds is None):
        raise CapabilityInvalid("a rate needs both its uses and its seconds")
    if time_zone != "UTC" and not hours.strip():
        raise CapabilityInvalid(f"a time zone needs the hours that it is for, got {time_zone!r} alone")
    return Constraints(
        not_before=not_before,
        expires_at=expires_at,
        max_uses=max_uses,
        rate=Rate(uses=rate_uses, seconds=rate_seconds)
        if rate_uses is not None and rate_seconds is not None
        else None,
        window=TimeWindow.parse(hours, zone=time_zone) if hours.strip() else None,
    )


def _utc(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat() if at is not None else None


def _read_time(text: str | None) -> datetime | None:
    if text is None:
        return None
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise CapabilityInvalid(f"a time needs a time zone, got {text!r}")
    return at


def _window_json(window: TimeWindow) -> list[Any]:
    return [f"{window.start:%H:%M}", f"{window.end:%H:%M}", list(window.days), window.zone]


def _read_window(stored: list[Any]) -> TimeWindow:
    start, end, days, zone = stored
    return TimeWindow(
        start=time.fromisoformat(start), end=time.fromisoformat(end), days=tuple(days), zone=zone
    )
