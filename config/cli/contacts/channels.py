"""Manage delivery channels."""

from __future__ import annotations

import shlex

from rich.markup import escape

from apps.contacts.models import Channel
from apps.contacts.services.channels import (
    add_channel,
    channel_by_name,
    create_test_message,
    deliver_test_message,
    redact_target,
    remove_channel,
    switch_channel,
)
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Audience, ChannelKind
from config.cli.kit.columns import OutputColumn, columns_for, listing, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import tenant_of_name
from config.cli.kit.output import short
from config.cli.kit.tenancy import (
    ChosenAgent,
    actor,
    choose_tenant,
    default_tenant,
    tenant_or_all,
    with_optional_agent,
)

CHANNEL_COLUMNS = (
    OutputColumn("name", "name"),
    OutputColumn("tenant", "tenant", value=lambda channel: channel.tenant.slug),
    OutputColumn("kind", "kind"),
    OutputColumn("audience", "audience"),
    OutputColumn(
        "agent",
        "of",
        value=lambda channel: channel.agent.name if channel.agent_id else None,
        cell=lambda name: name or "all agents",
    ),
    OutputColumn("target", "target", value=redact_target),
    OutputColumn("enabled", "enabled", cell=lambda enabled: "yes" if enabled else "no"),
    OutputColumn("id"),
    OutputColumn("short", value=lambda channel: short(channel.id)),
)


def list_channels(tenant_slug: str | None) -> Output:
    """List the channels."""
    with tenant_or_all(tenant_slug, reason="list of channels") as tenant:
        channels = Channel.objects.select_related("agent", "tenant").defer("sealed_secret")
        shown = list(channels if tenant else channels.order_by("tenant__slug", "name"))
    return listing(
        "channels",
        shown,
        columns_for(CHANNEL_COLUMNS, one_tenant=tenant is not None),
        empty="No channels: agents write to the inbox (`arbor inbox list`)."
        " [bold]arbor contact channel add NAME --help[/bold]",
    )


@with_optional_agent
def add(
    agent: ChosenAgent | None,
    *,
    name: str,
    kind: str,
    target: str,
    audience: str,
    tenant_slug: str | None,
) -> Output:
    """Add a channel. The secret that signs a webhook's requests is shown once."""
    with tenant_transaction(choose_tenant(tenant_slug).id):
        added = add_channel(
            name=name,
            kind=ChannelKind(kind),
            audience=Audience(audience),
            target=target,
            agent_id=agent.id if agent else None,
            actor=actor(),
        )
        line = row_to_dict(added.channel, CHANNEL_COLUMNS)
    trial = f"arbor contact channel test {shlex.quote(added.channel.name)}"
    default = default_tenant()
    if default is None or default.slug != line["tenant"]:
        trial += f" --tenant {line['tenant']}"
    text = f"[bold]{escape(added.channel.name)}[/bold] is added; try it: {escape(trial)}"
    if added.secret:
        text += (
            f"\nIts requests are signed with [bold]{escape(added.secret)}[/bold]: give this to the receiver."
            " It is not shown again."
        )
    return Output({**line, "secret": added.secret or None}, text=text)


def remove(name: str, tenant_slug: str | None) -> Output:
    """Remove a channel. Its pending messages fail."""
    with tenant_transaction(tenant_of_name(Channel, name, tenant_slug)):
        removed = remove_channel(channel_id=channel_by_name(name).id, actor=actor())
        line = row_to_dict(removed, CHANNEL_COLUMNS)
    return Output({"removed": line}, text=f"[bold]{escape(removed.name)}[/bold] is removed.")


def _switch(name: str, tenant_slug: str | None, *, enabled: bool) -> Output:
    with tenant_transaction(tenant_of_name(Channel, name, tenant_slug)):
        switched = switch_channel(channel_id=channel_by_name(name).id, enabled=enabled, actor=actor())
        line = row_to_dict(switched, CHANNEL_COLUMNS)
    word = "enabled" if enabled else "disabled"
    return Output(line, text=f"[bold]{escape(switched.name)}[/bold] is {word}.")


def enable(name: str, tenant_slug: str | None) -> Output:
    """Enable a channel again."""
    return _switch(name, tenant_slug, enabled=True)


def disable(name: str, tenant_slug: str | None) -> Output:
    """Disable a channel. Its pending messages fail."""
    return _switch(name, tenant_slug, enabled=False)


def send_test(name: str, tenant_slug: str | None) -> Output:
    """Send a test message once, and report the result."""
    with tenant_transaction(tenant_of_name(Channel, name, tenant_slug)):
        channel = channel_by_name(name)
        message = create_test_message(channel, actor=actor())
    deliver_test_message(kind=ChannelKind(channel.kind), message=message)
    return Output(
        {"channel": channel.name, "sent": True, "key": message.key},
        text=f"[bold]{escape(channel.name)}[/bold] works: its receiver has the message.",
    )
