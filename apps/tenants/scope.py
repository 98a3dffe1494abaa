"""The current tenant of the running code.

The scope is a context variable. The ORM's managers read it and raise without it (`models.TenantManager`), and the database backend
copies it for row-level security into each transaction as it begins (`postgresql.base`), so pooled connections carry nothing over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connections, transaction

from arbor.errors import TenantMismatch, TenantRequired

#: The transaction-local settings that the policies compare with.
TENANT_SETTING = "arbor.tenant_id"
USER_SETTING = "arbor.user_id"
#: Aliases of the connections, by role: one tenant's rows, operations over all tenants, accounts and their sessions.
APP = "default"
OPS = "ops"
ACCOUNTS = "accounts"
SERVING = (APP, OPS, ACCOUNTS)
#: The owner of the tables, which no serving process signs in as.
OWNER = "owner"


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The rows that the running code may see: of one tenant, one user's own memberships, or, audited, of all tenants."""

    tenant_id: UUID | None = None
    user_id: int | None = None
    across: bool = False
    #: Use generic plans, for transactions whose fixed statements look up rows by their keys.
    generic_plans: bool = False
    #: The limit of each statement; None: the role's own.
    statement_timeout: timedelta | None = None


_scope: ContextVar[Scope | None] = ContextVar("arbor_scope", default=None)


def current_scope() -> Scope | None:
    """Return the open scope, or none."""
    return _scope.get()


def current_tenant() -> UUID:
    """Return the tenant the running code works for.

    Raises TenantRequired outside `tenant_transaction`.
    """
    scope = _scope.get()
    if scope is None or scope.tenant_id is None:
        raise TenantRequired
    return scope.tenant_id


def scope_settings(scope: Scope | None) -> dict[str, str]:
    """Return the transaction-local settings of a scope; empty strings match no row."""
    settings = {
        TENANT_SETTING: str(scope.tenant_id) if scope and scope.tenant_id else "",
        USER_SETTING: str(scope.user_id) if scope and scope.user_id else "",
    }
    if scope is not None and scope.generic_plans:
        # A plan made while a table is small would read the whole table when it is large, too.
        settings |= {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off"}
    if scope is not None and scope.statement_timeout is not None:
        settings["statement_timeout"] = f"{scope.statement_timeout // timedelta(milliseconds=1)}ms"
    return settings


@contextmanager
def tenant_transaction(
    tenant_id: UUID, *, generic_plans: bool = False, statement_timeout: timedelta | None = None
) -> Iterator[None]:
    """Open a transaction in which exactly this tenant's rows exist.

    Inside an open transaction it joins that one, whose options stay. With `generic_plans`, PostgreSQL uses generic plans:
    planning the statements of a batch of heartbeats for their values would take longer than executing them. The server stops a
    statement that takes longer than `statement_timeout`.
    Raises TenantMismatch when another tenant's transaction, or a cross-tenant view, is open.
    """
    outer = _scope.get()
    if outer is not None and (outer.across or outer.tenant_id not in (None, tenant_id)):
        open_for = "all tenants" if outer.across else f"tenant {outer.tenant_id}"
        raise TenantMismatch(
            f"a transaction of tenant {tenant_id} cannot be opened inside one of {open_for}; end that one first"
        )
    if outer is not None and outer.tenant_id == tenant_id and connections[APP].in_atomic_block:
        with transaction.atomic(using=APP, savepoint=False):
            yield
        return
    begins = not connections[APP].in_atomic_block
    scope = Scope(
        tenant_id=tenant_id,
        user_id=outer.user_id if outer else None,
        generic_plans=generic_plans and begins,
        statement_timeout=statement_timeout if begins else None,
    )
    with _scoped(scope):
        yield


def release_connection() -> None:
    """Return this thread's connection to the pool, if there is a pool: hundreds of waiting threads share a few connections."""
    if settings.ARBOR_DB_POOL_SIZE:
        connections[APP].close()


@contextmanager
def user_transaction(user_id: int) -> Iterator[None]:
    """Open a transaction in which a user's own memberships, and the names of their tenants, can be read."""
    with _scoped(Scope(user_id=user_id)):
        yield


@contextmanager
def _scoped(scope: Scope) -> Iterator[None]:
    connection = connections[APP]
    token = _scope.set(scope)
    nested = connection.in_atomic_block
    try:
        with transaction.atomic(using=APP):
            if nested:
                # The transaction began under another scope: change its settings, and change them back below.
                _apply(scope)
            yield
    finally:
        _scope.reset(token)
        if nested and not connection.needs_rollback:
            _apply(_scope.get())


def _apply(scope: Scope | None) -> None:
    with connections[APP].cursor() as cursor:
        for name, value in scope_settings(scope).items():
            cursor.execute("SELECT set_config(%s, %s, true)", [name, value])


@contextmanager
def ops_scope() -> Iterator[None]:
    """Read all tenants' rows through the operations role. Use `apps.audit.services.across_tenants`, which audits the view.

    Raises TenantMismatch inside a tenant's transaction.
    """
    outer = _scope.get()
    if outer is not None and outer.tenant_id is not None:
        raise TenantMismatch(
            f"a view of all tenants cannot be opened inside a transaction of tenant {outer.tenant_id}"
        )
    token = _scope.set(Scope(across=True))
    try:
        with transaction.atomic(using=OPS):
            yield
    finally:
        _scope.reset(token)
