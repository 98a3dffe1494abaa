"""Read a model's reply from a stream of server-sent events, limited in time and size like a complete reply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from arbor.adapters.deadline import deadline
from arbor.adapters.exchange import (
    MAX_REPLY_BYTES,
    ApiEndpoint,
    HttpReply,
    encode_json,
    iter_body,
    open_response,
    parse_json,
    read_reply,
    translate_failures,
)
from arbor.errors import ModelUnavailable

#: Bytes of a stream at most: each token is wrapped in some hundred bytes.
MAX_STREAM_BYTES = 64_000_000
#: Seconds for which the rest of a finished stream is read, so that its connection can be used again.
_DRAIN_S = 0.2
_EVENT_STREAM = "text/event-stream"
#: An LF may still follow a CR at the end of what is received.
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
#: The data of the event that ends a stream of OpenAI's protocol.
DONE = "[DONE]"


@dataclass(frozen=True, kw_only=True)
class StreamEvent:
    """One server-sent event: its type, empty where the server names none, and its data."""

    type: str
    data: bytes


class ReplyAssembly(Protocol):
    """Assembles the events of a stream into the body that the server would have sent without streaming."""

    #: Whether a piece of text was passed on.
    has_text: bool
    #: Whether the reply is finished: no later event belongs to it.
    is_done: bool
    #: The status and body of an error that the stream reported.
    error: HttpReply | None

    def receive(self, event: str, data: Any) -> None:
        """Add an event: its type, and its data as a JSON object, or DONE."""
        ...

    def body(self) -> dict[str, Any] | None:
        """Return the body of the reply; None when the stream ended before the reply did."""
        ...


def post_for_stream(
    client: httpx.Client,
    endpoint: ApiEndpoint,
    body: Mapping[str, Any],
    *,
    assembly: ReplyAssembly,
    deadline_s: float,
) -> HttpReply:
    """Send one request and read its stream into `assembly`; return the reply as if it had not been streamed.

    A response that is not a stream (an error, or a server that does not stream) is returned as it is. Raises as `post_json`
    does, and ModelUnavailable for a stream that breaks off or cannot be read.
    """
    with (
        translate_failures(endpoint, deadline_s=deadline_s),
        deadline(deadline_s),
        open_response(client, endpoint, encode_json(body)) as response,
    ):
        if response.status_code >= 300 or _EVENT_STREAM not in response.headers.get("content-type", ""):
            return read_reply(response, endpoint)
        _assemble(response, endpoint, assembly)
        if assembly.error is not None:
            return assembly.error
        whole = assembly.body()
        if whole is None:
            raise ModelUnavailable(f"{endpoint.provider} broke off its stream before the reply ended")
        content = encode_json(whole)
        if len(content) > MAX_REPLY_BYTES:
            raise ModelUnavailable(f"{endpoint.provider} sent more than {MAX_REPLY_BYTES} bytes")
        return HttpReply(status=response.status_code, headers=response.headers, content=content)


def _assemble(response: httpx.Response, endpoint: ApiEndpoint, assembly: ReplyAssembly) -> None:
    events = read_events(response, endpoint)
    for event in events:
        assembly.receive(event.type, _read_data(event, endpoint))
        if assembly.error is not None:
            return
        if assembly.is_done:
            _drain(events)
            return


def _read_data(event: StreamEvent, endpoint: ApiEndpoint) -> Any:
    if event.data == DONE.encode():
        return DONE
    data = parse_json(event.data)
    if not isinstance(data, dict):
        quote = endpoint.scrub(event.data[:2000].decode("utf-8", errors="replace"))
        raise ModelUnavailable(f"{endpoint.provider} sent a stream that cannot be read: {quote!r}")
    return data


def _drain(events: Iterator[StreamEvent]) -> None:
    try:
        with deadline(_DRAIN_S):
            for _ in events:
                pass
    except (httpx.RequestError, ModelUnavailable):
        # The reply is complete; the connection is closed instead of used again.
        return


def read_events(response: httpx.Response, endpoint: ApiEndpoint) -> Iterator[StreamEvent]:
    """Yield the events of a stream that have data; comments and an unfinished last event are left out."""
    event_type, data = "", list[bytes]()
    for line in _read_lines(response, endpoint):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data:
                yield StreamEvent(type=event_type, data=b"\n".join(data))
            event_type, data = "", []
        elif field == b"event":
            event_type = value.decode("utf-8", errors="replace")
        elif field == b"data":
            data.append(value)


def _read_lines(response: httpx.Response, endpoint: ApiEndpoint) -> Iterator[bytes]:
    """Yield the complete lines of a stream, which may end in CR, LF or both."""
    size = length = 0
    # The parts of the unfinished line, each searched for a line end once.
    parts: list[bytes] = []
    for received in iter_body(response, endpoint):
        size += len(received)
        if size > MAX_STREAM_BYTES or length > MAX_REPLY_BYTES:
            raise ModelUnavailable(
                f"{endpoint.provider} sent a stream of more than {MAX_STREAM_BYTES:,} bytes, or a line of more than {MAX_REPLY_BYTES:,}"
            )
        is_cr_left = bool(parts) and parts[-1] == b"\r"
        *lines, rest = _LINE_END.split(parts.pop() + received if is_cr_left else received)
        if lines:
            yield b"".join([*parts, lines[0]])
            yield from lines[1:]
            parts, length = [], 0
        length += len(rest)
        parts += [rest[:-1], b"\r"] if rest.endswith(b"\r") else [rest]
    if parts and parts[-1] == b"\r":
        yield b"".join(parts[:-1])
