"""Calls of tools as durable requests, and their answers as texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from arbor.models.ports import CallPurpose, ModelRequest
from arbor.tools.names import server_of
from arbor.tools.ports import ToolAnswer

#: The provider of tool calls in the ledger.
PROVIDER = "mcp"


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRequest:
    """A call of a tool: the id of the tool's row, the fingerprint of the tool that the agent was shown, and the arguments."""

    tool_id: UUID
    fingerprint: str
    arguments: Mapping[str, Any]

    def to_model_request(self) -> ModelRequest:
        """Return the request as an external call stores it."""
        return ModelRequest(
            purpose=CallPurpose.TOOL,
            system="",
            messages=(),
            context={
                "tool": str(self.tool_id),
                "fingerprint": self.fingerprint,
                "arguments": dict(self.arguments),
            },
        )

    @classmethod
    def of(cls, request: ModelRequest) -> Self:
        """Return the request that an external call stores."""
        context = request.context
        return cls(
            tool_id=UUID(context["tool"]), fingerprint=context["fingerprint"], arguments=context["arguments"]
        )


def handle_of(action: str) -> str:
    """Return the handle of a tool's server in calls and in the ledger, instead of a model's."""
    return f"{PROVIDER}/{server_of(action)}"


def answer_text(answer: ToolAnswer) -> str:
    """Return an answer as the text of a reply."""
    return json.dumps({"text": answer.text, "is_error": answer.is_error}, ensure_ascii=False)


def read_answer_text(text: str) -> ToolAnswer:
    """Return the answer in the text of a reply."""
    written = json.loads(text)
    return ToolAnswer(text=written["text"], is_error=written["is_error"])
