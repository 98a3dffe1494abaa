"""Assemble a reply from the events of Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

import httpx

from arbor.adapters.exchange import HttpReply, encode_json, parse_json
from arbor.models.ports import TextSink

#: The statuses of errors, which a stream reports by their type alone.
_STATUS_BY_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class MessageAssembly:
    """Collects the content blocks of a message, and passes the pieces of the reply's text on.

    With `by_tool`, the reply is the input of a tool, as JSON; else it is the text.
    """

    def __init__(self, on_text: TextSink, *, by_tool: bool) -> None:
        self.has_text = False
        self.is_done = False
        self.error: HttpReply | None = None
        self._on_text = on_text
        self._shown_delta = "input_json_delta" if by_tool else "text_delta"
        self._model = ""
        self._text: list[str] = []
        self._input: list[str] = []
        self._stop = ""
        self._usage: dict[str, Any] = {}

    def receive(self, event: str, data: Any) -> None:
        """Add an event; unknown ones, pings and thinking are left out."""
        if not isinstance(data, dict):
            return
        match data.get("type") or event:
            case "error":
                self._fail(data.get("error"))
            case "message_start":
                message = data.get("message")
                if isinstance(message, dict):
                    self._model = str(message.get("model") or "")
                    self._add_usage(message.get("usage"))
            case "content_block_delta":
                self._add(data.get("delta"))
            case "message_delta":
                delta = data.get("delta")
                self._stop = str(delta.get("stop_reason") or "") if isinstance(delta, dict) else ""
                self._add_usage(data.get("usage"))
            case "message_stop":
                self.is_done = True

    def _add(self, delta: Any) -> None:
        kind = delta.get("type") if isinstance(delta, dict) else None
        # The type may be any JSON value, also one without a hash.
        if kind not in ("text_delta", "input_json_delta"):
            return
        is_text = kind == "text_delta"
        piece = delta.get("text" if is_text else "partial_json")
        if not isinstance(piece, str) or not piece:
            return
        (self._text if is_text else self._input).append(piece)
        if kind == self._shown_delta:
            self.has_text = True
            self._on_text(piece)

    def _add_usage(self, usage: Any) -> None:
        # The counts at the end are totals; those of the input may be missing there.
        if isinstance(usage, dict):
            self._usage |= {name: count for name, count in usage.items() if count is not None}

    def _fail(self, error: Any) -> None:
        kind = str(error.get("type")) if isinstance(error, dict) else ""
        self.error = HttpReply(
            status=_STATUS_BY_TYPE.get(kind, 502),
            headers=httpx.Headers(),
            content=encode_json({"error": error}),
        )

    def body(self) -> dict[str, Any] | None:
        """Return the body of a complete response; None without the end of the message."""
        if not self._stop:
            return None
        return {
            "model": self._model,
            "content": self._blocks(),
            "stop_reason": self._stop,
            "usage": self._usage,
        }

    def _blocks(self) -> list[dict[str, Any]]:
        if not self._input:
            return [{"type": "text", "text": "".join(self._text)}]
        written = "".join(self._input)
        value = parse_json(written.encode("utf-8", errors="replace"))
        if isinstance(value, dict):
            return [{"type": "tool_use", "input": value}]
        # The input was cut at the limit of tokens: return it as text, so that the reader of the reply reports it.
        return [{"type": "text", "text": written}]
