"""Call Anthropic's models through the Messages API."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

import httpx

from arbor.adapters.anthropic_stream import MessageAssembly
from arbor.adapters.dialect import PROCESS_DIALECTS, Dialect, DialectCache, Form, append_schema, negotiate
from arbor.adapters.exchange import ApiEndpoint, HttpReply
from arbor.adapters.faults import as_count, malformed_reply_error
from arbor.errors import ModelRefused
from arbor.models.handles import Handle
from arbor.models.ports import ModelReply, ModelRequest, TextSink
from arbor.models.pricing import cost_usd
from arbor.models.usage import Usage

#: The only version of the protocol in use.
VERSION = "2023-06-01"

#: A schema is sent as the input of a tool that the model must call. Reasoning models may refuse a forced tool; they
#: get the schema in the prompt. (All newer models refuse prefilled replies, and structured outputs accept no schema
#: with free keys.)
_FORMS = (Form.SCHEMA, Form.PLAIN)

_FINISH = {"end_turn": "stop", "tool_use": "stop", "stop_sequence": "stop", "max_tokens": "length"}


class MessagesModel:
    """A model of Anthropic's; each call is one attempt."""

    def __init__(
        self,
        handle: Handle,
        *,
        endpoint: ApiEndpoint,
        client: httpx.Client,
        dialects: DialectCache = PROCESS_DIALECTS,
    ) -> None:
        self._handle = handle
        self._endpoint = endpoint
        self._client = client
        self._dialects = dialects

    @property
    def handle(self) -> str:
        """The model's handle."""
        return str(self._handle)

    def complete(
        self, request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None
    ) -> ModelReply:
        """Answer the request; fall back to a weaker form when the server refuses the stricter one."""
        started = time.monotonic()
        answer = negotiate(
            self._client,
            self._endpoint,
            model=self._handle.model,
            first=Dialect(forms=_FORMS, quiet=True),
            body=partial(self._body, request, streamed=on_text is not None),
            schema_name=request.schema_name if request.schema else None,
            dialects=self._dialects,
            deadline_s=deadline_s,
            assembly=None
            if on_text is None
            else lambda dialect: MessageAssembly(on_text, by_tool=_has_tool(request, dialect)),
        )
        return self._reply(answer, latency_ms=(time.monotonic() - started) * 1000)

    def _body(self, request: ModelRequest, dialect: Dialect, *, streamed: bool) -> dict[str, Any]:
        system = request.system
        body: dict[str, Any] = {
            "model": self._handle.model,
            dialect.limit: request.max_tokens,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        }
        if dialect.temperature:
            # Anthropic's scale ends at 1.
            body["temperature"] = min(request.temperature, 1.0)
        if streamed and dialect.streams:
            body["stream"] = True
        if dialect.quiet:
            body["thinking"] = {"type": "disabled"}
        if request.schema is not None and _has_tool(request, dialect):
            body["tools"] = [
                {
                    "name": request.schema_name,
                    "description": "Give the reply.",
                    "input_schema": request.schema,
                }
            ]
            body["tool_choice"] = {"type": "tool", "name": request.schema_name}
        elif request.schema is not None:
            system = append_schema(system, request.schema)
        if system:
            # The marker covers the tool too: both are the same at every heartbeat.
            body["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        return body

    def _reply(self, answer: HttpReply, *, latency_ms: float) -> ModelReply:
        body = answer.json()
        blocks = body.get("content") if isinstance(body, dict) else None
        if not isinstance(blocks, list):
            raise malformed_reply_error(self._endpoint, answer)
        usage = _usage(body.get("usage"))
        stop = str(body.get("stop_reason") or "end_turn")
        if stop == "refusal":
            raise ModelRefused(f"{self.handle} declined", usage=usage, cost_usd=cost_usd(self._handle, usage))
        return ModelReply(
            text=_text([block for block in blocks if isinstance(block, dict)]),
            provider=self._handle.provider,
            model=str(body.get("model") or self._handle.model),
            usage=usage,
            cost_usd=cost_usd(self._handle, usage),
            latency_ms=latency_ms,
            finish_reason=_FINISH.get(stop, stop),
        )


def _has_tool(request: ModelRequest, dialect: Dialect) -> bool:
    return request.schema is not None and dialect.form is Form.SCHEMA


def _text(blocks: list[dict[str, Any]]) -> str:
    """Return the tool's input as JSON, or the text; thinking blocks are not part of the reply."""
    for block in blocks:
        if block.get("type") == "tool_use":
            return json.dumps(block.get("input"), ensure_ascii=False)
    return "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    read = as_count(usage.get("cache_read_input_tokens"))
    written = as_count(usage.get("cache_creation_input_tokens"))
    return Usage(
        # Anthropic counts only what was neither read from nor written to the cache as input.
        input_tokens=as_count(usage.get("input_tokens")) + read + written,
        output_tokens=as_count(usage.get("output_tokens")),
        cached_tokens=read,
        cache_write_tokens=written,
    )
