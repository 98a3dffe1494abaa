"""The cores of agents as resources: identity, goals and self-knowledge, each a JSON document."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote
from uuid import UUID

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.types import Resource
from pydantic import BaseModel

from apps.agents.services.identity_profile import identity_entry
from apps.agents.services.lookup import agent_by_id
from apps.api.threads import in_thread
from apps.heartbeats.services.situations.situation import load_agent
from apps.mcp_server.callers import ToolContext, called_agent, caller_transaction, served_agents
from apps.mcp_server.definitions import errors_for_client
from apps.selves.services.self_knowledge import system_prompt_of
from arbor.errors import NotFound
from arbor.runtime import LoadedAgent

MIME_TYPE = "application/json"
#: The most agents whose resources are listed; the others are read by their addresses all the same.
MAX_AGENTS = 100


@dataclass(frozen=True, kw_only=True)
class CorePart:
    """One part of an agent's core."""

    name: str
    title: str
    description: str
    #: The part's fields of a loaded agent.
    fields: Sequence[str]
    #: Whether the document also has the agent's system prompt, as `character`, and its endorsement.
    has_prompt: bool = False

    @property
    def template(self) -> str:
        """The address, with the agent as its variable."""
        return f"agent://{{agent}}/{self.name}"

    def uri(self, agent: str) -> str:
        """Return the address of an agent's part."""
        return f"agent://{quote(agent, safe='')}/{self.name}"


PARTS = (
    CorePart(
        name="identity",
        title="Identity",
        description="Who the agent is: status, character, aspects of its identity, and its endorsement.",
        fields=("public_id", "status", "model", "energy", "heartbeats", "aspects", "mood", "drives"),
        has_prompt=True,
    ),
    CorePart(
        name="goals",
        title="Goals",
        description="What the agent wants: goals, plans, intents, and what a review noticed.",
        fields=("goals", "plans", "intents", "issues"),
    ),
    CorePart(
        name="self",
        title="Self-knowledge",
        description="What the agent takes to be true, prefers and can do; whom it trusts; pending proposals.",
        fields=(
            "beliefs",
            "contradictions",
            "preferences",
            "capabilities",
            "experiences",
            "peers",
            "proposals",
        ),
    ),
)


def reader_of(part: CorePart) -> Callable[[ToolContext, str], Awaitable[str]]:
    """Return the function that reads a part of an agent's core."""

    async def read(context: ToolContext, agent: str) -> str:
        with errors_for_client(ResourceError):
            try:
                return await in_thread(_read_part, part, context, agent)
            except NotFound as error:
                raise ResourceNotFoundError(str(error)) from error

    return read


def _read_part(part: CorePart, context: ToolContext, agent: str) -> str:
    called = called_agent(context, unquote(agent))
    with called.transaction():
        document = _document(part, load_agent(called.id))
        if part.has_prompt:
            document["character"] = system_prompt_of(agent_by_id(called.id))
            document["endorsement"] = _endorsement(called.id)
    return json.dumps(document, ensure_ascii=False, indent=2)


def core_resources(context: ToolContext) -> list[Resource]:
    """Return the resources of the first agents that the caller may use."""
    with caller_transaction(context) as caller:
        names = list(served_agents(caller).values_list("name", flat=True)[:MAX_AGENTS])
    return [
        Resource(
            uri=part.uri(name),
            name=f"{name}: {part.name}",
            title=f"{part.title} of {name}",
            description=part.description,
            mime_type=MIME_TYPE,
        )
        for name in names
        for part in PARTS
    ]


def _document(part: CorePart, loaded: LoadedAgent) -> dict[str, Any]:
    values = {field: getattr(loaded, field) for field in part.fields}
    return {"agent": loaded.name, "id": str(loaded.id)} | {
        field: _json_value(value) for field, value in values.items()
    }


def _endorsement(agent_id: UUID) -> dict[str, Any]:
    """Return the System Authority's statement about the agent's identity, verified, and why the agent may not act, if so."""
    entry = identity_entry(agent_id)
    return {
        "status": entry.endorsement.status.value if entry.endorsement is not None else "none",
        "since": entry.endorsement.at.isoformat() if entry.endorsement is not None else None,
        "refusal": entry.refusal,
        "public_key_hex": entry.public_key_hex,
    }


def _json_value(value: Any) -> Any:
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case str() | None | bool() | int() | float():
            return value
    return [_json_value(item) for item in value]
