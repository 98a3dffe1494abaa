"""Create, list, revoke and check API tokens."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.access.models import ApiToken
from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.tenants.models import Role, TenantStatus
from apps.tenants.names import insert_named_row, list_names
from apps.tenants.scope import current_tenant, tenant_transaction
from apps.tenants.statements import fetch
from arbor.access import USE_STORED_EVERY, generate_token, parse_token
from arbor.clock import Clock, SystemClock
from arbor.errors import Invalid, NotFound, PermissionDenied, TokenRefused, TransitionIllegal

#: The lifetime of a token unless another one is asked for, and the longest one.
LIFETIME = timedelta(days=90)
LONGEST_LIFETIME = timedelta(days=3650)
NAME_LENGTH = 100


@dataclass(frozen=True, kw_only=True)
class TokenAccess:
    """The rights of a request: those of its token."""

    token_id: UUID
    name: str
    tenant_id: UUID
    tenant_slug: str
    role: Role
    #: The only agent that the token reaches; None: all of the tenant.
    agent_id: UUID | None
    suspended: bool
    #: Whether the tenant has the agent that the request names; true for a request that names none.
    agent_exists: bool
    #: Whether the token gives tasks to published agents, and does nothing else.
    tasks_only: bool = False

    @property
    def actor(self) -> str:
        """The token as an actor of the audit log."""
        return f"token:{self.name}"


@dataclass(frozen=True, kw_only=True)
class NewToken:
    """A new token: its row, and the text that is shown once."""

    row: ApiToken
    text: str


def create_token(
    *,
    name: str,
    role: Role,
    actor: str,
    lifetime: timedelta | None = LIFETIME,
    agent_id: UUID | None = None,
    tasks_only: bool = False,
    clock: Clock | None = None,
) -> NewToken:
    """Create a token of the current tenant, for one of its agents or all of them; without a lifetime it does not expire.

    With `tasks_only` it gives tasks to published agents, whatever its role, and does nothing else.
    Raises Invalid for name or lifetime, AlreadyExists for a name in use, NotFound for the agent.
    """
    name = name.strip()
    if not 0 < len(name) <= NAME_LENGTH or not name.isprintable():
        raise Invalid(f"a token's name has 1 to {NAME_LENGTH} printable characters, got {name[:200]!r}")
    if lifetime is not None and not timedelta(0) < lifetime <= LONGEST_LIFETIME:
        raise Invalid(f"a token lives up to {LONGEST_LIFETIME.days} days, or without end, got {lifetime}")
    if agent_id is not None:
        agent_by_id(agent_id)
    now = (clock or SystemClock()).now()
    token = generate_token(current_tenant())
    row = ApiToken(
        tenant_id=token.tenant_id,
        name=name,
        role=role,
        agent_id=agent_id,
        tasks_only=tasks_only,
        prefix=token.prefix,
        token_hash=token.digest,
        created_by=actor,
        expires_at=now + lifetime if lifetime is not None else None,
    )
    insert_named_row(row, name, noun="token", constraint="access_apitoken_name")
    record(
        action=AuditAction.TOKEN_CREATED,
        actor=actor,
        agent_id=agent_id,
        message=f"created API token {name} {'for tasks only' if tasks_only else f'as {role}'}",
        detail={"token_id": str(row.id), "prefix": row.prefix, "expires_at": _stamp(row.expires_at)},
    )
    return NewToken(row=row, text=token.text)


def revoke_token(*, token_id: UUID, actor: str) -> ApiToken:
    """Revoke a token of the current tenant, for good. Raises NotFound, and TransitionIllegal where it is revoked."""
    row: ApiToken | None = ApiToken.objects.select_for_update(no_key=True).filter(id=token_id).first()
    if row is None:
        raise NotFound(f"there is no API token {token_id} in this tenant")
    if row.revoked_at is not None:
        raise TransitionIllegal(
            f"the API token {row.name} is revoked since {row.revoked_at:%Y-%m-%d %H:%M} UTC"
        )
    row.revoked_at = SystemClock().now()
    row.save(update_fields=["revoked_at"])
    record(
        action=AuditAction.TOKEN_REVOKED,
        actor=actor,
        agent_id=row.agent_id,
        message=f"revoked API token {row.name}",
        detail={"token_id": str(row.id), "prefix": row.prefix},
    )
    return row


def open_tokens(*, now: datetime) -> QuerySet[ApiToken]:
    """Return the current tenant's tokens that are neither revoked nor expired, the latest first."""
    rows: QuerySet[ApiToken] = ApiToken.objects.filter(revoked_at=None)
    return rows.filter(Q(expires_at=None) | Q(expires_at__gt=now))


def token_by_name(name: str) -> ApiToken:
    """Find the current tenant's token by its name or its prefix, unless it is revoked. Raises NotFound with the names."""
    rows: QuerySet[ApiToken] = ApiToken.objects.filter(revoked_at=None)
    row = rows.filter(Q(name=name) | Q(prefix=name)).first()
    if row is None:
        known = list_names(rows.values_list("name", flat=True), none="none")
        raise NotFound(f"there is no API token {name!r}; there is: {known}")
    return row


def authenticate(
    text: str, *, named: UUID | None = None, for_task: bool = False, clock: Clock | None = None
) -> TokenAccess:
    """Return the access of a token, and store its use to the minute; `named` is the agent in the address.

    The token names its tenant, so that the look-up runs under row-level security like everything else: no role that serves
    requests reads the tokens of all tenants. Raises TokenRefused, and PermissionDenied for a token for tasks unless the request
    is about a task (`for_task`).
    """
    token = parse_token(text)
    if token is None:
        raise TokenRefused
    now = (clock or SystemClock()).now()
    with tenant_transaction(token.tenant_id):
        rows = fetch(_LOOK_UP, prefix=token.prefix, agent=named)
        row = _TokenRow(*rows[0]) if rows else None
        if row is None or not token.matches(bytes(row.token_hash)):
            raise TokenRefused
        if row.revoked_at is not None:
            raise TokenRefused(f"the token {token.prefix}… is revoked")
        if row.expires_at is not None and row.expires_at <= now:
            raise TokenRefused(f"the token {token.prefix}… expired on {row.expires_at:%Y-%m-%d %H:%M} UTC")
        if row.tasks_only and not for_task:
            raise PermissionDenied(
                f"the token {row.name} gives tasks to published agents, by the protocol A2A, and does nothing else"
            )
        if row.last_used_at is None or row.last_used_at < now - USE_STORED_EVERY:
            ApiToken.objects.filter(id=row.id).update(last_used_at=now)
        return TokenAccess(
            token_id=row.id,
            name=row.name,
            tenant_id=token.tenant_id,
            tenant_slug=row.slug,
            role=Role(row.role),
            agent_id=row.agent_id,
            suspended=row.status != TenantStatus.ACTIVE,
            agent_exists=row.agent_exists,
            tasks_only=row.tasks_only,
        )


class _TokenRow(NamedTuple):
    """The columns of `_LOOK_UP`."""

    id: UUID
    name: str
    role: str
    agent_id: UUID | None
    tasks_only: bool
    token_hash: bytes
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    slug: str
    status: str
    agent_exists: bool


#: Every request of a program makes this look-up; a queryset would take longer than the rest of the authentication.
_LOOK_UP = """
SELECT token.id, token.name, token.role, token.agent_id, token.tasks_only, token.token_hash, token.expires_at,
    token.last_used_at, token.revoked_at, tenant.slug, tenant.status,
    %(agent)s::uuid IS NULL
        OR EXISTS (SELECT FROM agents_agent WHERE tenant_id = %(tenant)s AND id = %(agent)s::uuid)
FROM access_apitoken AS token JOIN tenants_tenant AS tenant ON tenant.id = token.tenant_id
WHERE token.tenant_id = %(tenant)s AND token.prefix = %(prefix)s
"""


def live_tokens(token_ids: Collection[UUID]) -> set[UUID]:
    """Return the ids of these tokens of the current tenant that are valid now; none in a suspended tenant. One statement."""
    rows = open_tokens(now=SystemClock().now())
    valid = rows.filter(id__in=token_ids, tenant__status=TenantStatus.ACTIVE)
    return set(valid.values_list("id", flat=True))


def _stamp(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None
