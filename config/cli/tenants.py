"""Manage tenants and members."""

from __future__ import annotations

from typing import Any

from django.db.models import Count

from apps.agents.models import Agent
from apps.agents.services.energy import energy_terms
from apps.audit.services import across_tenants
from apps.fleet.administration import (
    limit_tenant,
    open_tenant,
    resume_tenant,
    set_tenant_energy,
    suspend_tenant,
)
from apps.fleet.members import dismiss_member, set_member_role
from apps.fleet.pauses import resume_all_tenants, suspend_all_tenants
from apps.tenants.models import Membership, Role, Tenant
from apps.tenants.scope import OPS
from apps.tenants.services import tenant_by_slug
from arbor.agents.energy import EnergyTerms
from config.cli.agents.policy import DAILY_LIMITS, energy_changes, format_amount
from config.cli.kit.columns import OutputColumn, listing
from config.cli.kit.declarations import Output
from config.cli.kit.tenancy import actor
from config.cli.kit.values import NONE


def list_tenants() -> Output:
    """List the tenants."""
    with across_tenants(actor=actor(), reason="list of tenants"):
        agents = dict(Agent.objects.order_by().values_list("tenant_id").annotate(Count("id")))
        members = dict(Membership.objects.order_by().values_list("tenant_id").annotate(Count("id")))
    return listing(
        "tenants",
        list(Tenant.objects.using(OPS).all()),
        (
            OutputColumn("slug", "tenant"),
            OutputColumn("name", "name"),
            OutputColumn("status", "status"),
            OutputColumn("agents", "agents", value=lambda tenant: agents.get(tenant.id, 0)),
            OutputColumn("members", "members", value=lambda tenant: members.get(tenant.id, 0)),
        ),
        empty="No tenant yet. Create one: [bold]arbor tenant create SLUG[/bold]",
    )


def create(slug: str, name: str | None) -> Output:
    """Create a tenant."""
    created = open_tenant(slug=slug, name=name or slug, actor=actor())
    return Output(
        {"id": created.id, "slug": created.slug, "name": created.name, "status": created.status},
        text=f"Created tenant [bold]{created.slug}[/bold]. Next:"
        f" [bold]arbor agent create NAME --template Scout --tenant {created.slug}[/bold]",
    )


def suspend(slug: str) -> Output:
    """Suspend a tenant: its agents stop running, its data stays."""
    changed = suspend_tenant(slug=slug, actor=actor())
    return Output({"slug": slug, "status": changed.status}, text=f"{slug} is suspended.")


def resume(slug: str) -> Output:
    """Resume a suspended tenant."""
    changed = resume_tenant(slug=slug, actor=actor())
    return Output({"slug": slug, "status": changed.status}, text=f"{slug} is active.")


def suspend_all(reason: str) -> Output:
    """Suspend all active tenants of the installation."""
    slugs = suspend_all_tenants(actor=actor(), reason=reason)
    return Output({"suspended": slugs}, text=f"Suspended: {', '.join(slugs) or 'none'}.")


def resume_all() -> Output:
    """Resume the tenants that the last suspension of all suspended."""
    slugs = resume_all_tenants(actor=actor())
    return Output({"resumed": slugs}, text=f"Resumed: {', '.join(slugs) or 'none'}.")


def limit(slug: str, **parameters: Any) -> Output:
    """Limit the daily usage of a tenant's agents together; `none` removes a limit, the others stay as they are."""
    limits = {
        name: None if value == NONE else value for name, value in parameters.items() if value is not None
    }
    changed = limit_tenant(slug=slug, limits=limits, actor=actor()) if limits else tenant_by_slug(slug)
    limits_now = {name: getattr(changed, name) for name in DAILY_LIMITS}
    words = ", ".join(
        f"{DAILY_LIMITS[name]} {'unlimited' if value is None else format_amount(value)}"
        for name, value in limits_now.items()
    )
    return Output({"slug": slug, **limits_now}, text=f"In a day, {slug} may use: {words}.")


def energy(slug: str, **parameters: Any) -> Output:
    """Show or change the energy of a tenant's agents, unless their own policies set it."""
    changes = energy_changes(parameters)
    changed = (
        set_tenant_energy(slug=slug, changes=changes, actor=actor()) if changes else tenant_by_slug(slug)
    )
    terms = energy_terms(tenant=changed.energy, agent=None) or EnergyTerms()
    return Output(
        {"slug": slug, "energy": changed.energy}, text=f"Agents of {slug}: energy: {terms.describe()}."
    )


def add_member(slug: str, username: str, role: str) -> Output:
    """Add an account to a tenant, or change its role there."""
    set_member_role(slug=slug, username=username, role=Role(role), actor=actor())
    return Output(
        {"tenant": slug, "user": username, "role": role},
        text=f"{username} is {role} of {slug}.",
    )


def remove_member(slug: str, username: str) -> Output:
    """Remove an account from a tenant."""
    dismiss_member(slug=slug, username=username, actor=actor())
    return Output(
        {"tenant": slug, "user": username, "role": None},
        text=f"{username} is no longer a member of {slug}.",
    )


def list_members(slug: str) -> Output:
    """List the members of a tenant."""
    tenant = tenant_by_slug(slug)
    members = (
        Membership.own.using(OPS)
        .filter(tenant_id=tenant.id)
        .select_related("user")
        .only("tenant", "role", "user__username")
        .order_by("user__username")
    )
    return listing(
        "members",
        list(members),
        (
            OutputColumn("user", "user", value=lambda member: member.user.username),
            OutputColumn("role", "role"),
        ),
        about={"tenant": slug},
        empty=f"No member yet. Add one: [bold]arbor tenant member add {slug} USERNAME --role ROLE[/bold]",
    )
