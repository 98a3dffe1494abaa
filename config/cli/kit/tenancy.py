"""Resolve the tenant and the agent of a command, and open its transaction."""

from __future__ import annotations

import getpass
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate
from uuid import UUID

import click
from django.conf import settings
from django.db.models import QuerySet

from apps.agents.models import Agent
from apps.agents.services.lookup import agent_by_name, agents_named
from apps.audit.models import AuditAction
from apps.audit.services import LOOKUP_VERB, across_tenants, record
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.services import all_slugs, tenant_by_slug
from arbor.errors import NotFound


@dataclass(frozen=True, kw_only=True)
class ChosenAgent:
    """The agent that a command is about."""

    id: UUID
    name: str
    tenant_id: UUID
    tenant_slug: str

    @property
    def argument(self) -> str:
        """The name as an argument of a command that a person can copy: a name with blanks is quoted."""
        return shlex.quote(self.name)


def with_agent[**P, R](run: Callable[Concatenate[ChosenAgent, P], R]) -> Callable[..., R]:
    """Resolve AGENT and `--tenant` for a command that opens its own transactions.

    Such a command calls a model, an embedder or a service with transactions of its own.
    """

    @wraps(run)
    def run_resolved(*, agent: str, tenant_slug: str | None, **parameters: Any) -> R:
        return run(choose_agent(agent, tenant_slug), **parameters)  # type: ignore[call-arg]

    return run_resolved


def in_agent_transaction[**P, R](run: Callable[Concatenate[ChosenAgent, P], R]) -> Callable[..., R]:
    """Resolve AGENT and `--tenant`, and run the command in one transaction of the agent's tenant."""

    @wraps(run)
    def run_in_transaction(*, agent: str, tenant_slug: str | None, **parameters: Any) -> R:
        chosen = choose_agent(agent, tenant_slug)
        with tenant_transaction(chosen.tenant_id):
            return run(chosen, **parameters)  # type: ignore[call-arg]

    return run_in_transaction


def with_optional_agent[**P, R](run: Callable[Concatenate[ChosenAgent | None, P], R]) -> Callable[..., R]:
    """Resolve `--agent`, if it is given, and make `--tenant` the agent's; the command opens its own transactions."""

    @wraps(run)
    def run_resolved(*, agent: str | None, tenant_slug: str | None, **parameters: Any) -> R:
        chosen = choose_agent(agent, tenant_slug) if agent is not None else None
        return run(chosen, tenant_slug=chosen.tenant_slug if chosen else tenant_slug, **parameters)  # type: ignore[arg-type, call-arg]

    return run_resolved


def in_tenant_transaction[**P, R](run: Callable[Concatenate[Tenant, P], R]) -> Callable[..., R]:
    """Resolve `--tenant`, and run the command in one transaction of the tenant."""

    @wraps(run)
    def run_in_transaction(*, tenant_slug: str | None, **parameters: Any) -> R:
        tenant = choose_tenant(tenant_slug)
        with tenant_transaction(tenant.id):
            return run(tenant, **parameters)  # type: ignore[call-arg]

    return run_in_transaction


def actor() -> str:
    """Return the name of the person at the command line for the audit log."""
    return f"cli:{person()}"


def person() -> str:
    """Return the name of the person at the command line; in a container, a user may have none but its id."""
    try:
        return getpass.getuser()
    except OSError:
        return f"uid-{os.getuid()}"


def audit_act(agent: ChosenAgent, message: str, **detail: Any) -> None:
    """Audit a person's act on an agent at the command line; ids in the detail become texts."""
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor(),
        agent_id=agent.id,
        message=message,
        detail={name: str(value) if isinstance(value, UUID) else value for name, value in detail.items()},
    )


def choose_tenant(slug: str | None) -> Tenant:
    """Return the named tenant, or the default one. Raises NotFound, and UsageError where there are several."""
    tenant = named_or_default_tenant(slug)
    if tenant is not None:
        return tenant
    slugs = all_slugs()
    if not slugs:
        raise NotFound("there is no tenant yet; create one with `arbor tenant create SLUG`")
    raise click.UsageError(
        f"there are several tenants ({', '.join(slugs)}): choose one with --tenant SLUG, or ARBOR_TENANT"
    )


def named_or_default_tenant(slug: str | None) -> Tenant | None:
    """Return the named tenant; without a name, the default one or None. Raises NotFound."""
    return default_tenant() if slug is None else tenant_by_slug(slug)


def default_tenant() -> Tenant | None:
    """Return the tenant that ARBOR_TENANT names, else the installation's only one, or None. Raises NotFound."""
    if settings.ARBOR_TENANT:
        try:
            return tenant_by_slug(settings.ARBOR_TENANT)
        except NotFound as error:
            raise NotFound(f"ARBOR_TENANT must name a tenant: {error}") from error
    tenants = list(Tenant.objects.using(OPS).all()[:2])
    return tenants[0] if len(tenants) == 1 else None


@contextmanager
def tenant_or_all(slug: str | None, *, reason: str) -> Iterator[Tenant | None]:
    """Open a transaction of the named tenant, or of the default one; else read across all tenants, which is audited.

    Yields the tenant, or None. Raises NotFound.
    """
    tenant = named_or_default_tenant(slug)
    if tenant is not None:
        with tenant_transaction(tenant.id):
            yield tenant
        return
    with across_tenants(actor=actor(), reason=reason):
        yield None


def tenant_having(rows: Callable[[], QuerySet[Any]], *, what: str, slug: str | None, hint: str = "") -> UUID:
    """Return the id of the named tenant, of the default one, or of the only one with such rows; a search across tenants is audited.

    Raises NotFound, with the hint, and UsageError where several tenants have such rows.
    """
    tenant = named_or_default_tenant(slug)
    if tenant is not None:
        return tenant.id
    with across_tenants(actor=actor(), reason=f"{LOOKUP_VERB} {what}"):
        matches: dict[UUID, str] = dict(rows().order_by().values_list("tenant_id", "tenant__slug").distinct())
    if not matches:
        raise NotFound(f"no tenant has {what}" + (f": {hint}" if hint else ""))
    if len(matches) > 1:
        slugs = ", ".join(sorted(matches.values()))
        raise click.UsageError(f"{slugs} have {what}: choose one with --tenant SLUG")
    (tenant_id,) = matches
    return tenant_id


def choose_agent(name: str, slug: str | None) -> ChosenAgent:
    """Return the agent of that name: in the named tenant, in the default one, or in the only tenant with such an agent.

    Raises NotFound, and UsageError for agents of that name in several tenants. A search across tenants is audited.
    """
    tenant = named_or_default_tenant(slug)
    if tenant is not None:
        with tenant_transaction(tenant.id):
            return _chosen_agent(agent_by_name(name), tenant.slug)
    with across_tenants(actor=actor(), reason=f"{LOOKUP_VERB} the agent {name!r} by its name"):
        matches = agents_named(name)
    if not matches:
        raise NotFound(f"no tenant has an agent {name!r}; `arbor agent list` shows those there are")
    if len(matches) > 1:
        slugs = ", ".join(sorted(agent.tenant.slug for agent in matches))
        raise click.UsageError(f"agents called {name!r} live in {slugs}: choose one with --tenant SLUG")
    return _chosen_agent(matches[0], matches[0].tenant.slug)


def _chosen_agent(agent: Agent, slug: str) -> ChosenAgent:
    return ChosenAgent(id=agent.id, name=agent.name, tenant_id=agent.tenant_id, tenant_slug=slug)
