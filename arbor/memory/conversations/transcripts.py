"""Read conversations from files: OpenAI-style JSON, plain `Speaker: text`, and LoCoMo's dialogs (Maharana et al., 2024)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from arbor.clock import to_utc
from arbor.errors import ConversationInvalid, Invalid
from arbor.memory.content import MAX_CONTENT_BYTES
from arbor.memory.conversations.turns import BadLine, Turn, check_turn_content, is_plausible
from arbor.memory.episodes import DEFAULT_GAP

#: The time between turns without a time of their own.
_UNTIMED_INTERVAL = timedelta(seconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Epoch times above this are in milliseconds: in seconds, it is the year 5138.
_MILLISECONDS_ABOVE = 1e11

_PLAIN = re.compile(
    r"\s*(?:\[(?P<at>[0-9T:.,Z+ /-]{8,40})\]\s*)?(?P<speaker>[^\s:\[\]][^:\[\]\n]{0,59}?)\s{0,4}:(?:\s+(?P<text>.*))?",
    re.DOTALL,
)
_LETTER = re.compile(r"[^\W\d_]")
#: The time between turns of a session that has one date for all its turns.
_TURN_INTERVAL = timedelta(seconds=30)
#: The time between sessions where a date is missing.
_NEXT_DAY = timedelta(days=1)
_SESSION = re.compile(r"session_(\d{1,6})")
_DATE_FORM = "%I:%M %p on %d %B, %Y"
_LISTED_SAMPLES = 20

#: The number of a line, and its text, or the reason why it cannot be read.
type NumberedLine = tuple[int, str | BadLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLine:
    """The parts of one line."""

    speaker: str
    text: str
    at: datetime | None


def read_messages(lines: Iterable[NumberedLine], *, name: str, start: datetime) -> Iterator[Turn | BadLine]:
    """Yield the turns of lines like `{"role": "user", "content": "Hi", "timestamp": 1700000000}`."""
    return _split_sessions(lines, _parse_message, name=name, start=start)


def read_plain(lines: Iterable[NumberedLine], *, name: str, start: datetime) -> Iterator[Turn | BadLine]:
    """Yield the turns of lines like `Alice: hello`; a line that begins with white space continues the one before."""
    return _split_sessions(_unfold(lines), _parse_plain, name=name, start=start)


def _unfold(lines: Iterable[NumberedLine]) -> Iterator[NumberedLine]:
    pending: tuple[int, str] | None = None
    for number, line in lines:
        if isinstance(line, str) and pending is not None and line[:1] in (" ", "\t"):
            if len(pending[1]) <= MAX_CONTENT_BYTES:  # A longer text is refused anyway.
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


def _split_sessions(
    lines: Iterable[NumberedLine], parse: Callable[[str], ParsedLine | str], *, name: str, start: datetime
) -> Iterator[Turn | BadLine]:
    """Yield a turn for each line, with a new session after each gap that would split an episode.

    `parse` returns a text as the reason of a bad line.
    """
    session, position = 1, -1
    last: datetime | None = None
    for number, line in lines:
        # A bad line counts as a position, so that the turns after it do not change when it is corrected.
        position += 1
        parsed = line if isinstance(line, BadLine) else parse(line)
        if isinstance(parsed, str):
            parsed = BadLine(number=number, reason=parsed)
        if isinstance(parsed, BadLine):
            yield parsed
            continue
        at = parsed.at or (last + _UNTIMED_INTERVAL if last else start)
        if last is not None and abs(at - last) > DEFAULT_GAP:
            session, position = session + 1, 0
        last = at
        yield check_turn_content(
            Turn(
                line=number,
                session=f"{name}/{session}",
                position=position,
                speaker=parsed.speaker,
                text=parsed.text,
                at=at,
            )
        )


def parse_record(line: str) -> dict[str, Any] | None:
    """Return the JSON object of a line, or None for a line that is not an object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _parse_message(line: str) -> ParsedLine | str:
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
    return ParsedLine(speaker=speaker.strip(), text=text, at=at)


def _text(content: Any) -> str | None:
    """Return a message's text; of a list of parts, the text parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _parse_plain(line: str) -> ParsedLine | str:
    match = _PLAIN.fullmatch(line)
    if match is None or not _LETTER.search(match["speaker"]):
        return f"expected `Speaker: text`, got {line.strip()[:40]!r}"
    at: datetime | None = None
    if match["at"] is not None:
        at = parse_moment(match["at"])
        if at is None:
            return f"the time must be ISO 8601, as in [2024-05-01 10:30], got [{match['at']}]"
    return ParsedLine(speaker=match["speaker"].strip(), text=match["text"] or "", at=at)


def is_plain(line: str) -> bool:
    """Return whether the line is like `Speaker: text`."""
    return isinstance(_parse_plain(line), ParsedLine)


def is_dated(line: str) -> bool:
    """Return whether the line is like `[2024-05-01 10:30] Speaker: text`; such a line begins as a JSON list does."""
    parsed = _parse_plain(line)
    return isinstance(parsed, ParsedLine) and parsed.at is not None


def parse_moment(stamp: Any) -> datetime | None:
    """Parse an ISO 8601 text or a count of (milli)seconds since 1970 as UTC; return None for anything else.

    UTC is assumed for a time without a zone.
    """
    moment: datetime | None = None
    try:
        if isinstance(stamp, str):
            moment = to_utc(datetime.fromisoformat(stamp.strip()))
        elif isinstance(stamp, int | float) and not isinstance(stamp, bool):
            seconds = stamp / 1000 if abs(stamp) > _MILLISECONDS_ABOVE else stamp
            moment = _EPOCH + timedelta(seconds=seconds)
    except (ValueError, OverflowError, Invalid):
        return None
    return moment if moment is not None and is_plausible(moment) else None


@dataclass(frozen=True, kw_only=True)
class Dialog:
    """One dialog of a LoCoMo file."""

    sample: str
    #: The sessions by number.
    sessions: dict[int, list[Any]]
    #: The dates by number, as written: "1:56 pm on 8 May, 2023".
    dates: dict[int, Any]

    @property
    def total(self) -> int:
        """The number of turns, good or bad."""
        return sum(len(turns) for turns in self.sessions.values())


def find_dialog(document: Any, *, name: str, sample: str | None) -> Dialog:
    """Return the dialog of a sample in a parsed file of one dialog or a list of them.

    Raises ConversationInvalid without a dialog, for a `sample` that does not name exactly one, and for several dialogs without a
    `sample`.
    """
    items = document if isinstance(document, list) else [document]
    dialogs = [dialog for item in items if (dialog := _dialog(item)) is not None]
    if not dialogs:
        raise ConversationInvalid(
            f"{name} contains JSON, but no LoCoMo dialog with lists named session_1, session_2…"
        )
    if sample is not None:
        dialogs = [dialog for dialog in dialogs if dialog.sample == sample] or dialogs
    if len(dialogs) == 1 and sample in (None, dialogs[0].sample):
        return dialogs[0]
    names = ", ".join(dialog.sample or "(no name)" for dialog in dialogs[:_LISTED_SAMPLES])
    more = f" and {len(dialogs) - _LISTED_SAMPLES} more" if len(dialogs) > _LISTED_SAMPLES else ""
    if len(dialogs) == 1:
        raise ConversationInvalid(f"{name} contains one dialog, {names}, and no sample {sample!r}")
    raise ConversationInvalid(
        f"{name} contains {len(dialogs)} dialogs; name one of them as the sample: {names}{more}"
    )


def _dialog(item: Any) -> Dialog | None:
    if not isinstance(item, dict):
        return None
    conversation = item.get("conversation", item)
    if not isinstance(conversation, dict):
        return None
    numbers = {key: int(match[1]) for key in conversation if (match := _SESSION.fullmatch(key))}
    lists = {n: conversation[key] for key, n in numbers.items() if isinstance(conversation[key], list)}
    if not lists:
        return None
    sessions = {n: turns for n, turns in lists.items() if turns}
    return Dialog(
        sample=str(item.get("sample_id", "")),
        sessions=dict(sorted(sessions.items())),
        dates={n: conversation.get(f"session_{n}_date_time") for n in sessions},
    )


def read_dialog(dialog: Dialog, *, name: str, start: datetime) -> Iterator[Turn | BadLine]:
    """Yield the turns, session after session; `start` is the time of a first session without a date."""
    line = 0
    at = start
    for number, turns in dialog.sessions.items():
        session = f"{name}/session_{number}"
        date = parse_date(dialog.dates[number])
        if date is None:
            reason = f"session_{number}_date_time must be like '1:56 pm on 8 May, 2023', got {dialog.dates[number]!r:.80}"
            yield BadLine(number=line + 1, reason=reason)
            date = at + _NEXT_DAY if line else at
        for position, turn in enumerate(turns):
            line += 1
            at = date + _TURN_INTERVAL * position
            yield _read_turn(turn, line=line, session=session, position=position, at=at)


def _read_turn(turn: Any, *, line: int, session: str, position: int, at: datetime) -> Turn | BadLine:
    if not isinstance(turn, dict):
        return BadLine(number=line, reason=f"a turn must be an object, got {type(turn).__name__}")
    speaker, text, caption = turn.get("speaker"), turn.get("text", ""), turn.get("blip_caption")
    if not isinstance(speaker, str) or not speaker.strip():
        return BadLine(number=line, reason="a turn must name its speaker")
    if not isinstance(text, str):
        return BadLine(number=line, reason=f"a turn's text must be a string, got {type(text).__name__}")
    if isinstance(caption, str) and caption.strip():
        # The description of an image is part of the turn, because people ask about it.
        text = f"{text} [image: {caption}]".lstrip()
    return check_turn_content(
        Turn(
            line=line,
            session=session,
            position=position,
            speaker=speaker.strip(),
            text=text,
            at=at,
            source_id=str(turn.get("dia_id", ""))[:100],
        )
    )


def parse_date(text: Any) -> datetime | None:
    """Parse a date like "1:56 pm on 8 May, 2023" as UTC; return None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        date = datetime.strptime(" ".join(text.split()), _DATE_FORM).replace(tzinfo=UTC)
    except ValueError:
        return None
    return date if is_plausible(date) else None
