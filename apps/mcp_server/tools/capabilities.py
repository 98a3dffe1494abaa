"""Explain what an agent may do."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from apps.authority.services.explanations import explain_authorization
from apps.mcp_server.callers import ToolContext, called_agent
from apps.mcp_server.definitions import AgentParam, ToolResult
from arbor.agents.capabilities import MAX_URI_LENGTH


class TriedGrantLine(ToolResult):
    """A capability that covers the resource, and why it does not authorize it."""

    capability: str
    resource: str
    code: str
    reason: str


class DenialExplanation(ToolResult):
    """The decision whether an agent may use a resource now."""

    agent: str
    resource: str
    granted: bool
    capability: str = Field(description="The capability that authorizes it; empty if none does.")
    code: str
    reason: str
    tried: list[TriedGrantLine]


def why_denied(
    context: ToolContext,
    resource: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_URI_LENGTH,
            description="An arbor:// URI, or the name of an action.",
        ),
    ],
    agent: AgentParam = None,
) -> DenialExplanation:
    """Explain whether an agent may do an action now, and why not. Only people grant capabilities."""
    called = called_agent(context, agent)
    with called.transaction():
        report = explain_authorization(agent_id=called.id, resource=resource)
    return DenialExplanation.model_validate({"agent": called.name, **report.to_json()})
