"""Server-sent events, assembled from the text of a stream; a stream resumes after the last event that arrived."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import httpx

LAST_EVENT_ID = "Last-Event-ID"
#: Events may be minutes apart; the server sends comments in between.
STREAM_TIMEOUT = httpx.Timeout(60.0, connect=5.0, read=90.0)
#: The end of a line; a carriage return at the end of a part may belong to a line feed of the next. Other separators, at which
#: `httpx` ends lines too, are characters of an event's text.
_LINE_END = re.compile(r"\r\n|\n|\r(?=.)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event of a stream."""

    #: The id to resume after; empty for an event that cannot be resumed after.
    id: str
    name: str
    #: The JSON of the event, or its text where that is no JSON.
    data: Any


@dataclass(frozen=True, kw_only=True)
class StreamCall:
    """A request that is answered by a stream of events."""

    method: ClassVar[str] = "GET"
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    #: Resume after this event.
    after: str = ""

    def request(self, client: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """Return the request, with the client's address and headers."""
        headers = {"Accept": "text/event-stream"} | ({LAST_EVENT_ID: self.after} if self.after else {})
        query = {name: value for name, value in self.query.items() if value is not None}
        return client.build_request(
            self.method, self.path, params=query, headers=headers, timeout=STREAM_TIMEOUT
        )


class EventReader:
    """Assembles events from the text of a stream."""

    def __init__(self) -> None:
        self._line = ""
        self._id = ""
        self._name = ""
        self._data: list[str] = []

    def feed(self, text: str) -> Iterator[Event]:
        """Yield the events that a part of the stream completes."""
        *lines, self._line = _LINE_END.split(self._line + text)
        for line in lines:
            yield from self._read_line(line)

    def _read_line(self, line: str) -> Iterator[Event]:
        if not line:
            if self._data:
                yield Event(id=self._id, name=self._name or "message", data=_read("\n".join(self._data)))
            self._name, self._data = "", []
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "id":
                self._id = value
            case "event":
                self._name = value
            case "data":
                self._data.append(value)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
