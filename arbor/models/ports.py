"""The model as a port: what is asked, what comes back, and the fake that tests script."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal, Protocol, Self

from arbor.errors import ModelError, ModelRejected
from arbor.models.usage import Usage


class CallPurpose(StrEnum):
    """What a call to a model is for."""

    #: A heartbeat decides what to do.
    THINK = "think"
    #: A longer text becomes a shorter one.
    SUMMARIZE = "summarize"
    #: The ideas that texts are about are named.
    EXTRACT = "extract"
    #: It is said how much texts matter.
    WEIGH = "weigh"
    #: Pages are looked for and read; no model is asked, the web is.
    WEB = "web"
    #: A question is answered from what was read.
    ANSWER = "answer"
    #: It is judged how far an answer is borne out.
    APPRAISE = "appraise"
    #: A person talks to an agent.
    CHAT = "chat"


@dataclass(frozen=True, kw_only=True)
class Message:
    """One turn of the conversation with the model."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """One question to a model, independent of who answers it."""

    purpose: CallPurpose
    #: The static part of the prompt, the same from call to call: providers cache it.
    system: str
    messages: tuple[Message, ...]
    #: JSON schema of the wanted reply; None asks for text.
    schema: dict[str, Any] | None = None
    schema_name: str = "reply"
    #: The most tokens that the reply may take. Reasoning models think within it too.
    max_tokens: int = 4096
    temperature: float = 0.7
    #: The JSON of the situation that the prompt was rendered from; only the reflex policy reads it.
    context: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` turns back into an equal request."""
        # Not `asdict`: it would copy the schema, the largest part, leaf by leaf.
        return {item.name: getattr(self, item.name) for item in fields(self)} | {
            "purpose": self.purpose.value,
            "messages": [asdict(message) for message in self.messages],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a request from what `to_json` gave."""
        return cls(
            **{
                **data,
                "purpose": CallPurpose(data["purpose"]),
                "messages": tuple(Message(**message) for message in data["messages"]),
            }
        )


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """What a model answered, and what it took."""

    text: str
    provider: str
    #: The model's name, as the provider reports it.
    model: str
    usage: Usage
    #: None when the price is not known; 0 only when the call was free.
    cost_usd: Decimal | None
    #: From the call to the reply, with waits and further attempts included.
    latency_ms: float
    attempts: int = 1
    #: `stop`: the model ended by itself; `length`: cut at `max_tokens`; otherwise the provider's word.
    finish_reason: str = "stop"


class Model(Protocol):
    """Answers requests."""

    @property
    def handle(self) -> str:
        """The model's handle, `provider/model`."""
        ...

    def complete(self, request: ModelRequest, *, deadline_s: float) -> ModelReply:
        """Answer the request within `deadline_s` seconds, everything included.

        Raises ModelUnavailable, ModelTimeout, ModelRefused or ModelRejected.
        """
        ...


type ScriptLine = str | ModelError | Callable[[ModelRequest], str]


class ScriptedModel:
    """The fake: answers with the lines of its script, in order, and keeps the requests.

    A line is the reply's text, an error to raise, or a function from the request to the text. With
    `repeat`, the script starts again at its end; otherwise a call beyond it raises ModelRejected.
    """

    def __init__(self, *script: ScriptLine, handle: str = "scripted/model", repeat: bool = False) -> None:
        self.handle = handle
        self.requests: list[ModelRequest] = []
        self._script = script
        self._repeat = repeat
        self._lock = threading.Lock()

    def complete(self, request: ModelRequest, *, deadline_s: float) -> ModelReply:
        """Give the script's next line."""
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
            text=line if isinstance(line, str) else line(request),
            provider=provider,
            model=model,
            usage=Usage(),
            cost_usd=Decimal(0),
            latency_ms=0.0,
        )
