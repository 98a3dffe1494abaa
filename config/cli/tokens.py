"""Create, list and revoke API tokens."""

from __future__ import annotations

from datetime import timedelta

import click
from rich.markup import escape

from apps.access.models import ApiToken
from apps.access.services import create_token, open_tokens, revoke_token, token_by_name
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from arbor.clock import SystemClock
from config.cli.kit.columns import OutputColumn, listing, row_to_dict
from config.cli.kit.declarations import Output, is_given
from config.cli.kit.output import format_relative_time
from config.cli.kit.tenancy import (
    ChosenAgent,
    actor,
    choose_tenant,
    in_tenant_transaction,
    with_optional_agent,
)

_COLUMNS = (
    OutputColumn("id"),
    OutputColumn("name", "name"),
    OutputColumn("prefix", "begins with"),
    OutputColumn("role", "role"),
    OutputColumn(
        "agent",
        "agent",
        value=lambda token: token.agent.name if token.agent else None,
        cell=lambda name: name or "all",
    ),
    OutputColumn("tasks_only", "tasks only", cell=lambda only: "yes" if only else "-"),
    OutputColumn("created_by", "created by"),
    OutputColumn("expires_at", "expires", cell=lambda at: format_relative_time(at) if at else "never"),
    OutputColumn("last_used_at", "last used", cell=format_relative_time),
    OutputColumn("revoked_at", "revoked", cell=lambda at: format_relative_time(at) if at else "-"),
)


@with_optional_agent
def create(
    agent: ChosenAgent | None,
    *,
    name: str,
    role: str,
    tasks_only: bool,
    lifetime: timedelta | str,
    tenant_slug: str | None,
) -> Output:
    """Create a token and show it once: only its hash is stored."""
    if tasks_only and is_given("role"):
        raise click.UsageError("--tasks-only gives no other right, whatever the role: leave out --role")
    tenant = choose_tenant(tenant_slug)
    with tenant_transaction(tenant.id):
        new = create_token(
            name=name,
            role=Role(role),
            actor=actor(),
            lifetime=None if isinstance(lifetime, str) else lifetime,
            agent_id=agent.id if agent else None,
            tasks_only=tasks_only,
        )
        value = row_to_dict(new.row, _COLUMNS)
    return Output(
        {**value, "tenant": tenant.slug, "token": new.text},
        text=f"Created token [bold]{escape(new.row.name)}[/bold] of {tenant.slug}, {'for tasks only' if tasks_only else role}."
        f" It is shown only now:\n  [bold green]{new.text}[/bold green]",
    )


@in_tenant_transaction
def list_tokens(tenant: Tenant, *, with_revoked: bool) -> Output:
    """List the tokens of a tenant with role, expiry and last use."""
    rows = ApiToken.objects.all() if with_revoked else open_tokens(now=SystemClock().now())
    return listing(
        "tokens",
        list(rows.select_related("agent")),
        _COLUMNS,
        about={"tenant": tenant.slug},
        empty=f"No token. Create one: [bold]arbor token create NAME --tenant {tenant.slug}[/bold]",
    )


@in_tenant_transaction
def revoke(tenant: Tenant, *, token: str) -> Output:
    """Revoke a token for good, by its name or its beginning."""
    revoked = revoke_token(token_id=token_by_name(token).id, actor=actor())
    return Output(
        {**row_to_dict(revoked, _COLUMNS), "tenant": tenant.slug},
        text=f"The token {escape(revoked.name)} of {tenant.slug} is revoked.",
    )
