"""`arbor errands`: what maintenance asked models and did not get, and letting it ask anew."""

from __future__ import annotations

from typing import Any

import click

from apps.heartbeats.services.failed_errands import FailedErrand, failed_errands, retry_failed_errands
from apps.tenants.scope import tenant_transaction
from config.cli.output import json_option, show, stamp, table
from config.cli.tenancy import actor, choose_agent, choose_tenant, tenant_option


@click.command()
@click.option("--agent", metavar="NAME", help="Of this agent only.")
@click.option("--retry", is_flag=True, help="Let what they were about be asked about anew.")
@tenant_option
@json_option
def errands(agent: str | None, retry: bool, tenant_slug: str | None, as_json: bool) -> None:
    """Show the calls of maintenance that failed for good: summaries, concepts and weights that nobody made.

    With --retry the next round asks again, with the model that is set then; the failed calls stay on record.

    \b
    Example: arbor errands --retry
    """
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
    show({"failed": [_as_json(each) for each in failed], "retried": retried}, people=people, as_json=as_json)


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
