"""Read conversations with a line per turn: OpenAI-style JSON, and plain `Speaker: text`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from arbor.memory.content import MAX_CONTENT_BYTES
from arbor.memory.turns import BadLine, Turn, checked, is_plausible

#: A silence after which a new session begins (seed 004: an episode is split by a gap of more than 30 minutes).
SESSION_GAP = timedelta(minutes=30)
#: Between turns without a time of their own.
_NEXT_TURN = timedelta(seconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Epoch times above this are in milliseconds: it is the year 5138 in seconds.
_MILLISECONDS_ABOVE = 1e11

_PLAIN = re.compile(
    r"\s*(?:\[(?P<at>[0-9T:.,Z+ /-]{8,40})\]\s*)?(?P<speaker>[^\s:\[\]][^:\[\]\n]{0,59}?)\s{0,4}:(?:\s+(?P<text>.*))?",
    re.DOTALL,
)
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One line, taken apart."""

    speaker: str
    text: str
    at: datetime | None


type Line = tuple[int, str | BadLine]


def read_messages(lines: Iterable[Line], *, name: str, start: datetime) -> Iterator[Turn | BadLine]:
    """Yield the turns of lines like `{"role": "user", "content": "Hi", "timestamp": 1700000000}`."""
    return _in_sessions(lines, _parse_message, name=name, start=start)


def read_plain(lines: Iterable[Line], *, name: str, start: datetime) -> Iterator[Turn | BadLine]:
    """Yield the turns of lines like `Alice: hello`; a line that begins with white space continues the one before."""
    return _in_sessions(_unfolded(lines), _parse_plain, name=name, start=start)


def _unfolded(lines: Iterable[Line]) -> Iterator[Line]:
    pending: tuple[int, str] | None = None
    for number, line in lines:
        if isinstance(line, str) and pending is not None and line[:1] in (" ", "\t"):
            if len(pending[1]) <= MAX_CONTENT_BYTES:  # what is longer will be refused anyway
                pending = pending[0], f"{pending[1]}\n{line.strip()}"
            continue
        if pending is not None:
            yield pending
            pending = None
        if isinstance(line, str):
            pending = number, line
        else:
            yield number, line
    if pending is not None:
        yield pending


def _in_sessions(
    lines: Iterable[Line], parse: Callable[[str], Said | str], *, name: str, start: datetime
) -> Iterator[Turn | BadLine]:
    """Yield a turn for each line, a new session after each silence; what `parse` returns as text is a reason."""
    session, position = 1, -1
    last: datetime | None = None
    for number, line in lines:
        # A bad line keeps its place: when it is mended, the turns behind it are still the same ones.
        position += 1
        said = line if isinstance(line, BadLine) else parse(line)
        if isinstance(said, str):
            said = BadLine(number=number, reason=said)
        if isinstance(said, BadLine):
            yield said
            continue
        at = said.at or (last + _NEXT_TURN if last else start)
        if last is not None and abs(at - last) > SESSION_GAP:
            session, position = session + 1, 0
        last = at
        yield checked(
            Turn(
                line=number,
                session=f"{name}/{session}",
                position=position,
                speaker=said.speaker,
                text=said.text,
                at=at,
            )
        )


def parse_record(line: str) -> dict[str, Any] | None:
    """Return the JSON object of a line, or None if it is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _parse_message(line: str) -> Said | str:
    record = parse_record(line)
    if record is None:
        return f"expected a JSON object with role and content, got {line.strip()[:40]!r}"
    role, name = record.get("role"), record.get("name")
    speaker = name if isinstance(name, str) and name.strip() else role
    if not isinstance(speaker, str) or not speaker.strip():
        return f"role must be a string such as 'user', got {role!r:.60}"
    text = _text(record.get("content"))
    if text is None:
        return f"content must be a string, got {record.get('content')!r:.60}"
    at: datetime | None = None
    if (stamp := record.get("timestamp")) is not None:
        at = parse_moment(stamp)
        if at is None:
            return f"timestamp must be ISO 8601 or seconds since 1970, got {stamp!r:.60}"
    return Said(speaker=speaker.strip(), text=text, at=at)


def _text(content: Any) -> str | None:
    """Return a message's text; of a list of parts those that are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _parse_plain(line: str) -> Said | str:
    match = _PLAIN.fullmatch(line)
    if match is None or not _LETTER.search(match["speaker"]):
        return f"expected `Speaker: text`, got {line.strip()[:40]!r}"
    at: datetime | None = None
    if match["at"] is not None:
        at = parse_moment(match["at"])
        if at is None:
            return f"the time must be ISO 8601, as in [2024-05-01 10:30], got [{match['at']}]"
    return Said(speaker=match["speaker"].strip(), text=match["text"] or "", at=at)


def is_plain(line: str) -> bool:
    """Return whether the line is like `Speaker: text`."""
    return isinstance(_parse_plain(line), Said)


def is_dated(line: str) -> bool:
    """Return whether the line is like `[2024-05-01 10:30] Speaker: text`; it begins as a JSON list does."""
    said = _parse_plain(line)
    return isinstance(said, Said) and said.at is not None


def parse_moment(stamp: Any) -> datetime | None:
    """Return the moment of an ISO 8601 text or a count of (milli)seconds since 1970, in UTC; None for anything else.

    A time without a zone is taken as UTC.
    """
    moment: datetime | None = None
    try:
        if isinstance(stamp, str):
            moment = datetime.fromisoformat(stamp.strip())
            moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
        elif isinstance(stamp, int | float) and not isinstance(stamp, bool):
            seconds = stamp / 1000 if abs(stamp) > _MILLISECONDS_ABOVE else stamp
            moment = _EPOCH + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return None
    return moment if moment is not None and is_plausible(moment) else None
