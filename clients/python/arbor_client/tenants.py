"""The tenant of the token, and the token itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import Call, get
from arbor_client.groups import Group, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """A tenant."""

    id: UUID
    slug: str
    name: str
    status: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Token:
    """The token of the client."""

    token: str
    tenant: str
    #: viewer, operator or owner.
    role: str
    #: The only agent that the token reaches; None: all of the tenant.
    agent_id: UUID | None


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
