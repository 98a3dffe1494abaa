"""Administer the tenant: members, tokens and limits."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.access.models import ApiToken
from apps.access.services import LONGEST_LIFETIME, NAME_LENGTH, create_token, revoke_token
from apps.api.authentication import ADMINISTER
from apps.api.limits import DailyDollars, DailyHeartbeats, DailyTokens
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input
from apps.api.scope import answers_secret
from apps.fleet.administration import limit_tenant
from apps.fleet.members import dismiss_member, set_member_role
from apps.tenants.models import Membership, Role, Tenant
from arbor.errors import Invalid

router = Router()


class MemberResource(Schema):
    """A member of the tenant."""

    username: str
    role: Role
    created_at: datetime

    @classmethod
    def of(cls, member: Membership) -> MemberResource:
        """Return the resource of a row with its account."""
        return cls(username=member.user.username, role=Role(member.role), created_at=member.created_at)


class MemberRole(Input):
    """The role of a member."""

    role: Role


class TokenResource(Schema):
    """An API token, without its secret."""

    id: UUID
    name: str
    prefix: str = Field(description="Its beginning, by which people recognize it.")
    role: Role
    agent_id: UUID | None = Field(description="The only agent that it reaches; null: all.")
    tasks_only: bool = Field(description="It gives tasks to published agents, and does nothing else.")
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class TokenInput(Input):
    """A new API token."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH)]
    role: Role = Role.VIEWER
    agent_id: UUID | None = None
    tasks_only: Annotated[
        bool,
        Field(
            description="For an agent elsewhere: it gives tasks to published agents only, whatever its role."
        ),
    ] = False
    days: Annotated[
        int | None, Field(ge=1, le=LONGEST_LIFETIME.days, description="Its life; null: without end.")
    ] = 90


class NewTokenResource(Schema):
    """A new API token, which is shown once."""

    token: str = Field(description="Shown only now: its hash is stored.")
    about: TokenResource


class LimitsResource(Schema):
    """The daily limits (UTC) of all agents of the tenant together; null: no limit."""

    daily_heartbeats: int | None
    daily_tokens: int | None
    daily_usd: Decimal | None


class LimitsChange(Input):
    """The limits to change; limits that are left out stay, null removes a limit."""

    daily_heartbeats: DailyHeartbeats | None = None
    daily_tokens: DailyTokens | None = None
    daily_usd: DailyDollars | None = None


@router.get("/members", response=ListPage[MemberResource], summary="List members")
def list_members(request: HttpRequest, page: Paging) -> ListPage[MemberResource]:
    """List the members of the tenant, the oldest first."""
    rows = Membership.objects.select_related("user").only("tenant", "role", "created_at", "user__username")
    return page_of(rows, page, order="created_at", to_resource=MemberResource.of)


@router.put("/members/{str:username}", response=MemberResource, auth=ADMINISTER, summary="Add a member")
def put_member(request: HttpRequest, username: str, member: MemberRole) -> MemberResource:
    """Add an account to the tenant, or change its role there."""
    access = access_of(request)
    membership = set_member_role(
        slug=access.tenant_slug, username=username, role=member.role, actor=access.actor
    )
    return MemberResource.of(membership)


@router.delete("/members/{str:username}", response={204: None}, auth=ADMINISTER, summary="Remove a member")
def delete_member(request: HttpRequest, username: str) -> Status[None]:
    """Remove an account from the tenant."""
    access = access_of(request)
    dismiss_member(slug=access.tenant_slug, username=username, actor=access.actor)
    return Status(204, None)


@router.get("/tokens", response=ListPage[TokenResource], auth=ADMINISTER, summary="List tokens")
def list_tokens(request: HttpRequest, page: Paging) -> ListPage[TokenResource]:
    """List the API tokens of the tenant, the latest first."""
    return page_of(
        ApiToken.objects.all(), page, order="-created_at", to_resource=TokenResource.model_validate
    )


@router.post("/tokens", response={201: NewTokenResource}, auth=ADMINISTER, summary="Create a token")
@answers_secret
def add_token(request: HttpRequest, payload: TokenInput) -> Status[NewTokenResource]:
    """Create an API token and show it once."""
    new = create_token(
        name=payload.name,
        role=payload.role,
        actor=access_of(request).actor,
        agent_id=payload.agent_id,
        tasks_only=payload.tasks_only,
        lifetime=timedelta(days=payload.days) if payload.days is not None else None,
    )
    return Status(201, NewTokenResource(token=new.text, about=TokenResource.model_validate(new.row)))


@router.post(
    "/tokens/{uuid:token_id}/revoke", response=TokenResource, auth=ADMINISTER, summary="Revoke a token"
)
def end_token(request: HttpRequest, token_id: UUID) -> TokenResource:
    """Revoke a token, for good and at once."""
    return TokenResource.model_validate(revoke_token(token_id=token_id, actor=access_of(request).actor))


@router.get("/limits", response=LimitsResource, summary="Show the daily limits")
def show_limits(request: HttpRequest) -> LimitsResource:
    """Show the daily limits of the tenant."""
    return LimitsResource.model_validate(Tenant.objects.get(id=access_of(request).tenant_id))


@router.patch("/limits", response=LimitsResource, auth=ADMINISTER, summary="Change the daily limits")
def change_limits(request: HttpRequest, change: LimitsChange) -> LimitsResource:
    """Change the daily limits of the tenant. Agents halted by a lower limit resume."""
    limits = {name: getattr(change, name) for name in change.model_fields_set}
    if not limits:
        raise Invalid(f"name a limit to change: {', '.join(LimitsChange.model_fields)}")
    access = access_of(request)
    return LimitsResource.model_validate(
        limit_tenant(slug=access.tenant_slug, limits=limits, actor=access.actor)
    )
