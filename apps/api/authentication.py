"""Bearer tokens: authentication, the role that an operation needs, and the agents that a token reaches."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import DatabaseError
from django.http import HttpRequest
from ninja.security import HttpBearer

from apps.access.services import TokenAccess, authenticate
from apps.api.rates import count_request
from apps.api.requests import require_reach
from apps.api.threads import in_thread
from apps.tenants.models import Role
from arbor.errors import ArborError, NotFound, PermissionDenied

_READING = frozenset({"GET", "HEAD"})


class BearerToken(HttpBearer):
    """Authenticates a request by a token that has the needed role and reaches the agent of the path."""

    openapi_description = "A token of one tenant: `arbor token create NAME --role viewer`."

    def __init__(
        self, role: Role | None = None, *, tenant_wide: bool = True, reaches_others: bool = False
    ) -> None:
        """Set the rights that a token needs.

        `role` None: viewer to read, operator to change. Without `tenant_wide`, the operation itself checks the agent of the token.
        `reaches_others`: the operation reaches other agents than that of its path, so a token of one agent is refused.
        """
        super().__init__()
        self._role = role
        self._tenant_wide = tenant_wide
        self._reaches_others = reaches_others

    def role_for(self, method: str | None) -> Role:
        """Return the least role that a request of this method needs."""
        return self._role or (Role.VIEWER if method in _READING else Role.OPERATOR)

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        """Return the access of the token. Raises TokenRefused, PermissionDenied, NotFound."""
        return self._permit(request, authenticate(token, named=_agent_of_path(request)))

    def _permit(self, request: HttpRequest, access: TokenAccess) -> TokenAccess:
        if access.suspended:
            raise PermissionDenied(f"the tenant {access.tenant_slug} is suspended")
        needed = self.role_for(request.method)
        if not access.tasks_only and access.role.rank < needed.rank:
            raise PermissionDenied(f"this needs a token of the role {needed}; {access.name} is {access.role}")
        if not hasattr(request, "auth"):
            # The reading for `If-Match` is a part of the request that was authenticated and counted before.
            _count(request, access)
        named = _agent_of_path(request)
        if self._reaches_others or (named is None and self._tenant_wide):
            require_reach(access, None)
        if not access.agent_exists or (named is not None and access.agent_id not in {None, named}):
            raise NotFound(f"there is no agent {named} in this tenant")
        return access


def _agent_of_path(request: HttpRequest) -> UUID | None:
    """Return the agent that the address names."""
    match = request.resolver_match
    named = None if match is None else match.kwargs.get("agent_id")
    return None if named is None else UUID(str(named))


def _count(request: HttpRequest, access: TokenAccess) -> None:
    """Count a request against the limit of its token. Raises RateLimited."""
    rate = count_request(access)
    if rate is not None:
        request.arbor_rate = rate  # type: ignore[attr-defined]
        rate.require_allowed()


class AsyncBearerToken(BearerToken):
    """Authenticates asynchronous operations: the token is looked up in a thread."""

    async def authenticate(self, request: HttpRequest, token: str) -> Any:
        """Return the access of the token. Raises TokenRefused, PermissionDenied, NotFound."""
        return self._permit(request, await in_thread(authenticate, token, named=_agent_of_path(request)))


class TaskToken(AsyncBearerToken):
    """Authenticates operations of agents elsewhere, for which a token that only gives tasks is enough."""

    async def authenticate(self, request: HttpRequest, token: str) -> Any:
        """Return the access of the token. Raises TokenRefused, PermissionDenied, NotFound."""
        return self._permit(
            request, await in_thread(authenticate, token, named=_agent_of_path(request), for_task=True)
        )


async def may_upload_seeds(token: str) -> bool:
    """Return whether a token may send seeds. Asked before the body is read; the operation authenticates the token again."""
    return await _may_upload(token, Role.OWNER)


async def may_upload_documents(token: str) -> bool:
    """Return whether a token may send documents. Asked before the body is read, like `may_upload_seeds`."""
    return await _may_upload(token, Role.OPERATOR)


async def _may_upload(token: str, role: Role) -> bool:
    try:
        access = await in_thread(authenticate, token)
    except (ArborError, DatabaseError):
        # The operation reports the reason.
        return False
    is_refused = access.suspended or access.tasks_only or access.agent_id is not None
    return not is_refused and access.role.rank >= role.rank


#: The default of all operations: a viewer reads, an operator changes.
BY_METHOD = BearerToken()
READ = BearerToken(Role.VIEWER)
OPERATE = BearerToken(Role.OPERATOR)
ADMINISTER = BearerToken(Role.OWNER)
#: For operations about the agent of their path that also create, read or change another one.
OPERATE_AGENTS = BearerToken(Role.OPERATOR, reaches_others=True)
ADMINISTER_AGENTS = BearerToken(Role.OWNER, reaches_others=True)
#: For operations without an agent in their path that a token of one agent may call: they check `access_of(request).agent_id`.
READ_OWN = BearerToken(Role.VIEWER, tenant_wide=False)
STREAM_OWN = AsyncBearerToken(Role.VIEWER, tenant_wide=False)
#: For asynchronous conversations with an agent that the body names.
TALK_OWN = AsyncBearerToken(Role.OPERATOR, tenant_wide=False)
#: For tasks of agents elsewhere; the operation checks the tenant.
GIVE_TASKS = TaskToken(Role.OPERATOR, tenant_wide=False)
