"""The self-knowledge of an agent, its growth log, the versions of its self, and rollbacks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from apps.agents.services.lookup import agent_by_id
from apps.api.requests import access_of
from apps.api.rows import Input
from apps.selves.services.changes import REASON_LENGTH
from apps.selves.services.history import (
    SelfVersion,
    diff_versions,
    growth_log,
    latest_version,
    versions_of,
)
from apps.selves.services.rollback import ALL_PARTS, roll_back
from apps.selves.services.self_knowledge import load_self_knowledge, system_prompt_of
from arbor.selves.history import GROWTH_LOG, DifferenceKind, PartDifference, PartKind
from arbor.selves.self_knowledge import Quality

router = Router()

_Version = Annotated[int, Field(ge=1)]


class QualityResource(Schema):
    """A trait, value or capability."""

    name: str
    strength: float = Field(description="0 to 1: of a value its importance, of a capability the proficiency.")
    questioned: bool


class SelfKnowledgeResource(Schema):
    """The traits, values and capabilities of an agent, as its system prompt shows them."""

    version: int = Field(description="The version of the self; each change makes another.")
    traits: list[QualityResource]
    values: list[QualityResource]
    capabilities: list[QualityResource]
    system_prompt: str


class SelfChangeResource(Schema):
    """A change of a self; without `before` the part is new, without `after` it is gone."""

    id: UUID
    version: int
    what: str = Field(description="birth, aspect, belief, preference or boundary.")
    target_id: UUID
    before: Any
    after: Any
    proposal_id: UUID | None
    decided_by: str
    reason: str
    at: datetime


class PartDifferenceResource(Schema):
    """A difference of one part of a self between two versions."""

    part: PartKind
    target_id: UUID
    difference: DifferenceKind
    kind: str = Field(description="Of an aspect its kind, such as trait; else the part.")
    name: str
    before: Any
    after: Any


class SelfVersionResource(Schema):
    """A version of a self, with the changes that led to it."""

    number: int
    at: datetime
    decided_by: str
    reason: str
    changes: list[PartDifferenceResource]


class VersionDiffResource(Schema):
    """The differences between two versions of a self."""

    earlier: int
    later: int
    differences: list[PartDifferenceResource]


class RollbackInput(Input):
    """A version to go back to."""

    version: _Version
    parts: list[PartKind] = Field(default=list(ALL_PARTS), min_length=1)
    reason: Annotated[str, Field(max_length=REASON_LENGTH, description="For the record.")] = ""


class RollbackResource(Schema):
    """The result of a rollback."""

    to: int
    version: int = Field(description="The version that the rollback made; the latest where nothing differed.")
    differences: list[PartDifferenceResource]


@router.get("/agents/{uuid:agent_id}/self", response=SelfKnowledgeResource, summary="Show the self-knowledge")
def show_self(request: HttpRequest, agent_id: UUID) -> SelfKnowledgeResource:
    """Show an agent's traits, values and capabilities, and the system prompt that they are part of."""
    agent = agent_by_id(agent_id)
    knowledge = load_self_knowledge(agent_id)
    return SelfKnowledgeResource(
        version=latest_version(agent_id),
        traits=_qualities(knowledge.traits),
        values=_qualities(knowledge.values),
        capabilities=_qualities(knowledge.capabilities),
        system_prompt=system_prompt_of(agent, knowledge),
    )


@router.get(
    "/agents/{uuid:agent_id}/self/changes", response=list[SelfChangeResource], summary="Show the growth log"
)
def list_changes(
    request: HttpRequest, agent_id: UUID, limit: Annotated[int, Query(ge=1, le=GROWTH_LOG)] = GROWTH_LOG
) -> list[SelfChangeResource]:
    """Show the latest changes of an agent's self, at most 100, the latest first."""
    agent_by_id(agent_id)
    return [SelfChangeResource.model_validate(change) for change in growth_log(agent_id, limit=limit)]


@router.get(
    "/agents/{uuid:agent_id}/self/versions",
    response=list[SelfVersionResource],
    summary="List versions of the self",
)
def list_versions(request: HttpRequest, agent_id: UUID) -> list[SelfVersionResource]:
    """List the versions that can be compared and restored: the ten latest, the latest first, and the birth."""
    agent_by_id(agent_id)
    return [_version(version) for version in versions_of(agent_id)]


@router.get(
    "/agents/{uuid:agent_id}/self/diff", response=VersionDiffResource, summary="Compare versions of the self"
)
def compare_versions(
    request: HttpRequest, agent_id: UUID, earlier: _Version, later: _Version | None = None
) -> VersionDiffResource:
    """Compare two versions of an agent's self; `later` is the self of today by default."""
    agent_by_id(agent_id)
    diff = diff_versions(agent_id=agent_id, earlier=earlier, later=later)
    return VersionDiffResource(
        earlier=diff.earlier, later=diff.later, differences=[_difference(part) for part in diff.differences]
    )


@router.post("/agents/{uuid:agent_id}/self/rollback", response=RollbackResource, summary="Roll the self back")
def restore_version(request: HttpRequest, agent_id: UUID, wanted: RollbackInput) -> RollbackResource:
    """Restore the parts of a self as they were at an earlier version. The rollback is a version of its own."""
    result = roll_back(
        agent_id=agent_id,
        to=wanted.version,
        parts=wanted.parts,
        actor=access_of(request).actor,
        reason=wanted.reason,
    )
    return RollbackResource(
        to=result.to,
        version=result.version,
        differences=[_difference(part) for part in result.differences],
    )


def _qualities(qualities: tuple[Quality, ...]) -> list[QualityResource]:
    return [QualityResource.model_validate(quality) for quality in qualities]


def _version(version: SelfVersion) -> SelfVersionResource:
    return SelfVersionResource(
        number=version.number,
        at=version.at,
        decided_by=version.decided_by,
        reason=version.reason,
        changes=[_difference(part) for part in version.changes],
    )


def _difference(part: PartDifference) -> PartDifferenceResource:
    return PartDifferenceResource(
        part=part.part,
        target_id=UUID(part.target_id),
        difference=part.difference,
        kind=part.kind,
        name=part.name,
        before=dict(part.before),
        after=dict(part.after),
    )
