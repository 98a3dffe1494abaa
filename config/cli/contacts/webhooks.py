"""Manage the webhooks that get signals."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape

from apps.contacts.models import SignalWebhook
from apps.contacts.services.signal_webhooks import (
    create_webhook,
    delete_webhook,
    rotate_webhook_secret,
    switch_webhook,
    webhook_by_name,
)
from apps.tenants.scope import tenant_transaction
from arbor.adapters.webhook import redact_url
from config.cli.kit.columns import OutputColumn, columns_for, listing, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import tenant_of_name
from config.cli.kit.output import short
from config.cli.kit.tenancy import (
    ChosenAgent,
    actor,
    choose_tenant,
    tenant_or_all,
    with_optional_agent,
)

WEBHOOK_COLUMNS = (
    OutputColumn("name", "name"),
    OutputColumn("tenant", "tenant", value=lambda webhook: webhook.tenant.slug),
    OutputColumn("url", "url", value=lambda webhook: redact_url(webhook.url)),
    OutputColumn("signals", "signals", cell=lambda names: ", ".join(names) or "all"),
    OutputColumn(
        "agent",
        "of",
        value=lambda webhook: webhook.agent.name if webhook.agent_id else None,
        cell=lambda name: name or "all agents",
    ),
    OutputColumn("active", "active", cell=lambda active: "yes" if active else "paused"),
    OutputColumn("failures", "failures"),
    OutputColumn("last_error", "last error"),
    OutputColumn(
        "delivered_at",
        value=lambda webhook: webhook.delivered_at.isoformat() if webhook.delivered_at else None,
    ),
    OutputColumn("id"),
    OutputColumn("short", value=lambda webhook: short(webhook.id)),
)


def list_webhooks(tenant_slug: str | None) -> Output:
    """List the webhooks."""
    with tenant_or_all(tenant_slug, reason="list of webhooks") as tenant:
        webhooks = SignalWebhook.objects.select_related("agent", "tenant").defer("sealed_secret")
        shown = list(webhooks if tenant else webhooks.order_by("tenant__slug", "name"))
    return listing(
        "webhooks",
        shown,
        columns_for(WEBHOOK_COLUMNS, one_tenant=tenant is not None),
        empty="No webhooks. [bold]arbor contact webhook create NAME --help[/bold]",
    )


@with_optional_agent
def create(
    agent: ChosenAgent | None, *, name: str, url: str, signals: Sequence[str], tenant_slug: str | None
) -> Output:
    """Create a webhook for signals from now on. The secret that signs its requests is shown once."""
    with tenant_transaction(choose_tenant(tenant_slug).id):
        made = create_webhook(
            name=name, url=url, signals=signals, agent_id=agent.id if agent else None, actor=actor()
        )
        line = row_to_dict(made.webhook, WEBHOOK_COLUMNS)
    text = (
        f"[bold]{escape(made.webhook.name)}[/bold] gets the signals from now on."
        f"\nIts requests are signed with [bold]{escape(made.secret)}[/bold]: give this to the receiver."
        " It is not shown again."
    )
    return Output({**line, "secret": made.secret}, text=text)


def _switch(name: str, tenant_slug: str | None, *, active: bool) -> Output:
    with tenant_transaction(tenant_of_name(SignalWebhook, name, tenant_slug)):
        switched = switch_webhook(webhook_id=webhook_by_name(name).id, active=active, actor=actor())
        line = row_to_dict(switched, WEBHOOK_COLUMNS)
    word = "resumed: it continues after the last confirmed signal" if active else "paused"
    return Output(line, text=f"[bold]{escape(switched.name)}[/bold] is {word}.")


def pause(name: str, tenant_slug: str | None) -> Output:
    """Pause a webhook. Its signals wait."""
    return _switch(name, tenant_slug, active=False)


def resume(name: str, tenant_slug: str | None) -> Output:
    """Resume a webhook after the last confirmed signal."""
    return _switch(name, tenant_slug, active=True)


def rotate(name: str, tenant_slug: str | None) -> Output:
    """Give a webhook a new secret, which is shown once."""
    with tenant_transaction(tenant_of_name(SignalWebhook, name, tenant_slug)):
        new = rotate_webhook_secret(webhook_id=webhook_by_name(name).id, actor=actor())
        line = row_to_dict(new.webhook, WEBHOOK_COLUMNS)
    overlap = " For a day, requests are signed by the one before too." if new.webhook.previous_until else ""
    text = (
        f"[bold]{escape(new.webhook.name)}[/bold] has the new secret [bold]{escape(new.secret)}[/bold]: give this to the"
        f" receiver. It is not shown again.{overlap}"
    )
    return Output({**line, "secret": new.secret}, text=text)


def delete(name: str, tenant_slug: str | None) -> Output:
    """Delete a webhook."""
    with tenant_transaction(tenant_of_name(SignalWebhook, name, tenant_slug)):
        deleted = delete_webhook(webhook_id=webhook_by_name(name).id, actor=actor())
        line = row_to_dict(deleted, WEBHOOK_COLUMNS)
    return Output({"deleted": line}, text=f"[bold]{escape(deleted.name)}[/bold] is deleted.")
