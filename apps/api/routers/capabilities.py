"""Grant, delegate, revoke and explain the capabilities of agents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Self
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from apps.api.authentication import OPERATE_AGENTS
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input, own_row
from apps.api.times import Moment
from apps.authority.models import CapabilityGrant
from apps.authority.services.authority_column import capability_name
from apps.authority.services.explanations import (
    GrantStatus,
    capabilities_of,
    explain_authorization,
    status_of,
)
from apps.authority.services.grants import (
    REASON_LENGTH,
    delegate_capability,
    grant_capability,
    revoke_capability,
)
from arbor.agents.capabilities import MAX_URI_LENGTH
from arbor.authority.authorization import DenialCode
from arbor.authority.constraints import MAX_PERIOD_S, MAX_USES, Constraints, constraints_from_input
from arbor.authority.grants import DEFAULT_DEPTH, MAX_DEPTH

router = Router()

_Resource = Annotated[
    str, Field(min_length=1, max_length=MAX_URI_LENGTH, examples=["arbor://actions/execute/reach_out_public"])
]


class CapabilityResource(Schema):
    """A grant of a resource to an agent."""

    id: UUID
    name: str = Field(description="The id as it is signed and shown: `cap_` and 32 hexadecimal digits.")
    agent_id: UUID | None = Field(description="Null: all agents of the tenant.")
    resource: str
    status: GrantStatus
    constraints: dict[str, Any]
    parent_id: UUID | None = Field(description="The capability that it was delegated from.")
    depth: int = Field(description="The levels of delegation that are allowed below it.")
    granted_by: str
    granted_at: datetime
    revoked_at: datetime | None
    revoked_reason: str

    @classmethod
    def of(cls, row: CapabilityGrant) -> Self:
        """Return the resource of a row."""
        return cls(
            id=row.id,
            name=capability_name(row.id),
            agent_id=row.agent_id,
            resource=row.resource,
            status=status_of(row, now=datetime.now(UTC)),
            constraints=row.constraints or {},
            parent_id=row.parent_id,
            depth=row.depth,
            granted_by=row.granted_by,
            granted_at=row.granted_at,
            revoked_at=row.revoked_at,
            revoked_reason=row.revoked_reason,
        )


class CapabilityLimits(Input):
    """The constraints of a grant."""

    not_before: Moment | None = None
    expires_at: Moment | None = None
    max_uses: Annotated[int | None, Field(ge=1, le=MAX_USES, description="Uses in all.")] = None
    rate_uses: Annotated[int | None, Field(ge=1, le=MAX_USES, description="Uses in each period.")] = None
    rate_seconds: Annotated[int | None, Field(ge=1, le=MAX_PERIOD_S, description="The period.")] = None
    hours: Annotated[str, Field(max_length=80, examples=["09:00-17:00 mon,tue"])] = ""
    time_zone: Annotated[str, Field(max_length=80, examples=["Europe/Berlin"])] = "UTC"

    def constraints(self) -> Constraints:
        """Return the constraints. Raises CapabilityInvalid."""
        return constraints_from_input(
            not_before=self.not_before,
            expires_at=self.expires_at,
            max_uses=self.max_uses,
            rate_uses=self.rate_uses,
            rate_seconds=self.rate_seconds,
            hours=self.hours,
            time_zone=self.time_zone,
        )


class CapabilityInput(CapabilityLimits):
    """A new grant."""

    resource: _Resource
    depth: Annotated[int, Field(ge=0, le=MAX_DEPTH)] = DEFAULT_DEPTH


class DelegationInput(CapabilityLimits):
    """A delegation. What is left out is inherited."""

    to_agent_id: UUID
    resource: Annotated[
        str, Field(max_length=MAX_URI_LENGTH, description="A part of the resource; empty: all.")
    ] = ""
    depth: Annotated[int | None, Field(ge=0, le=MAX_DEPTH)] = None


class CapabilityRevocation(Input):
    """The revocation of a grant."""

    reason: Annotated[str, Field(min_length=1, max_length=REASON_LENGTH)]


class RevokedCapabilities(Schema):
    """The number of revoked grants, delegated ones included."""

    revoked: int


class TriedCapability(Schema):
    """A grant that covers the resource, and why it does not authorize it."""

    capability: str
    resource: str
    code: DenialCode
    reason: str


class CapabilityExplanation(Schema):
    """The decision whether an agent may use a resource now."""

    resource: str
    granted: bool
    capability: str = Field(description="The grant that authorizes it; empty if none does.")
    code: str = Field(description="Why not; empty if granted.")
    reason: str = Field(description="Why not; of a granted resource, that a person is asked first.")
    tried: list[TriedCapability]


@router.get(
    "/agents/{uuid:agent_id}/capabilities",
    response=ListPage[CapabilityResource],
    summary="List capabilities",
)
def list_capabilities(
    request: HttpRequest, agent_id: UUID, page: Paging, revoked: bool = False
) -> ListPage[CapabilityResource]:
    """List the capabilities of an agent and of all agents; with `revoked`, revoked ones too."""
    rows = capabilities_of(agent_id, revoked=revoked)
    return page_of(rows, page, order="resource", to_resource=CapabilityResource.of)


@router.post(
    "/agents/{uuid:agent_id}/capabilities",
    response={201: CapabilityResource},
    summary="Grant a capability",
)
def create_capability(
    request: HttpRequest, agent_id: UUID, grant: CapabilityInput
) -> Status[CapabilityResource]:
    """Grant a resource to an agent."""
    row = grant_capability(
        agent_id=agent_id,
        resource=grant.resource,
        constraints=grant.constraints(),
        depth=grant.depth,
        actor=access_of(request).actor,
    )
    return Status(201, CapabilityResource.of(row))


@router.get(
    "/agents/{uuid:agent_id}/explain-capability",
    response=CapabilityExplanation,
    summary="Explain a denial",
)
def explain_capability(
    request: HttpRequest,
    agent_id: UUID,
    resource: Annotated[
        str,
        Query(
            min_length=1,
            max_length=MAX_URI_LENGTH,
            description="An `arbor://` URI, or the name of an action.",
        ),
    ],
) -> CapabilityExplanation:
    """Explain whether an agent may use a resource, or an action by its name, now, and why not."""
    report = explain_authorization(agent_id=agent_id, resource=resource)
    return CapabilityExplanation.model_validate(report.to_json())


@router.post(
    "/agents/{uuid:agent_id}/capabilities/{uuid:capability_id}/delegate",
    response={201: CapabilityResource},
    auth=OPERATE_AGENTS,
    summary="Delegate a capability",
)
def create_delegation(
    request: HttpRequest, agent_id: UUID, capability_id: UUID, delegation: DelegationInput
) -> Status[CapabilityResource]:
    """Delegate a capability of the agent, or a part of it, to another agent, within the limits of this capability."""
    own_row(CapabilityGrant, agent_id=agent_id, row_id=capability_id)
    row = delegate_capability(
        capability_id=capability_id,
        to_agent_id=delegation.to_agent_id,
        resource=delegation.resource,
        constraints=delegation.constraints(),
        depth=delegation.depth,
        actor=access_of(request).actor,
    )
    return Status(201, CapabilityResource.of(row))


@router.post(
    "/agents/{uuid:agent_id}/capabilities/{uuid:capability_id}/revoke",
    response=RevokedCapabilities,
    summary="Revoke a capability",
)
def revoke_grant(
    request: HttpRequest, agent_id: UUID, capability_id: UUID, revocation: CapabilityRevocation
) -> RevokedCapabilities:
    """Revoke a capability of the agent and all that was delegated from it."""
    own_row(CapabilityGrant, agent_id=agent_id, row_id=capability_id)
    revoked = revoke_capability(
        capability_id=capability_id, reason=revocation.reason, actor=access_of(request).actor
    )
    return RevokedCapabilities(revoked=revoked)
