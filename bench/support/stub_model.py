"""A model server for tests and load runs: OpenAI's protocol, hundreds of waiting requests, no model.

    python -m bench.support.stub_model --port 0 --latency 0

prints its base URL and serves until it is stopped. A reply is a function of the prompt, so goals and actions
vary from heartbeat to heartbeat. `--mode` sets how a `--share` of the requests are answered; the model name `stub-MODE` sets
the mode of one request. `GET /stats` returns counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import threading
from enum import StrEnum
from typing import Any

from bench.support.stub_reply import reply_to

MODEL_PREFIX = "stub-"


class Mode(StrEnum):
    """The way in which a request is answered."""

    #: A valid reply.
    OK = "ok"
    #: Status 429 with Retry-After.
    LIMIT = "limit"
    #: Status 500.
    ERROR = "error"
    #: A valid reply, one byte of the body per second.
    DRIP = "drip"
    #: A valid reply, one byte of the headers per second.
    DRIP_HEAD = "drip-head"
    #: No answer.
    SILENT = "silent"
    #: No answer: the connection is closed.
    HANG_UP = "hang-up"
    #: A reply whose text is not JSON.
    BABBLE = "babble"
    #: A valid reply; one in three writes to the users.
    WRITE = "write"
    #: A body that is not JSON.
    BROKEN = "broken"
    #: A refusal by the model.
    REFUSE = "refuse"
    #: Status 400 when a JSON schema is asked for, a valid reply otherwise.
    NO_SCHEMA = "no-schema"
    #: A body that never ends.
    FLOOD = "flood"


class Stub:
    """The state shared by connections: mode and counts."""

    def __init__(self, *, latency_s: float, mode: Mode, share: float, retry_after_s: int) -> None:
        self.latency_s = latency_s
        self.mode = mode
        self.share = share
        self.retry_after_s = retry_after_s
        self.requests = 0
        self.served = 0
        self.waiting = 0
        self.most_waiting = 0
        self.by_mode: dict[str, int] = {}
        self._share_due = 0.0

    def mode_for(self, model: str) -> Mode:
        """Return the mode of a request; those in the configured mode are spread evenly over all requests."""
        if model.startswith(MODEL_PREFIX) and model.removeprefix(MODEL_PREFIX) in Mode:
            return Mode(model.removeprefix(MODEL_PREFIX))
        self._share_due += self.share
        if self._share_due < 1:
            return Mode.OK
        self._share_due -= 1
        return self.mode

    def stats(self) -> dict[str, Any]:
        """Return the counts since the start."""
        return {
            "requests": self.requests,
            "served": self.served,
            "waiting": self.waiting,
            "most_waiting": self.most_waiting,
            "by_mode": self.by_mode,
        }


class Connection(asyncio.Protocol):
    """One keep-alive connection: HTTP/1.1 with Content-Length, as HTTP clients send it."""

    def __init__(self, stub: Stub) -> None:
        self._stub = stub
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._due: asyncio.TimerHandle | None = None
        self._waits = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport for answers."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the pending answer."""
        self._transport = None
        if self._due is not None:
            self._due.cancel()
        self._wait_no_more()

    def data_received(self, data: bytes) -> None:
        """Answer when the request is complete."""
        self._received += data
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._received[:head_end]).decode("latin-1")
        size = _content_length(head)
        if len(self._received) < head_end + 4 + size:
            return
        body = bytes(self._received[head_end + 4 : head_end + 4 + size])
        del self._received[: head_end + 4 + size]
        method, path, _ = head.split("\r\n", 1)[0].split(" ", 2)
        self._route(method, path, body)

    def _route(self, method: str, path: str, body: bytes) -> None:
        if (method, path) == ("GET", "/stats"):
            self._send(200, json.dumps(self._stub.stats()).encode())
        elif method == "POST" and path.endswith("/chat/completions"):
            self._stub.requests += 1
            self._stub.waiting += 1
            self._stub.most_waiting = max(self._stub.most_waiting, self._stub.waiting)
            self._waits = True
            self._due = self._loop.call_later(self._stub.latency_s, self._answer, json.loads(body))
        else:
            self._send(404, b'{"error": {"message": "only /v1/chat/completions and /stats are here"}}')

    def _wait_no_more(self) -> None:
        if self._waits:
            self._waits = False
            self._stub.waiting -= 1

    def _answer(self, request: dict[str, Any]) -> None:
        mode = self._stub.mode_for(str(request.get("model")))
        self._stub.by_mode[mode] = self._stub.by_mode.get(mode, 0) + 1
        match mode:
            case Mode.SILENT:
                return
            case Mode.LIMIT:
                header = f"Retry-After: {self._stub.retry_after_s}\r\n"
                self._send(429, b'{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}', header)
            case Mode.ERROR:
                self._send(500, b'{"error": {"message": "the stub is set to fail"}}')
            case Mode.NO_SCHEMA if request.get("response_format", {}).get("type") == "json_schema":
                self._send(400, b'{"error": {"message": "response_format json_schema is not supported"}}')
            case Mode.HANG_UP:
                self._close()
            case Mode.FLOOD:
                self._flood()
            case Mode.BROKEN:
                self._send(200, b'{"choices": [{"message": {"content": "cut o')
            case Mode.DRIP | Mode.DRIP_HEAD:
                self._drip(_http(200, completion(request, mode)), from_start=mode is Mode.DRIP_HEAD)
            case _:
                self._send(200, completion(request, mode))
                self._stub.served += 1
        self._wait_no_more()

    def _send(self, status: int, body: bytes, headers: str = "") -> None:
        if self._transport is not None:
            self._transport.write(_http(status, body, headers))

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _drip(self, message: bytes, *, from_start: bool) -> None:
        start = 0 if from_start else message.index(b"\r\n\r\n") + 4
        if self._transport is not None:
            self._transport.write(message[:start])
        self._drip_rest(message[start:])

    def _drip_rest(self, remaining: bytes) -> None:
        if remaining and self._transport is not None:
            self._transport.write(remaining[:1])
            self._due = self._loop.call_later(1.0, self._drip_rest, remaining[1:])

    def _flood(self) -> None:
        if self._transport is not None:
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            self._pour()

    def _pour(self) -> None:
        if self._transport is not None:
            self._transport.write(b" " * 65536)
            self._due = self._loop.call_later(0.001, self._pour)


def completion(request: dict[str, Any], mode: Mode) -> bytes:
    """Return the body of a successful answer."""
    prompt = "\n".join(str(message.get("content", "")) for message in request.get("messages", []))
    message: dict[str, Any] = {
        "role": "assistant",
        "content": json.dumps(reply_to(prompt, writes=mode is Mode.WRITE)),
        "refusal": None,
    }
    if mode is Mode.BABBLE:
        message["content"] = "I would rather talk about the weather."
    if mode is Mode.REFUSE:
        message |= {"content": None, "refusal": "I cannot help with that."}
    prompt_tokens = len(prompt) // 4
    completion_tokens = len(message["content"] or message["refusal"]) // 4
    answer = {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "model": request.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }
    return json.dumps(answer).encode()


def _content_length(head: str) -> int:
    for line in head.split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-length":
            return int(value)
    return 0


def _http(status: int, body: bytes, headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status} Stub\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


async def serve(stub: Stub, port: int) -> None:
    """Serve on loopback until cancelled; print the base URL first."""
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(stub), "127.0.0.1", port, backlog=2048
    )
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


def _exit_when_stdin_closes() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(prog="python -m bench.support.stub_model", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds until the answer")
    parser.add_argument("--mode", type=Mode, choices=list(Mode), default=Mode.OK)
    parser.add_argument(
        "--share", type=float, default=1.0, help="part of the requests that get the mode, 0 to 1"
    )
    parser.add_argument("--retry-after", type=int, default=1, help="seconds, in the mode `limit`")
    parser.add_argument("--leash", action="store_true", help="stop when standard input is closed")
    chosen = parser.parse_args()
    if chosen.leash:
        threading.Thread(target=_exit_when_stdin_closes, daemon=True).start()
    stub = Stub(
        latency_s=chosen.latency, mode=chosen.mode, share=chosen.share, retry_after_s=chosen.retry_after
    )
    try:
        asyncio.run(serve(stub, chosen.port))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
