"""`arbor policy`: how an agent may live: its budget, hours, rhythm, models and daily limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import time
from decimal import Decimal
from typing import Any

import click
from django.conf import settings

from apps.agents.models import AgentPolicy
from apps.fleet.policy import FIELDS, policy_of, set_policy
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.heartbeat.budgets import BudgetKind, ByActions, ByTicks, budget_of
from arbor.heartbeat.energy import MAX_ENERGY, REGENERATION
from config.cli.output import json_option, show, table
from config.cli.tenancy import actor, choose_agent, tenant_option
from config.cli.values import NONE, Limit

#: The limits of a day, as they are called.
_DAILY = {"daily_beats": "heartbeats", "daily_tokens": "tokens", "daily_usd": "US dollars"}


class Hours(click.ParamType[Any]):
    """Hours of a day, `08:00-22:00`, or `none`."""

    name = "hours"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read them."""
        if str(value).lower() == NONE:
            return NONE
        start, _, end = str(value).partition("-")
        try:
            return time.fromisoformat(start.strip()), time.fromisoformat(end.strip())
        except ValueError:
            self.fail(f"{value!r} are no hours: write 08:00-22:00, or none for always", param, ctx)


@click.group()
def policy() -> None:
    """How an agent may live: budget, active hours, rhythm, models by tier, daily limits."""


@policy.command("show")
@click.argument("name")
@tenant_option
@json_option
def show_policy(name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Show an agent's policy.

    \b
    Example: arbor policy show Vega
    """
    chosen = choose_agent(name, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        _show(policy_of(chosen.id), chosen.name, as_json=as_json)


@policy.command("set")
@click.argument("name")
@click.option(
    "--budget", type=click.Choice([kind.value for kind in BudgetKind]), help="What beats are paid in."
)
@click.option("--allowance", type=Limit(int), help="Actions of a beat, or ticks of a cycle.")
@click.option(
    "--hours", type=Hours(), help="When it beats, as 08:00-22:00; 22:00-06:00 is a night; none: always."
)
@click.option("--time-zone", help="Whose clock the hours go by, as Europe/Berlin.")
@click.option("--adaptive/--steady", default=None, help="Whether it beats slower while nothing happens.")
@click.option("--daily-beats", type=Limit(int), help="Beats of a day (UTC); none: no limit.")
@click.option("--daily-tokens", type=Limit(int), help="Tokens of a day.")
@click.option("--daily-usd", type=Limit(Decimal), help="US dollars of a day.")
@click.option("--follow-ups", type=Limit(int), help="Times a beat goes on after seeing results.")
@click.option("--models", "tier_models", help='By tier, in JSON: {"tier": ["provider/model", …]}.')
@tenant_option
@json_option
def set_one(
    name: str, hours: Any, tier_models: str | None, tenant_slug: str | None, as_json: bool, **given: Any
) -> None:
    """Change an agent's policy; what is not named stays.

    \b
    Example: arbor policy set Vega --hours 08:00-22:00 --time-zone Europe/Berlin --daily-usd 0.50
    """
    changes = {field: None if value == NONE else value for field, value in given.items() if value is not None}
    if hours is not None:
        changes["active_from"], changes["active_until"] = (None, None) if hours == NONE else hours
    if tier_models is not None:
        try:
            changes["tier_models"] = json.loads(tier_models)
        except ValueError as error:
            raise click.BadParameter(f"not JSON: {error}", param_hint="--models") from error
    if not changes:
        raise click.UsageError("name what is to change; `arbor policy set --help` lists it")
    chosen = choose_agent(name, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        changed = set_policy(agent_id=chosen.id, changes=changes, actor=actor())
        _show(changed, chosen.name, as_json=as_json)


def _show(policy: AgentPolicy, name: str, *, as_json: bool) -> None:
    """Show what holds: for people with what the installation and the tenant say where the policy says nothing."""
    said = {field: getattr(policy, field) for field in FIELDS}
    show({"agent": name, **said}, as_json=as_json, people=table(("policy", name), _rows(policy)))


def _rows(policy: AgentPolicy) -> Iterator[tuple[str, str]]:
    yield "budget", _budget(policy)
    models = (f"{tier}: {', '.join(models)}" for tier, models in policy.tier_models.items())
    yield "models by tier", "; ".join(models) or "the agent's model for all, or the installation's"
    yield "beats", _hours(policy)
    yield "while nothing happens", "beats slower" if policy.adaptive else "beats as ever"
    tenant = Tenant.objects.get(id=policy.tenant_id)
    for field, what in _DAILY.items():
        yield f"{what} a day", _limit(getattr(policy, field), getattr(tenant, field))
    installed = f"{settings.ARBOR_FOLLOW_UPS}, the installation's"
    yield "further turns of a beat", installed if policy.follow_ups is None else str(policy.follow_ups)


def _budget(policy: AgentPolicy) -> str:
    match budget_of(policy.budget, policy.allowance):
        case ByActions(allowance=allowance):
            return f"{allowance} actions a beat"
        case ByTicks(allowance=allowance):
            return f"{allowance} ticks a cycle"
        case _:
            return f"energy: {REGENERATION:g} come back at each beat, {MAX_ENERGY:g} at most"


def _hours(policy: AgentPolicy) -> str:
    if policy.active_from is None or policy.active_until is None:
        return "at any hour"
    return f"{policy.active_from:%H:%M} to {policy.active_until:%H:%M} {policy.time_zone}"


def _limit(own: int | Decimal | None, tenants: int | Decimal | None) -> str:
    shown = "unlimited" if own is None else f"{own:,}"
    return shown if tenants is None else f"{shown}; its tenant's agents together {tenants:,}"
