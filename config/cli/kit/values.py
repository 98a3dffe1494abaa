"""The parameter types of the command line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from arbor.clock import to_utc
from arbor.errors import Invalid
from arbor.memory.trust import DEFAULT_SOURCE_TRUST, Source

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}

#: The text that removes a limit.
NONE = "none"


class NumberRange(click.FloatRange):
    """A finite number in a range; `nan` is within every range of click's own."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the value."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"must be a finite number, got {value!r}", param, ctx)
        return number


class DurationType(click.ParamType[timedelta]):
    """A length of time: `30s`, `5m`, `1h`, `2d`, or plain seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parse the value."""
        if isinstance(value, timedelta):
            return value
        parsed = _DURATION.fullmatch(str(value).strip().lower())
        if parsed is None:
            self.fail(f"{value!r} is no length of time: write 30s, 5m, 1h or 2d", param, ctx)
        try:
            return timedelta(seconds=float(parsed[1]) * _SECONDS[parsed[2]])
        except OverflowError:
            self.fail(f"{value!r} is too long: write at most {timedelta.max.days}d", param, ctx)


class LifetimeType(DurationType):
    """A length of time, or `none`."""

    name = "lifetime"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the value; `none` stays a text, because None means that the option was not given."""
        return NONE if str(value).lower() == NONE else super().convert(value, param, ctx)


class MomentType(click.ParamType[datetime]):
    """A date, or a date and time in ISO form; UTC by default."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parse the value."""
        if isinstance(value, datetime):
            return value
        try:
            return to_utc(datetime.fromisoformat(str(value)))
        except (Invalid, ValueError):
            self.fail(f"{value!r} is no date: write 2026-12-24 or 2026-12-24T18:00", param, ctx)


class ExpiryType(click.ParamType[datetime]):
    """A future moment: a length of time from now, or a date."""

    name = "expiry"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parse the value."""
        now = datetime.now(UTC)
        text = str(value).strip().lower()
        if text.startswith("-") and _DURATION.fullmatch(text[1:]):
            self.fail(f"{value!r} is over: write 2h, 2d or a date to come", param, ctx)
        if _DURATION.fullmatch(text):
            try:
                moment = now + DurationType().convert(value, param, ctx)
            except OverflowError:
                self.fail(f"{value!r} is too long: write a date up to 9999-12-31", param, ctx)
        else:
            moment = MomentType().convert(value, param, ctx)
        if moment <= now:
            self.fail(f"{value!r} is over: write 2h, 2d or a date to come", param, ctx)
        return moment


class LimitType(click.ParamType[Any]):
    """A number, or `none`."""

    name = "limit"

    def __init__(self, number: type[int] | type[float] | type[Decimal]) -> None:
        self._number = number

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the value; `none` stays a text, because None means that the option was not given."""
        if str(value).lower() == NONE:
            return NONE
        try:
            return self._number(value)
        except (ValueError, InvalidOperation):
            self.fail(f"{value!r} is no number: write 100, or none for no limit", param, ctx)


class CostType(click.ParamType[tuple[str, Any]]):
    """The cost of an action, `recall=2`, or `recall=none` for its default."""

    name = "cost"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Parse the value; the cost is None for the default."""
        action, _, cost = str(value).partition("=")
        if action and cost.lower() == NONE:
            return action.strip(), None
        try:
            return action.strip(), int(cost)
        except ValueError:
            self.fail(f"{value!r} is no cost: write recall=2, or recall=none for the default", param, ctx)


class HoursType(click.ParamType[Any]):
    """Hours of a day, `08:00-22:00`, or `none`."""

    name = "hours"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the value."""
        if str(value).lower() == NONE:
            return NONE
        start, _, end = str(value).partition("-")
        try:
            hours = time.fromisoformat(start.strip()), time.fromisoformat(end.strip())
            if any(hour.tzinfo for hour in hours):
                raise ValueError("an offset")
        except ValueError:
            self.fail(f"{value!r} are no hours: write 08:00-22:00, or none for always", param, ctx)
        return hours


def index_by_name[T](pairs: Iterable[tuple[str, T]], *, option: str) -> dict[str, T]:
    """Index the values of a repeatable option by their names. Raises UsageError for two values of one name."""
    values: dict[str, T] = {}
    for name, value in pairs:
        if name in values:
            raise click.UsageError(f"{option} has two values for {name}: give one of them")
        values[name] = value
    return values


def json_or_text(text: str) -> Any:
    """Return a value that is written as JSON, such as `2` or `true`; anything else is a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class TrustedSource(click.ParamType[Source]):
    """A source of a fact: `document:harbour-log@0.9`, `person:Ana`."""

    name = "source"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Source:
        """Parse the value."""
        if isinstance(value, Source):
            return value
        kind, colon, source = str(value).partition(":")
        reference, at, trust = source.rpartition("@")
        if not colon or not kind or not source:
            self.fail(
                f"{value!r} is no source: write KIND:NAME or KIND:NAME@TRUST, as document:log@0.9", param, ctx
            )
        try:
            if not at:
                return Source(kind=kind, reference=source)
            return Source(kind=kind, reference=reference, trust=float(trust or DEFAULT_SOURCE_TRUST))
        except (Invalid, ValueError) as error:
            self.fail(f"{value!r} is no source: {error}", param, ctx)
