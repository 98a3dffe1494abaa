"""The card of a published agent, for clients of version 1.0 and 0.3 of the protocol."""

from __future__ import annotations

from typing import Any

from apps.agents.models import Agent
from apps.api.a2a.schemas import TEXT_MODES

_BINDING = "JSONRPC"
_SCHEME = "bearer"


def card_of(agent: Agent, *, url: str) -> dict[str, Any]:
    """Return an agent's card: its name, role and public description, nothing of its instructions and memories."""
    role = agent.character.get("role", "")
    described = agent.public_description or (f"{agent.name}: {role}." if role else f"The agent {agent.name}.")
    return {
        "name": agent.name,
        "description": described,
        "version": agent.template_version,
        "supportedInterfaces": [
            {"url": url, "protocolBinding": _BINDING, "protocolVersion": version}
            for version in ("1.0", "0.3")
        ],
        "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
        "securitySchemes": {_SCHEME: _scheme()},
        "securityRequirements": [{"schemes": {_SCHEME: {"list": []}}}],
        "defaultInputModes": list(TEXT_MODES),
        "defaultOutputModes": list(TEXT_MODES),
        "skills": _skills(agent, role),
        # The same for clients of version 0.3.
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": _BINDING,
        "security": [{_SCHEME: []}],
    }


def _scheme() -> dict[str, Any]:
    described = {"description": "A token of the agent's tenant, `arbor_…`."}
    return {
        "httpAuthSecurityScheme": {"scheme": "Bearer", **described},
        "type": "http",
        "scheme": "Bearer",
        **described,
    }


def _skills(agent: Agent, role: str) -> list[dict[str, Any]]:
    """Return the skills: conversation, and the role that the template gives."""
    skills = [
        {
            "id": "chat",
            "name": "Conversation",
            "description": f"Talk to {agent.name}, who remembers what was said, also in later conversations.",
            "tags": ["conversation", "memory"],
        }
    ]
    if role:
        fields = [item["category"] for item in agent.character.get("knowledge", [])]
        traits = [trait["name"] for trait in agent.character.get("traits", [])]
        skills.append(
            {
                "id": "role",
                "name": role,
                "description": f"Ask {agent.name} about {role}.",
                "tags": list(dict.fromkeys([*fields, *traits])) or [role],
            }
        )
    return skills
