"""List and read skills."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from apps.knowledge.services.active_skills import active_skills
from apps.knowledge.services.skills import find_skill, text_of
from apps.knowledge.services.skills import list_skills as find_all_skills
from apps.mcp_server.callers import ToolContext, called_agent
from apps.mcp_server.definitions import AgentParam, ToolResult


class SkillLine(ToolResult):
    """A skill."""

    name: str
    description: str
    version: str
    origin: str = Field(description="tenant or global.")
    active: bool = Field(description="Whether the agent follows it.")


class SkillLines(ToolResult):
    """The skills that an agent can follow."""

    agent: str
    skills: list[SkillLine]


class SkillText(ToolResult):
    """A skill as it was written."""

    name: str
    version: str
    text: str = Field(description="The whole SKILL.md file.")


def list_skills(context: ToolContext, agent: AgentParam = None) -> SkillLines:
    """List the skills that an agent can follow, and those that it does. Only people choose them."""
    called = called_agent(context, agent)
    with called.transaction():
        active = {skill.name for skill in active_skills(called.id)}
        found = find_all_skills()
    return SkillLines(
        agent=called.name,
        skills=[
            SkillLine(
                name=skill.name,
                description=skill.description,
                version=skill.version,
                origin=skill.origin.value,
                active=skill.name in active,
            )
            for skill in found
        ],
    )


def read_skill(
    context: ToolContext,
    name: Annotated[str, Field(min_length=1, max_length=64, description="The skill's name.")],
    agent: AgentParam = None,
) -> SkillText:
    """Read a skill as it was written: instructions that agents follow in their work."""
    called = called_agent(context, agent)
    with called.transaction():
        skill = find_skill(name)
        return SkillText(name=skill.name, version=skill.version, text=text_of(skill))
