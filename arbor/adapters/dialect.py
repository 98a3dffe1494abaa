"""The request options that a server accepts, learned from its errors and remembered by the process."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import httpx

from arbor.adapters.event_stream import ReplyAssembly, post_for_stream
from arbor.adapters.exchange import ApiEndpoint, HttpReply, post_json, timeout_error
from arbor.adapters.faults import ProviderFault, error_for, fault_in


class Form(StrEnum):
    """The ways to request a reply by JSON schema, from the strictest to the weakest."""

    #: The server enforces the schema.
    SCHEMA = "schema"
    #: The server enforces JSON; the schema is in the prompt.
    OBJECT = "object"
    #: The server enforces nothing; the schema is in the prompt.
    PLAIN = "plain"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The options of one way to send a request."""

    #: The forms that the server may still accept; the first one is in use.
    forms: tuple[Form, ...]
    temperature: bool = True
    #: Ask a reasoning model to reason little: a heartbeat's reply contains its thinking.
    quiet: bool = False
    #: The name of the option that limits the reply.
    limit: str = "max_tokens"
    #: Whether the server streams replies, and counts the tokens of a stream if the request asks for it.
    streams: bool = True
    counts_streams: bool = True

    @property
    def form(self) -> Form:
        """Return the form in use."""
        return self.forms[0]


#: Statuses with which a server may refuse the form of a request.
_FORM_STATUSES = {400, 415, 422, 501}
#: Words that prove a refusal of the form, even with status 500 (llama.cpp, when a schema gives no grammar).
_ABOUT_FORM = ("response_format", "json_schema", "json_object", "schema", "grammar", "structured", "tool")
#: A refusal to stream: the model cannot, or this account may not.
_ABOUT_STREAMS = re.compile(r"\bstream(?:s|ed|ing)?\b")
#: Words of refusals that another form would not avoid.
_NOT_ABOUT_FORM = (
    "context length",
    "context_length",
    "context size",
    "too long",
    "api key",
    "quota",
    "credit",
)


def weaken(dialect: Dialect, fault: ProviderFault, *, schema: bool, streamed: bool) -> Dialect | None:
    """Return a dialect that requires less of the server, where its error suggests one; else None.

    `schema`: the request has a schema, so the form may be what the server refused; `streamed`: it asked for a stream.
    """
    if fault.status not in _FORM_STATUSES and fault.status != 500:
        return None
    if fault.status in _FORM_STATUSES:
        if dialect.temperature and "temperature" in fault.words:
            return replace(dialect, temperature=False)
        if dialect.limit == "max_tokens" and "max_completion_tokens" in fault.words:
            return replace(dialect, limit="max_completion_tokens")
        if dialect.quiet and ("thinking" in fault.words or "reasoning" in fault.words):
            return replace(dialect, quiet=False)
        if streamed and dialect.counts_streams and "stream_options" in fault.words:
            return replace(dialect, counts_streams=False)
        if streamed and _ABOUT_STREAMS.search(fault.words):
            return replace(dialect, streams=False)
    certain = any(word in fault.words for word in _ABOUT_FORM)
    possible = fault.status in _FORM_STATUSES and not any(word in fault.words for word in _NOT_ABOUT_FORM)
    if schema and len(dialect.forms) > 1 and (certain or possible):
        return replace(dialect, forms=dialect.forms[1:])
    return None


def append_schema(system: str, schema: Mapping[str, Any]) -> str:
    """Append the schema to the system prompt, for servers that accept none."""
    instruction = (
        f"Reply with one JSON object and nothing else. It must fit this JSON schema:\n{json.dumps(schema)}"
    )
    return f"{system}\n\n{instruction}" if system else instruction


#: The most dialects that a process stores: tenants choose the servers and models, so there may be any number of them.
_MOST_DIALECTS = 10_000


class DialectCache:
    """Stores the dialect that each server accepted for an account and a model, shared by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._dialects: dict[Hashable, Dialect] = {}

    def get(self, key: Hashable, default: Dialect) -> Dialect:
        """Return the dialect that the server accepted last, or the default."""
        with self._lock:
            return self._dialects.get(key, default)

    def put(self, key: Hashable, dialect: Dialect) -> None:
        """Store a dialect that the server accepted; the one stored longest ago makes room."""
        with self._lock:
            self._dialects.pop(key, None)
            if len(self._dialects) >= _MOST_DIALECTS:
                del self._dialects[next(iter(self._dialects))]
            self._dialects[key] = dialect


#: Shared by all adapters, which are created again after each change of settings, while the servers' dialects stay.
PROCESS_DIALECTS = DialectCache()


def negotiate(
    client: httpx.Client,
    endpoint: ApiEndpoint,
    *,
    model: str,
    first: Dialect,
    body: Callable[[Dialect], dict[str, Any]],
    schema_name: str | None,
    dialects: DialectCache,
    deadline_s: float,
    assembly: Callable[[Dialect], ReplyAssembly] | None,
) -> HttpReply:
    """Send the request in the strictest dialect that the server accepts, and return the successful response.

    `schema_name` is None for a request without a schema. With `assembly`, the body asks for a stream where the dialect
    permits streams. Raises the model's errors.
    """
    ends_at = time.monotonic() + deadline_s
    cache_key = (endpoint.url, endpoint.account, model, schema_name)
    dialect = dialects.get(cache_key, first)
    while True:
        remaining_s = ends_at - time.monotonic()
        if remaining_s <= 0:
            raise timeout_error(endpoint, deadline_s)
        stream = assembly(dialect) if assembly is not None and dialect.streams else None
        if stream is None:
            answer = post_json(client, endpoint, body(dialect), deadline_s=remaining_s)
        else:
            answer = post_for_stream(client, endpoint, body(dialect), assembly=stream, deadline_s=remaining_s)
        fault = fault_in(answer)
        if fault is None:
            dialects.put(cache_key, dialect)
            return answer
        weaker = weaken(dialect, fault, schema=schema_name is not None, streamed=stream is not None)
        # Text that was passed on may be shown already, so the request is not repeated in this call.
        if weaker is None or (stream is not None and stream.has_text):
            raise error_for(fault, endpoint=endpoint, model=model, headers=answer.headers)
        dialect = weaker
