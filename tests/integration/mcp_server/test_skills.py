"""Skills over MCP: a model lists and reads them, and never chooses."""

from __future__ import annotations

from apps.agents.models import Agent
from apps.knowledge.services.active_skills import choose_skills
from apps.knowledge.services.skills import add_skill
from apps.tenants.scope import tenant_transaction
from tests.integration.mcp_server.conftest import InProcessClient
from tests.integration.skills.conftest import skill_text


def test_skills_are_listed_and_read(client: InProcessClient, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        for name in ("lamps", "ropes"):
            add_skill(text=skill_text(name), actor="user:nora")
        choose_skills(agent_id=agent.id, names=["ropes"], actor="user:nora")

    listed = client.tool("list_skills")["skills"]
    assert [(skill["name"], skill["active"]) for skill in listed] == [("lamps", False), ("ropes", True)]
    assert client.tool("read_skill", name="ropes")["text"] == skill_text("ropes")
