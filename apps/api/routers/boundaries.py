"""The boundaries of an agent."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.api.authentication import READ
from apps.api.requests import access_of
from apps.api.rows import Input
from apps.api.scope import own_transactions
from apps.selves.models import Boundary
from apps.selves.services.boundaries import (
    add_boundary,
    boundaries_of,
    match_boundaries,
    remove_boundary,
    restore_boundary,
)
from arbor.selves.boundaries import (
    EXAMPLE_LENGTH,
    MAX_EXAMPLES,
    MAX_PATTERNS,
    PATTERN_LENGTH,
    BoundaryResponse,
    BoundaryType,
    NewBoundary,
)
from arbor.selves.values import TEXT_LENGTH

router = Router()

_Share = Annotated[float, Field(ge=0, le=1)]
_Pattern = Annotated[str, Field(min_length=1, max_length=PATTERN_LENGTH)]
_Example = Annotated[str, Field(min_length=1, max_length=EXAMPLE_LENGTH)]


class BoundaryResource(Schema):
    """A boundary in force."""

    name: str
    type: BoundaryType
    response: BoundaryResponse
    description: str
    patterns: list[str]
    examples: list[str]
    flexibility: float
    importance: float
    own: bool = Field(description="False: every agent has it.")


class BoundaryList(Schema):
    """The boundaries of an agent, the most important first."""

    items: list[BoundaryResource]
    disabled: list[str] = Field(description="Names of boundaries that do not apply.")


class BoundaryInput(Input):
    """A new boundary; it replaces a default one of the same name."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    type: BoundaryType = BoundaryType.ETHICAL
    response: BoundaryResponse = BoundaryResponse.REFUSE
    description: Annotated[str, Field(max_length=TEXT_LENGTH)] = ""
    patterns: Annotated[list[_Pattern], Field(max_length=MAX_PATTERNS)] = []
    examples: Annotated[list[_Example], Field(max_length=MAX_EXAMPLES)] = []
    flexibility: _Share = Field(
        default=0.0, description="With the response negotiate: from 0 (absolute) to 1 (negotiable)."
    )
    importance: _Share = 0.5


class BoundaryName(Schema):
    """A boundary that was changed."""

    name: str
    done: str = Field(description="What happened to it.")


class TextInput(Input):
    """A text to check."""

    text: Annotated[str, Field(min_length=1, max_length=10_000)]


class BoundaryMatchResource(Schema):
    """A boundary that applies to a text."""

    name: str
    response: BoundaryResponse
    why: str


class BoundaryMatches(Schema):
    """The boundaries that apply to a text."""

    items: list[BoundaryMatchResource]


@router.get("/agents/{uuid:agent_id}/boundaries", response=BoundaryList, summary="List boundaries")
def list_boundaries(request: HttpRequest, agent_id: UUID) -> BoundaryList:
    """List the boundaries in force for an agent, the most important first, and the disabled ones."""
    own = dict(Boundary.objects.filter(agent_id=agent_id).values_list("name", "enabled"))
    rules = sorted(boundaries_of(agent_id), key=lambda rule: (-rule.importance, rule.name))
    return BoundaryList(
        items=[
            BoundaryResource(
                name=rule.name,
                type=rule.type,
                response=rule.response,
                description=rule.description,
                patterns=list(rule.patterns),
                examples=list(rule.examples),
                flexibility=rule.flexibility,
                importance=rule.importance,
                own=rule.name in own,
            )
            for rule in rules
        ],
        disabled=sorted(name for name, enabled in own.items() if not enabled),
    )


@router.post("/agents/{uuid:agent_id}/boundaries", response={201: BoundaryName}, summary="Add a boundary")
@own_transactions
def create_boundary(request: HttpRequest, agent_id: UUID, boundary: BoundaryInput) -> Status[BoundaryName]:
    """Add a boundary to an agent; it applies from the next heartbeat on."""
    access = access_of(request)
    new = NewBoundary(**boundary.model_dump(), source=access.actor)
    row = add_boundary(tenant_id=access.tenant_id, agent_id=agent_id, boundary=new, actor=access.actor)
    return Status(201, BoundaryName(name=row.name, done="added"))


@router.delete(
    "/agents/{uuid:agent_id}/boundaries/{str:name}", response=BoundaryName, summary="Remove a boundary"
)
def delete_boundary(request: HttpRequest, agent_id: UUID, name: str) -> BoundaryName:
    """Remove an agent's own boundary, or disable a default one."""
    done = remove_boundary(agent_id=agent_id, name=name, actor=access_of(request).actor)
    return BoundaryName(name=name, done=done)


@router.post(
    "/agents/{uuid:agent_id}/boundaries/{str:name}/restore",
    response=BoundaryName,
    summary="Restore a boundary",
)
def reset_boundary(request: HttpRequest, agent_id: UUID, name: str) -> BoundaryName:
    """Restore a default boundary of an agent."""
    restore_boundary(agent_id=agent_id, name=name, actor=access_of(request).actor)
    return BoundaryName(name=name, done="restored")


@router.post(
    "/agents/{uuid:agent_id}/check-boundaries",
    response=BoundaryMatches,
    auth=READ,
    summary="Check a text against boundaries",
)
@own_transactions
def check_text(request: HttpRequest, agent_id: UUID, checked: TextInput) -> BoundaryMatches:
    """Check a text against an agent's boundaries. Nothing is stored."""
    found = match_boundaries(tenant_id=access_of(request).tenant_id, agent_id=agent_id, text=checked.text)
    return BoundaryMatches(
        items=[
            BoundaryMatchResource(name=match.boundary.name, response=match.boundary.response, why=match.why)
            for match in found
        ]
    )
