"""The tenant of the request's token, and the token itself."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from apps.api.authentication import READ_OWN
from apps.api.requests import access_of
from apps.tenants.models import Tenant

router = Router()


class Whoami(Schema):
    """The token of the request."""

    token: str = Field(description="Its name.")
    tenant: str = Field(description="The slug of its tenant.", examples=["acme"])
    role: str = Field(description="Its role: viewer, operator or owner.")
    agent_id: str | None = Field(description="The only agent that it reaches; null: all of the tenant.")


class TenantResource(Schema):
    """A tenant."""

    id: UUID = Field(description="Its id.")
    slug: str = Field(description="Its short name.", examples=["acme"])
    name: str = Field(description="Its name.", examples=["Acme Ltd."])
    status: str = Field(description="active or suspended.")
    created_at: datetime


@router.get("/token", response=Whoami, auth=READ_OWN, summary="Show the token of the request")
def show_token(request: HttpRequest) -> Whoami:
    """Show which tenant and role the token of the request has."""
    access = access_of(request)
    return Whoami(
        token=access.name,
        tenant=access.tenant_slug,
        role=access.role.value,
        agent_id=str(access.agent_id) if access.agent_id else None,
    )


@router.get("/tenant", response=TenantResource, auth=READ_OWN, summary="Show the tenant")
def show_tenant(request: HttpRequest) -> TenantResource:
    """Show the tenant of the token."""
    return TenantResource.model_validate(Tenant.objects.get(id=access_of(request).tenant_id))
