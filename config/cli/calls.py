"""List and retry failed maintenance calls."""

from __future__ import annotations

from typing import Any

from apps.heartbeats.services.failed_errands import FailedErrand, failed_errands, retry_failed_errands
from apps.tenants.scope import tenant_transaction
from config.cli.kit import Output
from config.cli.output import stamp, table
from config.cli.tenancy import actor, choose_agent, choose_tenant


def list_failed_calls(agent: str | None, retry: bool, tenant_slug: str | None) -> Output:
    """List and retry failed maintenance calls."""
    chosen = choose_agent(agent, tenant_slug) if agent else None
    tenant_id = chosen.tenant_id if chosen else choose_tenant(tenant_slug).id
    agent_id = chosen.id if chosen else None
    with tenant_transaction(tenant_id):
        failed = failed_errands(agent_id=agent_id)
        retried = retry_failed_errands(actor=actor(), agent_id=agent_id) if retry else 0
    people: Any = table(
        ("failed", "agent", "purpose", "about", "model", "reason"),
        (
            (f"{each.ended_at:%Y-%m-%d %H:%M}", each.agent, each.purpose, each.about, each.model, each.reason)
            for each in failed
        ),
    )
    if not failed:
        people = "No call of maintenance has failed."
    elif retry:
        people = f"{retried} failed calls are made anew within minutes."
    return Output({"failed": [_as_json(each) for each in failed], "retried": retried}, people=people)


def _as_json(errand: FailedErrand) -> dict[str, Any]:
    return {
        "id": str(errand.id),
        "agent": errand.agent,
        "purpose": errand.purpose,
        "about": errand.about,
        "model": errand.model,
        "reason": errand.reason,
        "ended_at": stamp(errand.ended_at),
    }
