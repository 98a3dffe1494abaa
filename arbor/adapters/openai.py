"""Call models by OpenAI's Chat Completions protocol: OpenAI, Ollama, vLLM, llama.cpp, OpenRouter and others."""

from __future__ import annotations

import time
from decimal import Decimal
from functools import partial
from typing import Any

import httpx

from arbor.adapters.dialect import PROCESS_DIALECTS, Dialect, DialectCache, Form, append_schema, negotiate
from arbor.adapters.exchange import ApiEndpoint, HttpReply
from arbor.adapters.faults import as_count, malformed_reply_error
from arbor.adapters.openai_stream import ChunkAssembly
from arbor.errors import ModelRefused
from arbor.models.handles import Handle
from arbor.models.ports import ModelReply, ModelRequest, TextSink
from arbor.models.pricing import cost_usd
from arbor.models.token_estimates import estimate_tokens
from arbor.models.usage import Usage

_FORMS = (Form.SCHEMA, Form.OBJECT, Form.PLAIN)
#: A stated cost above it is an error of the provider: the dearest call costs a few dollars.
_MAX_STATED_USD = 10_000


class ChatCompletionsModel:
    """A model behind the protocol; each call is one attempt, with the JSON schema as strict as the server accepts."""

    def __init__(
        self,
        handle: Handle,
        *,
        endpoint: ApiEndpoint,
        client: httpx.Client,
        limit: str = "max_tokens",
        quiet: bool = False,
        dialects: DialectCache = PROCESS_DIALECTS,
    ) -> None:
        self._handle = handle
        self._endpoint = endpoint
        self._client = client
        self._first = Dialect(forms=_FORMS, limit=limit, quiet=quiet)
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
            first=self._first,
            body=partial(self._body, request, streamed=on_text is not None),
            schema_name=request.schema_name if request.schema else None,
            dialects=self._dialects,
            deadline_s=deadline_s,
            assembly=None if on_text is None else lambda _: ChunkAssembly(on_text),
        )
        return self._reply(answer, request, latency_ms=(time.monotonic() - started) * 1000)

    def _body(self, request: ModelRequest, dialect: Dialect, *, streamed: bool) -> dict[str, Any]:
        system = request.system
        body: dict[str, Any] = {"model": self._handle.model, dialect.limit: request.max_tokens}
        if dialect.temperature:
            body["temperature"] = request.temperature
        if dialect.quiet:
            body["reasoning_effort"] = "low"
        if streamed and dialect.streams:
            body["stream"] = True
            if dialect.counts_streams:
                body["stream_options"] = {"include_usage": True}
        if request.schema is not None:
            if dialect.form is Form.SCHEMA:
                body["response_format"] = {
                    "type": "json_schema",
                    "json_schema": {
                        "name": request.schema_name,
                        "schema": request.schema,
                        "strict": is_closed(request.schema),
                    },
                }
            else:
                system = append_schema(system, request.schema)
            if dialect.form is Form.OBJECT:
                body["response_format"] = {"type": "json_object"}
        turns = [{"role": message.role, "content": message.content} for message in request.messages]
        body["messages"] = [{"role": "system", "content": system}, *turns] if system else turns
        return body

    def _reply(self, answer: HttpReply, request: ModelRequest, *, latency_ms: float) -> ModelReply:
        body = answer.json()
        choice = _first_choice(body)
        if choice is None:
            raise malformed_reply_error(self._endpoint, answer)
        message = choice["message"]
        usage = _usage(body.get("usage"))
        finish = str(choice.get("finish_reason") or "stop")
        if message.get("refusal") or finish == "content_filter":
            reason = self._endpoint.scrub(
                str(message.get("refusal") or "its content filter stopped the reply")
            )
            cost = _stated_cost(body.get("usage")) or cost_usd(self._handle, usage)
            raise ModelRefused(f"{self.handle} declined: {reason}", usage=usage, cost_usd=cost)
        text = _text(message.get("content"))
        if usage == Usage():
            usage = _estimated_usage(request, text)
        return ModelReply(
            text=text,
            provider=self._handle.provider,
            model=str(body.get("model") or self._handle.model),
            usage=usage,
            cost_usd=_stated_cost(body.get("usage")) or cost_usd(self._handle, usage),
            latency_ms=latency_ms,
            finish_reason=finish,
        )


def is_closed(schema: Any) -> bool:
    """Return whether OpenAI's strict mode accepts a schema; the result is cached.

    Every object must list all its properties as required and allow no others; an object with free keys
    cannot be strict.
    """
    cached = _closed_by_id.get(id(schema))
    if cached is None or cached[0] is not schema:
        if len(_closed_by_id) >= _MAX_CACHED_SCHEMAS:
            _closed_by_id.clear()
        # The entry contains the schema itself, so that no other schema gets its id while the entry exists.
        cached = _closed_by_id[id(schema)] = schema, _is_closed(schema)
    return cached[1]


_MAX_CACHED_SCHEMAS = 256
_closed_by_id: dict[int, tuple[Any, bool]] = {}


def _is_closed(schema: Any) -> bool:
    if isinstance(schema, list):
        return all(_is_closed(item) for item in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(
            properties
        ):
            return False
    return all(_is_closed(value) for value in schema.values())


def _first_choice(body: Any) -> dict[str, Any] | None:
    choices = body.get("choices") if isinstance(body, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) and isinstance(choice.get("message"), dict) else None


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    return Usage(
        input_tokens=as_count(usage.get("prompt_tokens")),
        output_tokens=as_count(usage.get("completion_tokens")),
        cached_tokens=as_count(details.get("cached_tokens")) if isinstance(details, dict) else 0,
    )


def _estimated_usage(request: ModelRequest, text: str) -> Usage:
    """Estimate the tokens of a call for a server that counts none, so that limits of tokens apply there too."""
    prompt = (request.system, *(message.content for message in request.messages))
    return Usage(input_tokens=sum(map(estimate_tokens, prompt)), output_tokens=estimate_tokens(text))


def _stated_cost(usage: Any) -> Decimal | None:
    """Return the cost in USD where the provider states it, as OpenRouter does."""
    cost = usage.get("cost") if isinstance(usage, dict) else None
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    # NaN compares as false.
    return Decimal(str(cost)) if 0 < cost <= _MAX_STATED_USD else None
