"""Requests of OpenAI's protocol. Options that an agent decides, such as the temperature, are accepted and ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

from arbor.contacts.client_messages import ClientMessage
from arbor.errors import Invalid

_MAX_MESSAGES = 5_000
_MAX_INPUTS = 2_048
_MAX_INPUT_LENGTH = 100_000


class ContentPart(Schema):
    """A part of a message."""

    type: str
    text: str = ""


class Message(Schema):
    """A message of a conversation."""

    role: str
    content: str | list[ContentPart] | None = None

    def as_client_message(self) -> ClientMessage:
        """Return the message as text. Raises Invalid for other parts, such as pictures, in a person's message."""
        if not isinstance(self.content, list):
            return ClientMessage(role=self.role, text=self.content or "")
        other = next((part.type for part in self.content if part.type not in {"text", "input_text"}), None)
        if other is not None and self.role == "user":
            raise Invalid(f"agents read text; a message has a part of the type {other}")
        return ClientMessage(role=self.role, text="\n".join(part.text for part in self.content))


class StreamOptions(Schema):
    """Options of a stream."""

    include_usage: bool = False


class ResponseFormat(Schema):
    """A form of the reply."""

    type: str = "text"


class ChatCompletionRequest(Schema):
    """A request for the next message of an agent."""

    model: Annotated[str, Field(min_length=1, max_length=200)]
    messages: Annotated[list[Message], Field(min_length=1, max_length=_MAX_MESSAGES)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = 1
    user: str | None = None
    metadata: dict[str, Any] | None = None
    response_format: ResponseFormat | None = None
    tool_choice: str | dict[str, Any] | None = None

    def require_words(self) -> None:
        """Raise Invalid if the client asks for JSON of a schema or for a tool call, which an agent does not give.

        An answer in words would be of no use to the client, but stored and remembered.
        """
        if self.response_format is not None and self.response_format.type != "text":
            raise Invalid(
                f"agents answer in words: response_format must be text, got {self.response_format.type}"
            )
        if self.tool_choice not in (None, "none", "auto"):
            raise Invalid("agents call no tools of clients: tool_choice must be auto or none")


class EmbeddingRequest(Schema):
    """A request for vectors."""

    model: Annotated[str, Field(min_length=1, max_length=200)]
    input: str | list[str] | list[int] | list[list[int]]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None

    def texts(self) -> list[str]:
        """Return the texts. Raises Invalid for tokens, and for texts that are empty, too long or too many."""
        texts = [self.input] if isinstance(self.input, str) else self.input
        if not 1 <= len(texts) <= _MAX_INPUTS:
            raise Invalid(f"input has 1 to {_MAX_INPUTS} texts, got {len(texts)}")
        found = [text for text in texts if isinstance(text, str)]
        if len(found) < len(texts):
            raise Invalid("input must be texts: the tokens of another model's tokenizer cannot be read")
        if not all(0 < len(text) <= _MAX_INPUT_LENGTH for text in found):
            raise Invalid(f"a text of input has 1 to {_MAX_INPUT_LENGTH:,} characters")
        return found
