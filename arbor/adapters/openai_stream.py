"""Assemble a reply from the chunks of OpenAI's Chat Completions protocol."""

from __future__ import annotations

from typing import Any

import httpx

from arbor.adapters.event_stream import DONE
from arbor.adapters.exchange import HttpReply, encode_json
from arbor.models.ports import TextSink


class ChunkAssembly:
    """Collects the chunks of the first choice, and passes the pieces of its text on."""

    def __init__(self, on_text: TextSink) -> None:
        self.has_text = False
        self.is_done = False
        self.error: HttpReply | None = None
        self._on_text = on_text
        self._model = ""
        self._content: list[str] = []
        self._refusal: list[str] = []
        self._finish = ""
        self._usage: Any = None

    def receive(self, event: str, data: Any) -> None:
        """Add a chunk. Reasoning that some servers stream beside the content is not part of the reply."""
        if data == DONE:
            self.is_done = True
            return
        if data.get("error"):
            # Of the same shape as an error inside a complete response; the status is 200 there too.
            self.error = HttpReply(
                status=200, headers=httpx.Headers(), content=encode_json({"error": data["error"]})
            )
            return
        self._model = str(data.get("model") or self._model)
        self._usage = data.get("usage") or self._usage
        for choice in _choices(data):
            self._add(choice)

    def _add(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            if isinstance(delta.get("refusal"), str):
                self._refusal.append(delta["refusal"])
            piece = delta.get("content")
            if isinstance(piece, str) and piece:
                self._content.append(piece)
                self.has_text = True
                self._on_text(piece)
        self._finish = str(choice.get("finish_reason") or self._finish)

    def body(self) -> dict[str, Any] | None:
        """Return the body of a complete response; None without the end of the reply."""
        if not self._finish and not (self.is_done and (self._content or self._refusal)):
            return None
        message = {"content": "".join(self._content), "refusal": "".join(self._refusal) or None}
        return {
            "model": self._model,
            "choices": [{"message": message, "finish_reason": self._finish or "stop"}],
            "usage": self._usage,
        }


def _choices(data: dict[str, Any]) -> list[dict[str, Any]]:
    choices = data.get("choices")
    if not isinstance(choices, list):
        return []
    return [choice for choice in choices if isinstance(choice, dict) and not choice.get("index")]
