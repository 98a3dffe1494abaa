"""Read LoCoMo: long dialogs of two people in dated sessions (Maharana et al., 2024, `locomo10.json`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from arbor.errors import ConversationInvalid
from arbor.memory.turns import BadLine, Turn, checked, is_plausible

#: A session has one date for all its turns; a turn of talk takes about so long.
TURN_TAKES = timedelta(seconds=30)
#: Between sessions, where a date is missing.
_NEXT_DAY = timedelta(days=1)
_SESSION = re.compile(r"session_(\d{1,6})")
_DATE_FORM = "%I:%M %p on %d %B, %Y"
_LISTED_SAMPLES = 20


@dataclass(frozen=True, kw_only=True)
class Dialog:
    """One dialog of the set."""

    sample: str
    #: By their numbers.
    sessions: dict[int, list[Any]]
    #: As written: "1:56 pm on 8 May, 2023".
    dates: dict[int, Any]

    @property
    def total(self) -> int:
        """The number of turns, good or bad."""
        return sum(len(turns) for turns in self.sessions.values())


def find_dialog(document: Any, *, name: str, sample: str | None) -> Dialog:
    """Return the dialog of that sample in a parsed file: one dialog, or a list of them.

    Raises ConversationInvalid when there is none, or several and `sample` does not say which.
    """
    items = document if isinstance(document, list) else [document]
    dialogs = [dialog for item in items if (dialog := _dialog(item)) is not None]
    if not dialogs:
        raise ConversationInvalid(
            f"{name} holds JSON, but no LoCoMo dialog with lists named session_1, session_2…"
        )
    if sample is not None:
        dialogs = [dialog for dialog in dialogs if dialog.sample == sample] or dialogs
    if len(dialogs) == 1 and sample in (None, dialogs[0].sample):
        return dialogs[0]
    names = ", ".join(dialog.sample or "(no name)" for dialog in dialogs[:_LISTED_SAMPLES])
    raise ConversationInvalid(f"{name} holds {len(dialogs)} dialogs; name one of them as the sample: {names}")


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
            at = date + TURN_TAKES * position
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
        # What an image shows is part of what was said with it: people ask for it.
        text = f"{text} [image: {caption}]".lstrip()
    return checked(
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
    """Return the moment of "1:56 pm on 8 May, 2023", taken as UTC; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        date = datetime.strptime(" ".join(text.split()), _DATE_FORM).replace(tzinfo=UTC)
    except ValueError:
        return None
    return date if is_plausible(date) else None
