"""Open a conversation's file, detect its format, and read it turn by turn."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path

from arbor.errors import ConversationInvalid
from arbor.memory.conversations.transcripts import (
    NumberedLine,
    find_dialog,
    is_dated,
    is_plain,
    parse_record,
    read_dialog,
    read_messages,
    read_plain,
)
from arbor.memory.conversations.turns import BadLine, Turn

#: The longest line: six times a memory's text, because JSON's escapes lengthen it.
MAX_LINE_BYTES = 400_000
#: The largest JSON document, which is read at once; a larger one is not a conversation.
MAX_DOCUMENT_BYTES = 256 * 1024 * 1024
#: The length of the beginning from which the format is recognized.
_HEAD_BYTES = 4_096
_HEAD_LINES = 50
_NAME_LENGTH = 60


class ConversationFormat(StrEnum):
    """The file formats of a conversation."""

    #: JSON of the LoCoMo set: one dialog, or a list of them.
    LOCOMO = "locomo"
    #: A JSON object per line with role, content and perhaps timestamp.
    MESSAGES = "messages"
    #: `Speaker: text` per line, with `[2024-05-01 10:30]` before it where the time is known.
    PLAIN = "plain"


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A conversation that is being read; `items` can be iterated once."""

    format: ConversationFormat
    #: The highest `line` or `number` of the items, for a progress bar.
    total: int
    items: Iterator[Turn | BadLine]


_READERS: dict[ConversationFormat, Callable[..., Iterator[Turn | BadLine]]] = {
    ConversationFormat.MESSAGES: read_messages,
    ConversationFormat.PLAIN: read_plain,
}


def open_conversation(
    path: Path, *, start: datetime, sample: str | None = None, form: ConversationFormat | None = None
) -> Conversation:
    """Detect a file's format, unless `form` names it, and begin to read it.

    `start` is the time of a first turn without one; `sample` chooses among several LoCoMo dialogs. Reading the
    same file again gives the same sessions and positions. Raises ConversationInvalid, also during the iteration of
    `items`, when the file cannot be read at all; a line that cannot be read is a BadLine.
    """
    name = path.stem.encode(errors="replace").decode()[:_NAME_LENGTH] or "conversation"
    try:
        format_ = form or _detect(path)
        if format_ is ConversationFormat.LOCOMO:
            dialog = find_dialog(_load_document(path), name=path.name, sample=sample)
            items = read_dialog(dialog, name=dialog.sample[:_NAME_LENGTH] or name, start=start)
            return Conversation(format=format_, total=dialog.total, items=items)
        if sample is not None:
            raise ConversationInvalid(f"{path} has no dialogs to choose a sample of: its format is {format_}")
        total = sum(1 for _ in _raw_lines(path))
    except (OSError, ValueError) as exc:
        raise _read_error(path, exc) from exc
    items = _READERS[format_](_lines(path), name=name, start=start)
    return Conversation(format=format_, total=total, items=items)


def _read_error(path: Path, exc: OSError | ValueError) -> ConversationInvalid:
    reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
    return ConversationInvalid(f"{path} cannot be read: {reason}")


def _detect(path: Path) -> ConversationFormat:
    with path.open("rb") as file:
        head_bytes = file.read(_HEAD_BYTES)
    if not head_bytes.strip() or b"\0" in head_bytes:
        got = "a binary file or another encoding" if head_bytes.strip() else "nothing"
        raise ConversationInvalid(f"{path} must be text in UTF-8, got {got}")
    head = [line for _, line in islice(_decode_lines(_raw_lines(path)), _HEAD_LINES) if isinstance(line, str)]
    records = [record for line in head if (record := parse_record(line)) is not None]
    if any("role" in record or "content" in record for record in records):
        return ConversationFormat.MESSAGES
    if head and is_dated(head[0]):
        return ConversationFormat.PLAIN
    if head_bytes.removeprefix(BOM_UTF8).lstrip()[:1] in (b"{", b"["):
        return ConversationFormat.LOCOMO
    if any(is_plain(line) for line in head):
        return ConversationFormat.PLAIN
    raise ConversationInvalid(
        f"{path} is no conversation: expected LoCoMo's JSON, lines of JSON with role and content, or `Speaker: text`"
    )


def _load_document(path: Path) -> object:
    size = path.stat().st_size
    if size > MAX_DOCUMENT_BYTES:
        raise ConversationInvalid(
            f"{path} must have at most {MAX_DOCUMENT_BYTES:,} bytes to be read as one JSON document, got {size:,}"
        )
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except RecursionError as exc:
        raise ConversationInvalid(f"{path} is nested too deeply to be a conversation") from exc


def _lines(path: Path) -> Iterator[NumberedLine]:
    """Yield the numbers and texts of lines that are not blank. Raises ConversationInvalid for a read error."""
    try:
        yield from _decode_lines(_raw_lines(path))
    except OSError as exc:
        raise _read_error(path, exc) from exc


def _decode_lines(raw: Iterable[bytes]) -> Iterator[NumberedLine]:
    for number, line in enumerate(raw, start=1):
        if len(line) > MAX_LINE_BYTES:
            reason = f"a line must have at most {MAX_LINE_BYTES:,} bytes"
            yield number, BadLine(number=number, reason=reason)
            continue
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as exc:
            yield number, BadLine(number=number, reason=f"not UTF-8 at byte {exc.start + 1}: {exc.reason}")
            continue
        if text.strip():
            yield number, text.rstrip("\r\n")


def _raw_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines; a line above the limit is cut one byte after the limit, so that it is still too long."""
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES + 1):
            remainder = line
            while len(remainder) > MAX_LINE_BYTES and not remainder.endswith(b"\n"):
                remainder = file.readline(MAX_LINE_BYTES + 1)
                if not remainder:
                    break
            yield line
