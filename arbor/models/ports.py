"""The port of language models: requests, replies, and a scripted fake for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal, Protocol, Self

from arbor.errors import ModelError, ModelRejected
from arbor.models.usage import Usage


class CallPurpose(StrEnum):
    """The purpose of a call."""

    #: Decide a heartbeat's actions.
    THINK = "think"
    #: Judge a hard decision as one of the agent's inner voices.
    VOICE = "voice"
    #: Summarize a text.
    SUMMARIZE = "summarize"
    #: Extract concepts and stated facts from texts.
    EXTRACT = "extract"
    #: Appraise the importance of memories; stored as `weigh`, because `appraise` means answers.
    APPRAISE_MEMORIES = "weigh"
    #: Search the web and read pages; asks no model.
    WEB = "web"
    #: Call a tool of an MCP server; asks no model.
    TOOL = "tool"
    #: Answer a question from pages.
    ANSWER = "answer"
    #: Judge how well an answer is supported by its pages.
    APPRAISE = "appraise"
    #: Answer a person in a conversation.
    CHAT = "chat"
    #: Carry out a step of a workflow.
    WORKFLOW = "workflow"


@dataclass(frozen=True, kw_only=True)
class PromptMessage:
    """One turn of the conversation with the model."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """A request to a model, independent of the provider."""

    purpose: CallPurpose
    #: The static part of the prompt, the same in all calls: providers cache it.
    system: str
    messages: tuple[PromptMessage, ...]
    #: JSON schema of the wanted reply; None asks for text.
    schema: dict[str, Any] | None = None
    schema_name: str = "reply"
    #: The limit of the reply in tokens, reasoning included.
    max_tokens: int = 4096
    temperature: float = 0.7
    #: The JSON of the situation behind the prompt; only the reflex policy reads it.
    context: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the request as a JSON object for `from_json`."""
        # Not `asdict`: it would copy the schema, the largest part, leaf by leaf.
        return {item.name: getattr(self, item.name) for item in fields(self)} | {
            "purpose": self.purpose.value,
            "messages": [asdict(message) for message in self.messages],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a request from the JSON object of `to_json`."""
        return cls(
            **{
                **data,
                "purpose": CallPurpose(data["purpose"]),
                "messages": tuple(PromptMessage(**message) for message in data["messages"]),
            }
        )


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """A model's reply, with its cost and latency."""

    text: str
    provider: str
    #: The model's name, as the provider reports it.
    model: str
    usage: Usage
    #: None when the price is not known; 0 only when the call was free.
    cost_usd: Decimal | None
    #: From the call to the reply, waits and retries included.
    latency_ms: float
    attempts: int = 1
    #: `stop`: the model ended the reply; `length`: the reply was cut at `max_tokens`; else the provider's word.
    finish_reason: str = "stop"


#: Receives a reply's text piece by piece, as the model writes it.
type TextSink = Callable[[str], None]


class Model(Protocol):
    """Answers requests by a language model."""

    @property
    def handle(self) -> str:
        """Return the model's handle, `provider/model`."""
        ...

    def complete(
        self, request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None
    ) -> ModelReply:
        """Answer the request within `deadline_s` seconds, retries included.

        With `on_text`, the reply is streamed where the model can: `on_text` receives the pieces that together are the
        reply's text, or none of it. After the first piece, the request is not retried.
        Raises ModelUnavailable, ModelTimeout, ModelRefused or ModelRejected.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class ScriptedStream:
    """A line of a script that is streamed: its pieces, and the error that breaks the stream after them."""

    pieces: Iterable[str]
    error: ModelError | None = None


type ScriptLine = str | ModelError | ScriptedStream | Callable[[ModelRequest], str]


class ScriptedModel:
    """A fake that answers with the lines of its script, in order, and records the requests.

    A line is the reply's text, its pieces, an error to raise, or a function from the request to the text. With
    `repeat`, the script starts again at its end; otherwise a call beyond it raises ModelRejected.
    """

    def __init__(self, *script: ScriptLine, handle: str = "scripted/model", repeat: bool = False) -> None:
        self.handle = handle
        self.requests: list[ModelRequest] = []
        self._script = script
        self._repeat = repeat
        self._lock = threading.Lock()

    def complete(
        self, request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None
    ) -> ModelReply:
        """Return the script's next line; only a ScriptedStream is streamed."""
        with self._lock:
            turn = len(self.requests)
            self.requests.append(request)
        if self._repeat and self._script:
            turn %= len(self._script)
        if turn >= len(self._script):
            raise ModelRejected(f"the script has {len(self._script)} lines, and this is call {turn + 1}")
        line = self._script[turn]
        if isinstance(line, ModelError):
            raise line
        provider, _, model = self.handle.partition("/")
        return ModelReply(
            text=_scripted_text(line, request, on_text),
            provider=provider,
            model=model,
            usage=Usage(),
            cost_usd=Decimal(0),
            latency_ms=0.0,
        )


def _scripted_text(
    line: str | ScriptedStream | Callable[[ModelRequest], str],
    request: ModelRequest,
    on_text: TextSink | None,
) -> str:
    if isinstance(line, str):
        return line
    if not isinstance(line, ScriptedStream):
        return line(request)
    text = ""
    for piece in line.pieces:
        text += piece
        if on_text is not None:
            on_text(piece)
    if line.error is not None:
        raise line.error
    return text
