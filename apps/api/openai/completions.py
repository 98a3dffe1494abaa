"""Replies of agents as chat completions, whole or as chunks."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from apps.api.openai.errors import error_body, status_of_failure
from apps.api.reply_streams import COMMENT, FollowedTurn, data_event, reply_events, timeout_event
from apps.api.threads import in_thread
from arbor.contacts.reply_progress import ReplyEvent, ReplyEventKind, StoredAnswer
from arbor.models.usage import Usage

_DONE = "data: [DONE]\n\n"
#: The protocol has no way to take text back.
_BROKEN_OFF = "\n\n[The reply was broken off and begins anew.]\n\n"


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A completion of a turn that is being answered, under the name of the model that the client asked for."""

    turn: FollowedTurn
    model: str
    read_usage: Callable[[], Usage]
    includes_usage: bool = False
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, answer: StoredAnswer, usage: Usage) -> dict[str, Any]:
        """Return the completion of a stored answer."""
        message = {"role": "assistant", "content": answer.content, "refusal": None}
        return {
            **self._head("chat.completion"),
            "choices": [
                {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(answer)}
            ],
            "usage": usage_json(usage),
        }

    async def chunks(self) -> AsyncIterator[str]:
        """Yield the events of a stream. A client that disconnects loses nothing: a worker answers the turn."""
        yield self._chunk({"role": "assistant", "content": ""})
        has_text, last = False, timeout_event()
        async for event in reply_events(self.turn):
            if event is None:
                yield COMMENT
            elif event.is_last:
                last = event
            elif event.kind is ReplyEventKind.SENTENCE:
                has_text = True
                yield self._chunk({"content": event.text})
            elif has_text:
                yield self._chunk({"content": _BROKEN_OFF})
        async for chunk in self._end(last):
            yield chunk

    async def _end(self, last: ReplyEvent) -> AsyncIterator[str]:
        if last.answer is None or last.kind is ReplyEventKind.ERROR:
            yield data_event(error_body(last.text, status=status_of_failure(last.text)))
        else:
            yield self._chunk({}, finish=finish_reason(last.answer))
            if self.includes_usage:
                usage = usage_json(await in_thread(self.read_usage))
                yield data_event({**self._head("chat.completion.chunk"), "choices": [], "usage": usage})
        yield _DONE

    def _chunk(self, delta: dict[str, str], *, finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if self.includes_usage else {}
        return data_event({**self._head("chat.completion.chunk"), "choices": [choice], **usage})

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.turn.turn_id}",
            "object": kind,
            "created": self.created,
            "model": self.model,
        }


def finish_reason(answer: StoredAnswer) -> str:
    """Return the reason for which a reply ended: `content_filter` if a reflex or a boundary withheld it."""
    return "content_filter" if answer.is_withheld else "stop"


def usage_json(usage: Usage) -> dict[str, Any]:
    """Return token counts as the protocol writes them."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
