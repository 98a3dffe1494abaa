"""List and retry failed maintenance calls."""

from __future__ import annotations

from dataclasses import replace

from apps.maintenance.services.failed_calls import failed_errands, retry_failed_maintenance_calls
from apps.tenants.scope import tenant_transaction
from config.cli.columns import OutputColumn, listing
from config.cli.kit import Output
from config.cli.tenancy import ChosenAgent, actor, choose_tenant, with_optional_agent

CALL = (
    OutputColumn("ended_at", "failed", cell=lambda moment: f"{moment:%Y-%m-%d %H:%M}"),
    *(OutputColumn(key, key) for key in ("agent", "purpose", "about", "model", "reason")),
    OutputColumn("id"),
)


@with_optional_agent
def list_failed_calls(agent: ChosenAgent | None, *, retry: bool, tenant_slug: str | None) -> Output:
    """List and retry failed maintenance calls."""
    agent_id = agent.id if agent else None
    with tenant_transaction(choose_tenant(tenant_slug).id):
        failed = failed_errands(agent_id=agent_id)
        retried = retry_failed_maintenance_calls(actor=actor(), agent_id=agent_id) if retry else 0
    output = listing(
        "failed", failed, CALL, about={"retried": retried}, empty="No call of maintenance has failed."
    )
    if failed and retry:
        return replace(output, people=f"{retried} failed calls are retried within minutes.")
    return output
