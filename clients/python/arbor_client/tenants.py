"""The tenant of the token: its limits, members and tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import (
    UNCHANGED,
    Call,
    Id,
    PagedCall,
    Unchanged,
    delete,
    get,
    listed,
    patch,
    post,
    put,
    segment,
)
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """A tenant."""

    id: UUID
    slug: str
    name: str
    #: active or suspended.
    status: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Token:
    """The token of the client."""

    #: Its name.
    token: str
    #: The slug of its tenant.
    tenant: str
    #: viewer, operator or owner.
    role: str
    #: The only agent that the token reaches; None: all of the tenant.
    agent_id: UUID | None


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The daily limits (UTC) of all agents of the tenant together; None: no limit."""

    daily_heartbeats: int | None
    daily_tokens: int | None
    daily_usd: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of the tenant."""

    username: str
    #: viewer, operator or owner.
    role: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class ApiToken:
    """An API token, without its secret."""

    id: UUID
    name: str
    #: The beginning of the token, by which people recognize it.
    prefix: str
    #: viewer, operator or owner.
    role: str
    #: The only agent that it reaches; None: all.
    agent_id: UUID | None
    #: Whether it gives tasks to published agents, and does nothing else.
    tasks_only: bool
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class NewApiToken:
    """A new API token, which is shown once."""

    #: The server stores only its hash.
    token: str
    about: ApiToken


class TenantGroup[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about the tenant."""

    @operation
    def get(self) -> Call[Tenant]:
        """Return the tenant of the token."""
        return get(Tenant, "/tenant")

    @operation
    def token(self) -> Call[Token]:
        """Return the name, tenant and role of the token."""
        return get(Token, "/token")

    @operation
    def limits(self) -> Call[Limits]:
        """Return the daily limits of the tenant."""
        return get(Limits, "/limits")

    @operation
    def change_limits(
        self,
        *,
        daily_heartbeats: int | Unchanged | None = UNCHANGED,
        daily_tokens: int | Unchanged | None = UNCHANGED,
        daily_usd: Decimal | float | Unchanged | None = UNCHANGED,
    ) -> Call[Limits]:
        """Change the given limits; None removes a limit."""
        changes = {"daily_heartbeats": daily_heartbeats, "daily_tokens": daily_tokens, "daily_usd": daily_usd}
        return patch(Limits, "/limits", changes)


class Members[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about members."""

    @listing
    def list(self) -> PagedCall[Member]:
        """List the members of the tenant, the oldest first."""
        return listed(Member, "/members")

    @operation
    def put(self, username: str, *, role: str) -> Call[Member]:
        """Add an account to the tenant, or change its role there."""
        return put(Member, f"/members/{segment(username)}", {"role": role})

    @operation
    def remove(self, username: str) -> Call[None]:
        """Remove an account from the tenant."""
        return delete(type(None), f"/members/{segment(username)}")


class Tokens[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about API tokens."""

    @listing
    def list(self) -> PagedCall[ApiToken]:
        """List the API tokens of the tenant, the latest first."""
        return listed(ApiToken, "/tokens")

    @operation
    def create(
        self,
        name: str,
        *,
        role: str = "viewer",
        agent_id: Id | None = None,
        tasks_only: bool = False,
        days: int | None = 90,
    ) -> Call[NewApiToken]:
        """Create a token and return it, once; `days=None`: without end. With `tasks_only` it gives tasks to published agents only."""
        body = {"name": name, "role": role, "agent_id": agent_id, "tasks_only": tasks_only}
        call = post(NewApiToken, "/tokens", body)
        # `post` leaves out values that are None, and without `days` the server uses its default.
        return replace(call, body={**(call.body or {}), "days": days})

    @operation
    def revoke(self, token_id: Id) -> Call[ApiToken]:
        """Revoke a token, for good and at once."""
        return post(ApiToken, f"/tokens/{segment(token_id)}/revoke")
