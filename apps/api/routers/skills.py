"""Skills of the tenant and of the installation, and the active ones of agents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.api.authentication import READ
from apps.api.requests import access_of
from apps.api.rows import Input
from apps.knowledge.services.active_skills import active_skills, choose_skills
from apps.knowledge.services.skills import (
    USERS_SHOWN,
    VERSIONS_SHOWN,
    FoundSkill,
    SkillOrigin,
    add_skill,
    delete_skill,
    find_skill,
    first_agents_with,
    latest_versions,
    list_skills,
    replace_skill,
    text_of,
)
from arbor.knowledge.skills import MAX_SKILL_LENGTH, MAX_SKILLS, parse_skill

router = Router()

_Text = Annotated[
    str, Field(min_length=1, max_length=MAX_SKILL_LENGTH, description="The whole SKILL.md file.")
]


class SkillResource(Schema):
    """A skill that the tenant's agents can use."""

    name: str = Field(examples=["decision-memo"])
    description: str
    version: str
    tags: list[str]
    origin: SkillOrigin
    digest: str = Field(description="The SHA-256 of the file, which names this version.")
    tokens: int = Field(description="The estimated tokens of its instructions.")
    is_present: bool = Field(description="False: its file is gone; only agents that use it keep it.")
    agents: int = Field(description="The number of the tenant's agents that use it.")
    updated_at: datetime


class SkillVersionResource(Schema):
    """A version of a skill."""

    digest: str
    version: str
    created_by: str
    created_at: datetime
    is_current: bool


class SkillUser(Schema):
    """An agent that uses a skill."""

    id: UUID
    name: str


class SkillDetails(SkillResource):
    """A skill as it was written, with its versions and the agents that use it."""

    text: str
    versions: list[SkillVersionResource] = Field(
        description=f"The latest {VERSIONS_SHOWN}, the latest first; `versions_total` counts all."
    )
    versions_total: int
    users: list[SkillUser] = Field(description=f"The first {USERS_SHOWN} by name; `agents` counts all.")


class SkillList(Schema):
    """Skills."""

    items: list[SkillResource]


class SkillInput(Input):
    """A skill's file."""

    text: _Text


class SkillChoice(Input):
    """The names of active skills."""

    names: list[str] = Field(
        max_length=100, description=f"In the order of the prompts, at most {MAX_SKILLS}; empty: none."
    )


class SkillName(Schema):
    """The name of a deleted skill."""

    name: str


class SkillCheck(Schema):
    """A valid skill's name."""

    name: str
    version: str


@router.get("/skills", response=SkillList, summary="List skills")
def list_all(request: HttpRequest) -> SkillList:
    """List the skills that the tenant's agents can use: its own, and the global ones."""
    return SkillList(items=[SkillResource.model_validate(skill) for skill in list_skills()])


@router.get("/skills/{str:name}", response=SkillDetails, summary="Show a skill")
def show(request: HttpRequest, name: str) -> SkillDetails:
    """Show a skill as it was written."""
    return _details(find_skill(name))


@router.post("/check-skill", response=SkillCheck, auth=READ, summary="Check a skill")
def check(request: HttpRequest, skill: SkillInput) -> SkillCheck:
    """Check a SKILL.md file; the answer to a wrong file lists every fault with its line."""
    checked = parse_skill(skill.text)
    return SkillCheck(name=checked.name, version=checked.version)


@router.post("/skills", response={201: SkillDetails}, summary="Add a skill")
def add(request: HttpRequest, skill: SkillInput) -> Status[SkillDetails]:
    """Add a skill of the tenant. A skill of the same name is answered 409."""
    return Status(201, _details(add_skill(text=skill.text, actor=access_of(request).actor)))


@router.put("/skills", response=SkillDetails, summary="Replace a skill")
def replace(request: HttpRequest, skill: SkillInput) -> SkillDetails:
    """Store a new version of the tenant's skill of the text's name; its agents follow it from their next prompt on."""
    return _details(replace_skill(text=skill.text, actor=access_of(request).actor))


@router.delete("/skills/{str:name}", response=SkillName, summary="Delete a skill")
def delete(request: HttpRequest, name: str) -> SkillName:
    """Delete a skill of the tenant that no agent uses."""
    delete_skill(name=name, actor=access_of(request).actor)
    return SkillName(name=name)


@router.get("/agents/{uuid:agent_id}/skills", response=SkillList, summary="List active skills")
def list_active(request: HttpRequest, agent_id: UUID) -> SkillList:
    """List the skills that an agent follows, in the order of its prompts."""
    return SkillList(items=[SkillResource.model_validate(skill) for skill in active_skills(agent_id)])


@router.put("/agents/{uuid:agent_id}/skills", response=SkillList, summary="Choose active skills")
def choose(request: HttpRequest, agent_id: UUID, choice: SkillChoice) -> SkillList:
    """Choose the skills that an agent follows. Those that do not fit the window of its models are answered 409 with their sizes."""
    chosen = choose_skills(agent_id=agent_id, names=choice.names, actor=access_of(request).actor)
    return SkillList(items=[SkillResource.model_validate(skill) for skill in chosen])


def _details(skill: FoundSkill) -> SkillDetails:
    versions = latest_versions(skill)
    return SkillDetails(
        **SkillResource.model_validate(skill).model_dump(),
        text=text_of(skill),
        versions=[SkillVersionResource.model_validate(version) for version in versions.shown],
        versions_total=versions.total,
        users=[SkillUser.model_validate(agent) for agent in first_agents_with(skill.name)],
    )
