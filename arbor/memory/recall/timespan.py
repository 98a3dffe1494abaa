"""Parse the time that a query names: "on 3 May 2023", "in June", "last week"."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from arbor.clock import check_time_zone

#: The days within which nearness falls to 1/e: people talk about an event for some days around it. The benefit is flat from
#: 3 to 20 (docs/explanation/recall.md).
NEARNESS_DAYS = 7.0

#: The limits of a plausible clock. A wrong clock counts as its limit, so that "99 years ago" is still a valid date.
EARLIEST = datetime(1000, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)

#: The mean length of a year.
YEAR_DAYS = 365.25
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
#: The first month of each season on the northern hemisphere; a winter belongs to the year in which it begins.
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?\b"
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_SEASON = r"(?P<season>spring|summer|autumn|fall|winter)\b"
#: The words after which a month or season without a year ("may", "march", "fall") is a date.
_PREPOSITION = (
    r"\b(?:in|of|by|since|until|till|before|after|during|from|to|between|and|early|mid|late|this|next"
    r"|(?P<last>last))[ -](?:the )?"
)
#: The patterns in the order of their search; each match is removed before the next pattern is tried.
_DATED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>(?:19|20)\d\d)-(?P<number>[01]\d)-(?P<day>[0-3]\d)\b",
        rf"\b{_DAY}(?: of)? {_MONTH}(?:,? ?{_YEAR})?",
        rf"\b{_MONTH} {_DAY}(?:,? ?{_YEAR})?",
        rf"\b(?:{_MONTH}|{_SEASON})(?:,| of| in)? {_YEAR}",
        rf"{_PREPOSITION}(?:{_MONTH}|{_SEASON})",
        rf"\b{_YEAR}",
    )
)
_RELATIVE = re.compile(
    r"\b(?:(?P<near>today|tonight|yesterday|last night)"
    r"|(?P<last>last|past|previous) (?P<unit>week|weekend|month|year)"
    r"|(?P<count>\d{1,2}|an?|one|two|three|four|five|six) (?P<units>day|week|month|year)s? ago)\b",
    re.IGNORECASE,
)
#: A quick check: every date contains one of these parts, and most queries contain none.
_MENTION = re.compile(
    "|".join(
        (r"\d", *_MONTHS, *_SEASONS, "today", "tonight", "yesterday", "last", "past", "previous", "ago")
    ),
    re.IGNORECASE,
)
#: The characters of a query that are searched: a query names its time early, and a pasted page of dates is not a query.
_READ_CHARACTERS = 1_000


@dataclass(frozen=True, kw_only=True)
class TimeSpan:
    """A stretch of time, from `start` to `end`."""

    start: datetime
    end: datetime
    #: Whether the span recurs each year: a day, month or season without a year.
    yearly: bool = False

    def around(self) -> tuple[datetime, datetime] | None:
        """Return the moments between which nearness is considerable; None for a yearly span."""
        margin = timedelta(days=2 * NEARNESS_DAYS)
        return None if self.yearly else (self.start - margin, self.end + margin)

    def nearness(self, moment: datetime) -> float:
        """Return 1 inside the span, falling to 1/e of that with each NEARNESS_DAYS away from it."""
        shift = timedelta(0)
        if self.yearly:
            middle = self.start + (self.end - self.start) / 2
            shift = timedelta(days=YEAR_DAYS) * round((moment - middle).days / YEAR_DAYS)
        # Differences first: the sum of a moment and a shift may exceed the range of datetime.
        away = max((self.start - moment) + shift, (moment - self.end) - shift, timedelta(0))
        return math.exp(-away.total_seconds() / 86_400 / NEARNESS_DAYS)


def mentioned_span(text: str, *, now: datetime) -> TimeSpan | None:
    """Return the time that a text mentions, from its first to its last moment; None without any.

    Days, months, seasons and years are found by name; "yesterday", "last month" and "three weeks ago" are relative to `now`,
    limited to EARLIEST and LATEST. Raises Invalid for a `now` without time zone.
    """
    check_time_zone("now", now)
    now = min(max(now, EARLIEST), LATEST)
    text = text[:_READ_CHARACTERS]
    if not _MENTION.search(text):
        return None
    dated, rest = _find_dated(text)
    year = next((int(year) for parts in dated if (year := parts.get("year"))), None)
    spans = [span for parts in dated if (span := _read_dated(parts, year, now)) is not None]
    spans += [_read_relative(match, now) for match in _RELATIVE.finditer(rest)]
    definite = [span for span in spans if not span.yearly] or spans
    if not definite:
        return None
    return TimeSpan(
        start=min(span.start for span in definite),
        end=max(span.end for span in definite),
        yearly=definite[0].yearly,
    )


def _find_dated(text: str) -> tuple[list[dict[str, str | None]], str]:
    """Return the parts of each date found, and the text without them."""
    dates: list[dict[str, str | None]] = []

    def remove(match: re.Match[str]) -> str:
        dates.append(match.groupdict())
        return " · "

    for pattern in _DATED:
        text = pattern.sub(remove, text)
    return dates, text


def _read_dated(parts: dict[str, str | None], year: int | None, now: datetime) -> TimeSpan | None:
    """Return the span of one date; `year`, from elsewhere in the text, applies to a date without a year."""
    known_year = int(parts.get("year") or 0) or year
    yearly = known_year is None
    first_year = known_year or now.year
    if number := parts.get("number"):
        month, months = int(number), 1
    elif name := parts.get("month"):
        month, months = _MONTHS.index(name[:3].lower()) + 1, 1
    elif season := parts.get("season"):
        month, months = _SEASONS[season.lower()], 3
    elif first_year > now.year + 1:
        return None  # "Cyberpunk 2077"
    else:
        month, months = 1, 12
    if not 1 <= month <= 12:
        return None  # 2023-19-01
    if yearly and parts.get("last"):
        yearly = False
        # A winter that began last year may still last.
        while _utc(first_year, month + months) > now:
            first_year -= 1
    if day := int(parts.get("day") or 0):
        return _read_day(first_year, month, day, yearly=yearly)
    return TimeSpan(start=_utc(first_year, month), end=_utc(first_year, month + months), yearly=yearly)


def _read_day(year: int, month: int, day: int, *, yearly: bool) -> TimeSpan | None:
    try:
        start = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None  # 31 June: no such day
    return TimeSpan(start=start, end=start + timedelta(days=1), yearly=yearly)


def _read_relative(match: re.Match[str], now: datetime) -> TimeSpan:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if near := match["near"]:
        first = midnight if near.lower() in {"today", "tonight"} else midnight - timedelta(days=1)
        return TimeSpan(start=first, end=first + timedelta(days=1))
    if count := match["count"]:
        units = match["units"].lower()
        number = _COUNTS.get(count.lower()) or int(count)
        middle = now - timedelta(days=_UNIT_DAYS[units] * number)
        half = timedelta(days=_UNIT_DAYS[units] / 2)
        return TimeSpan(start=middle - half, end=middle + half)
    unit = match["unit"].lower()
    if unit in {"week", "weekend"}:
        return TimeSpan(start=midnight - timedelta(days=14), end=now)
    if match["last"].lower() == "past":
        return TimeSpan(start=now - timedelta(days=_UNIT_DAYS[unit]), end=now)
    if unit == "month":
        return TimeSpan(start=_utc(now.year, now.month - 1), end=_utc(now.year, now.month))
    return TimeSpan(start=_utc(now.year - 1, 1), end=_utc(now.year, 1))


def _utc(year: int, month: int) -> datetime:
    """Return the first moment of a month; months below 1 and above 12 belong to other years."""
    years, index = divmod(month - 1, 12)
    return datetime(year + years, index + 1, 1, tzinfo=UTC)
