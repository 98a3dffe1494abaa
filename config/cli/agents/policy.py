"""Show and change the policies of agents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import click
from django.conf import settings

from apps.agents.models import AgentPolicy
from apps.agents.services.energy import energy_terms_of
from apps.fleet.policy import FIELDS, policy_of, set_policy
from apps.tenants.models import Tenant
from arbor.heartbeat.budgets import ActionCountBudget, TickBudget, budget_of
from arbor.quotations import counted
from config.cli.kit.declarations import Output
from config.cli.kit.output import table
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction
from config.cli.kit.values import NONE, index_by_name

#: The daily limits with their names for people.
DAILY_LIMITS = {"daily_heartbeats": "heartbeats", "daily_tokens": "tokens", "daily_usd": "US dollars"}


def energy_changes(given: dict[str, Any]) -> dict[str, Any]:
    """Pop the energy options from `given`, and return them as changes of an `EnergyPolicy`."""
    changes = {
        field: None if value == NONE else value
        for field, option in (("regeneration", "regeneration"), ("maximum", "max_energy"))
        if (value := given.pop(option, None)) is not None
    }
    costs = index_by_name(given.pop("costs", ()), option="--cost")
    return changes | ({"costs": costs} if costs else {})


@in_agent_transaction
def show_policy(agent: ChosenAgent) -> Output:
    """Show an agent's policy."""
    return _policy_output(policy_of(agent.id), agent.name)


@in_agent_transaction
def set_fields(agent: ChosenAgent, /, *, hours: Any, tier_models: str | None, **given: Any) -> Output:
    """Change the named fields of an agent's policy."""
    energy = energy_changes(given)
    changes = {field: None if value == NONE else value for field, value in given.items() if value is not None}
    if energy:
        changes["energy"] = energy
    if hours is not None:
        changes["active_from"], changes["active_until"] = (None, None) if hours == NONE else hours
    if tier_models is not None:
        try:
            changes["tier_models"] = {} if tier_models == NONE else json.loads(tier_models)
        except (ValueError, RecursionError) as error:
            raise click.BadParameter(f"not JSON: {error}", param_hint="--models") from error
    if not changes:
        raise click.UsageError("name a field to change; `arbor agent policy set --help` lists them")
    changed = set_policy(agent_id=agent.id, changes=changes, actor=actor())
    return _policy_output(changed, agent.name)


def _policy_output(policy: AgentPolicy, name: str) -> Output:
    """Return the policy; for people, with the values of the installation and the tenant where the policy has none."""
    values = {field: getattr(policy, field) for field in FIELDS}
    return Output({"agent": name, **values}, text=table(("policy", name), _rows(policy)))


def _rows(policy: AgentPolicy) -> Iterator[tuple[str, str]]:
    yield "budget", _budget(policy)
    models = (f"{tier}: {', '.join(models)}" for tier, models in policy.tier_models.items())
    yield "models by tier", "; ".join(models) or "the agent's model for all, or the installation's"
    yield "active", _hours(policy)
    yield "while nothing happens", "heartbeats get rarer" if policy.adaptive else "heartbeats come as ever"
    tenant = Tenant.objects.get(id=policy.tenant_id)
    for field, what in DAILY_LIMITS.items():
        yield f"{what} a day", _limit(getattr(policy, field), getattr(tenant, field))
    default = f"{settings.ARBOR_FOLLOW_UPS}, the installation's"
    yield (
        "further round trips of a heartbeat",
        default if policy.follow_ups is None else str(policy.follow_ups),
    )
    yield "voices before a hard decision", str(policy.voices or "none")


def _budget(policy: AgentPolicy) -> str:
    match budget_of(policy.budget, policy.allowance):
        case ActionCountBudget(allowance=allowance):
            return f"{counted(allowance, 'action')} a heartbeat"
        case TickBudget(allowance=allowance):
            return f"{counted(allowance, 'tick')} a cycle"
        case _:
            return f"energy: {energy_terms_of(policy.agent).describe()}"


def _hours(policy: AgentPolicy) -> str:
    if policy.active_from is None or policy.active_until is None:
        return "at any hour"
    return f"{policy.active_from:%H:%M} to {policy.active_until:%H:%M} {policy.time_zone}"


def _limit(own: int | Decimal | None, tenants: int | Decimal | None) -> str:
    shown = "unlimited" if own is None else format_amount(own)
    return shown if tenants is None else f"{shown}; its tenant's agents together {format_amount(tenants)}"


def format_amount(number: int | Decimal) -> str:
    """Return a number without the zeros that the database adds to money."""
    return f"{number.normalize():,f}" if isinstance(number, Decimal) else f"{number:,}"
