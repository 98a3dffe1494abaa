"""`arbor tenant` and `arbor user`: who shares this installation, and who may sign in."""

from __future__ import annotations

import secrets
import sys
from decimal import Decimal
from typing import Any

import click
from django.db.models import Count

from apps.agents.models import Agent
from apps.audit.services import across_tenants
from apps.fleet.administration import (
    admit_member,
    create_account,
    limit_tenant,
    open_tenant,
    resume_tenant,
    suspend_tenant,
)
from apps.tenants.models import Membership, Role, Tenant, User
from apps.tenants.scope import OPS
from apps.tenants.services import tenant_by_slug
from config.cli.output import json_option, show, table
from config.cli.tenancy import actor
from config.cli.values import NONE, Limit

_ROLES = click.Choice([role.value for role in Role])


@click.group()
def tenant() -> None:
    """Tenants: isolated customers of this installation."""


@tenant.command("list")
@json_option
def list_tenants(as_json: bool) -> None:
    """List the tenants.

    \b
    Example: arbor tenant list --json
    """
    with across_tenants(actor=actor(), reason="list of tenants"):
        agents = dict(Agent.objects.order_by().values_list("tenant_id").annotate(Count("id")))
        members = dict(Membership.objects.order_by().values_list("tenant_id").annotate(Count("id")))
    rows = [
        {
            "slug": each.slug,
            "name": each.name,
            "status": each.status,
            "agents": agents.get(each.id, 0),
            "members": members.get(each.id, 0),
        }
        for each in Tenant.objects.using(OPS).all()
    ]
    people: Any = table(("tenant", "name", "status", "agents", "members"), (row.values() for row in rows))
    show(
        {"tenants": rows},
        as_json=as_json,
        people=people if rows else "No tenant yet. Create one: [bold]arbor tenant create SLUG[/bold]",
    )


@tenant.command("create")
@click.argument("slug")
@click.option("--name", help="Its name for people.  [default: the slug]")
@json_option
def create(slug: str, name: str | None, as_json: bool) -> None:
    """Create a tenant.

    \b
    Example: arbor tenant create acme --name "Acme Ltd."
    """
    made = open_tenant(slug=slug, name=name or slug, actor=actor())
    show(
        {"id": made.id, "slug": made.slug, "name": made.name, "status": made.status},
        as_json=as_json,
        people=f"Created tenant [bold]{made.slug}[/bold]. Next:"
        f" [bold]arbor agent create NAME --template Scout --tenant {made.slug}[/bold]",
    )


@tenant.command("suspend")
@click.argument("slug")
@json_option
def suspend(slug: str, as_json: bool) -> None:
    """Let nothing of a tenant run; its data stays.

    \b
    Example: arbor tenant suspend acme
    """
    changed = suspend_tenant(slug=slug, actor=actor())
    show({"slug": slug, "status": changed.status}, as_json=as_json, people=f"{slug} is suspended.")


@tenant.command("resume")
@click.argument("slug")
@json_option
def resume(slug: str, as_json: bool) -> None:
    """Let a suspended tenant run again.

    \b
    Example: arbor tenant resume acme
    """
    changed = resume_tenant(slug=slug, actor=actor())
    show({"slug": slug, "status": changed.status}, as_json=as_json, people=f"{slug} is active.")


@tenant.command("limit")
@click.argument("slug")
@click.option("--beats", "daily_beats", type=Limit(int), help="Heartbeats of all its agents in a day (UTC).")
@click.option("--tokens", "daily_tokens", type=Limit(int), help="Tokens of all its model calls in a day.")
@click.option("--usd", "daily_usd", type=Limit(Decimal), help="What they may cost in a day, in US dollars.")
@json_option
def limit(slug: str, as_json: bool, **given: Any) -> None:
    """Limit what a tenant's agents may use in a day, together; `none` takes a limit away, what is not named stays.

    \b
    Example: arbor tenant limit acme --beats 10000 --usd 25
    """
    limits = {name: None if value == NONE else value for name, value in given.items() if value is not None}
    changed = limit_tenant(slug=slug, limits=limits, actor=actor()) if limits else tenant_by_slug(slug)
    said = {name: getattr(changed, name) for name in ("daily_beats", "daily_tokens", "daily_usd")}
    words = ", ".join(
        f"{name.removeprefix('daily_')} {'unlimited' if value is None else value}"
        for name, value in said.items()
    )
    show({"slug": slug, **said}, as_json=as_json, people=f"In a day, {slug} may use: {words}.")


@tenant.group()
def member() -> None:
    """Members: accounts that may work in a tenant."""


@member.command("add")
@click.argument("slug")
@click.argument("username")
@click.option("--role", type=_ROLES, default=Role.OPERATOR.value, show_default=True, help="What they may do.")
@json_option
def add(slug: str, username: str, role: str, as_json: bool) -> None:
    """Give an account a role in a tenant, or another than it has.

    \b
    Example: arbor tenant member add acme maria --role viewer
    """
    admit_member(slug=slug, username=username, role=Role(role), actor=actor())
    show(
        {"tenant": slug, "user": username, "role": role},
        as_json=as_json,
        people=f"{username} is {role} of {slug}.",
    )


@member.command("list")
@click.argument("slug")
@json_option
def list_members(slug: str, as_json: bool) -> None:
    """List the members of a tenant.

    \b
    Example: arbor tenant member list acme
    """
    found = tenant_by_slug(slug)
    members = (
        Membership.own.using(OPS).filter(tenant_id=found.id).select_related("user").order_by("user__username")
    )
    rows = [{"user": each.user.username, "role": each.role} for each in members]
    empty = f"No member yet. Add one: [bold]arbor tenant member add {slug} USERNAME[/bold]"
    show(
        {"tenant": slug, "members": rows},
        as_json=as_json,
        people=table(("user", "role"), (row.values() for row in rows)) if rows else empty,
    )


@click.group()
def user() -> None:
    """Accounts: people who may sign in to the console."""


@user.command("create")
@click.argument("username")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option("--generate", is_flag=True, help="Make a password and show it once.")
@click.option("--superuser", is_flag=True, help="May run the installation as a whole, not only tenants.")
@click.option("--tenant", "tenant_slug", metavar="SLUG", help="Make them a member of this tenant.")
@click.option("--role", type=_ROLES, default=Role.OPERATOR.value, show_default=True, help="Their role there.")
@json_option
def create_user(
    username: str,
    password_stdin: bool,
    generate: bool,
    superuser: bool,
    tenant_slug: str | None,
    role: str,
    as_json: bool,
) -> None:
    """Create an account. Without an option the password is asked for, and never shown.

    \b
    Examples:
      arbor user create maria --generate --tenant acme --role viewer
      pass show arbor/maria | arbor user create maria --password-stdin
    """
    if password_stdin and generate:
        raise click.UsageError("--password-stdin and --generate exclude each other")
    if tenant_slug:
        tenant_by_slug(tenant_slug)  # before anything is made
    password = _password(password_stdin=password_stdin, generate=generate)
    made: User = create_account(username=username, password=password, superuser=superuser, actor=actor())
    if tenant_slug:
        admit_member(slug=tenant_slug, username=username, role=Role(role), actor=actor())
    shown = {"password": password} if generate else {}
    where = f", {role} of {tenant_slug}" if tenant_slug else ""
    once = f" Password (shown only now): [bold green]{password}[/bold green]" if generate else ""
    hint = "" if where or superuser else f" Next: [bold]arbor tenant member add SLUG {username}[/bold]"
    show(
        {"user": made.username, "superuser": superuser, "tenant": tenant_slug, **shown},
        as_json=as_json,
        people=f"Created account [bold]{username}[/bold]{where}.{once}{hint}",
    )


def _password(*, password_stdin: bool, generate: bool) -> str:
    if generate:
        return secrets.token_urlsafe(15)
    if password_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise click.UsageError(
            "there is no terminal to ask for a password: use --password-stdin or --generate"
        )
    password: str = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    return password
