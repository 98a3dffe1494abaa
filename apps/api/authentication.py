"""Bearer tokens: who asks, and what for."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja.security import HttpBearer

from apps.access.services import TokenAccess, authenticate
from apps.api.rates import count_request
from apps.api.threads import in_thread
from apps.tenants.models import Role
from arbor.errors import NotFound, PermissionDenied

_READING = frozenset({"GET", "HEAD"})


class BearerToken(HttpBearer):
    """Lets a request pass whose token has a role, and reaches the agent of the path."""

    openapi_description = "A token of one tenant: `arbor token create NAME --role viewer`."

    def __init__(self, role: Role | None = None, *, tenant_wide: bool = True) -> None:
        """`role` None: viewer to read, operator to change. Without `tenant_wide` the operation limits itself to the token's agent."""
        super().__init__()
        self._role = role
        self._tenant_wide = tenant_wide

    def role_for(self, method: str | None) -> Role:
        """Return the least role that a request of this method needs."""
        return self._role or (Role.VIEWER if method in _READING else Role.OPERATOR)

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        """Return the access of the token. Raises TokenRefused, PermissionDenied, NotFound."""
        return self._permit(request, authenticate(token))

    def _permit(self, request: HttpRequest, access: TokenAccess) -> TokenAccess:
        if access.suspended:
            raise PermissionDenied(f"the tenant {access.tenant_slug} is suspended")
        needed = self.role_for(request.method)
        if access.role.rank < needed.rank:
            raise PermissionDenied(f"this needs a token of the role {needed}; {access.name} is {access.role}")
        _count(request, access)
        if access.agent_id is not None:
            self._require_agent(request, access.agent_id)
        return access

    def _require_agent(self, request: HttpRequest, agent_id: UUID) -> None:
        match = request.resolver_match
        named = None if match is None else match.kwargs.get("agent_id")
        if named is None and self._tenant_wide:
            raise PermissionDenied(f"the token reaches the agent {agent_id} only, not the whole tenant")
        if named is not None and str(named) != str(agent_id):
            raise NotFound(f"there is no agent {named} in this tenant")


def _count(request: HttpRequest, access: TokenAccess) -> None:
    """Count a request against the limit of its token. Raises RateLimited."""
    rate = count_request(access)
    if rate is not None:
        request.arbor_rate = rate  # type: ignore[attr-defined]
        rate.require_allowed()


class StreamToken(BearerToken):
    """The same for asynchronous operations: the look-up runs in a thread."""

    async def authenticate(self, request: HttpRequest, token: str) -> Any:
        """Return the access of the token. Raises TokenRefused, PermissionDenied, NotFound."""
        return self._permit(request, await in_thread(authenticate, token))


#: The default of all operations: a viewer reads, an operator changes.
BY_METHOD = BearerToken()
READ = BearerToken(Role.VIEWER)
OPERATE = BearerToken(Role.OPERATOR)
ADMINISTER = BearerToken(Role.OWNER)
#: For operations without an agent in their path that a token of one agent may call: they look at `access_of(request).agent_id`.
READ_OWN = BearerToken(Role.VIEWER, tenant_wide=False)
STREAM = StreamToken(Role.VIEWER)
STREAM_OWN = StreamToken(Role.VIEWER, tenant_wide=False)
#: For asynchronous conversations with an agent that the request names itself.
TALK_OWN = StreamToken(Role.OPERATOR, tenant_wide=False)
