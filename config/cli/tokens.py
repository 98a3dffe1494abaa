"""Create, list and revoke API tokens."""

from __future__ import annotations

from datetime import timedelta

from apps.access.models import ApiToken
from apps.access.services import create_token, open_tokens, revoke_token, token_by_name
from apps.agents.services.profile import agent_by_name
from apps.tenants.models import Role, Tenant
from arbor.clock import SystemClock
from config.cli.columns import OutputColumn, facts, listing
from config.cli.kit import Output
from config.cli.output import ago
from config.cli.tenancy import actor, in_tenant_transaction

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
    OutputColumn("created_by", "created by"),
    OutputColumn("expires_at", "expires", cell=lambda at: ago(at) if at else "never"),
    OutputColumn("last_used_at", "last used", cell=ago),
    OutputColumn("revoked_at", "revoked", cell=lambda at: ago(at) if at else "-"),
)


@in_tenant_transaction
def create(tenant: Tenant, *, name: str, role: str, agent: str | None, lifetime: timedelta | str) -> Output:
    """Create a token and show it once: only its hash is stored."""
    new = create_token(
        name=name,
        role=Role(role),
        actor=actor(),
        lifetime=None if isinstance(lifetime, str) else lifetime,
        agent_id=agent_by_name(agent).id if agent else None,
    )
    return Output(
        {**facts(new.row, _COLUMNS), "tenant": tenant.slug, "token": new.text},
        people=f"Created token [bold]{new.row.name}[/bold] of {tenant.slug}, {role}."
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
        empty=f"No token yet. Create one: [bold]arbor token create NAME --tenant {tenant.slug}[/bold]",
    )


@in_tenant_transaction
def revoke(tenant: Tenant, *, token: str) -> Output:
    """Revoke a token for good, by its name or its beginning."""
    revoked = revoke_token(token_id=token_by_name(token).id, actor=actor())
    return Output(
        {**facts(revoked, _COLUMNS), "tenant": tenant.slug},
        people=f"The token {revoked.name} of {tenant.slug} is revoked.",
    )
