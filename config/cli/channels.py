"""`arbor contact channel`: by which ways agents' messages leave."""

from __future__ import annotations

import shlex
from typing import Any
from uuid import UUID

from rich.markup import escape

from apps.contacts.models import Channel
from apps.contacts.services.channels import (
    add_channel,
    carry_trial,
    channel_by_name,
    remove_channel,
    shown_target,
    switch_channel,
    trial_message,
)
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Audience, ChannelKind
from config.cli.kit import Output
from config.cli.output import short, table
from config.cli.tenancy import actor, choose_agent, choose_tenant, only_tenant, tenant_having, tenant_or_all

_KINDS = [each.value for each in ChannelKind if each is not ChannelKind.PEER]


def list_channels(tenant_slug: str | None) -> Output:
    """List the channels."""
    with tenant_or_all(tenant_slug, reason="list of channels") as tenant:
        rows = Channel.objects.select_related("agent", "tenant").defer("sealed_secret")
        found = list(rows if tenant else rows.order_by("tenant__slug", "name"))
    people: Any = table(
        ("name", *(() if tenant else ("tenant",)), "kind", "audience", "of", "target", "enabled"),
        (
            (
                each.name,
                *(() if tenant else (each.tenant.slug,)),
                each.kind,
                each.audience,
                each.agent.name if each.agent_id else "all agents",
                shown_target(each),
                "yes" if each.enabled else "no",
            )
            for each in found
        ),
    )
    empty = "No channels: agents write to the inbox (`arbor inbox list`). [bold]arbor contact channel add NAME --help[/bold]"
    return Output({"channels": [_line(each) for each in found]}, people=people if found else empty)


def add(
    name: str, kind: str, target: str, audience: str, agent: str | None, tenant_slug: str | None
) -> Output:
    """Add a channel. The secret that signs a webhook's requests is shown once."""
    chosen = choose_agent(agent, tenant_slug) if agent else None
    tenant_id = chosen.tenant_id if chosen else choose_tenant(tenant_slug).id
    with tenant_transaction(tenant_id):
        made = add_channel(
            name=name,
            kind=ChannelKind(kind),
            audience=Audience(audience),
            target=target,
            agent_id=chosen.id if chosen else None,
            actor=actor(),
        )
        line = _line(made.channel)
    trial = f"arbor contact channel test {shlex.quote(made.channel.name)}"
    if only_tenant() is None:
        trial += f" --tenant {line['tenant']}"
    said = f"[bold]{escape(made.channel.name)}[/bold] is added; try it: {escape(trial)}"
    if made.secret:
        said += (
            f"\nIts requests are signed with [bold]{escape(made.secret)}[/bold]: give this to the receiver."
            " It is not shown again."
        )
    return Output({**line, "secret": made.secret or None}, people=said)


def remove(name: str, tenant_slug: str | None) -> Output:
    """Remove a channel. Its pending messages fail with that reason."""
    with tenant_transaction(_tenant_of(name, tenant_slug)):
        removed = remove_channel(channel_id=channel_by_name(name).id, actor=actor())
        line = _line(removed)
    return Output({"removed": line}, people=f"[bold]{escape(removed.name)}[/bold] is removed.")


def _switch(name: str, tenant_slug: str | None, *, enabled: bool) -> Output:
    with tenant_transaction(_tenant_of(name, tenant_slug)):
        switched = switch_channel(channel_id=channel_by_name(name).id, enabled=enabled, actor=actor())
        line = _line(switched)
    word = "enabled" if enabled else "disabled"
    return Output(line, people=f"[bold]{escape(switched.name)}[/bold] is {word}.")


def enable(name: str, tenant_slug: str | None) -> Output:
    """Enable a channel again."""
    return _switch(name, tenant_slug, enabled=True)


def disable(name: str, tenant_slug: str | None) -> Output:
    """Disable a channel. Its pending messages fail with that reason."""
    return _switch(name, tenant_slug, enabled=False)


def send_test(name: str, tenant_slug: str | None) -> Output:
    """Send a test message once, and report the result."""
    with tenant_transaction(_tenant_of(name, tenant_slug)):
        found = channel_by_name(name)
        message = trial_message(found, actor=actor())
    carry_trial(ChannelKind(found.kind), message)
    return Output(
        {"channel": found.name, "sent": True, "key": message.key},
        people=f"[bold]{escape(found.name)}[/bold] works: its receiver has the message.",
    )


def _tenant_of(name: str, slug: str | None) -> UUID:
    return tenant_having(
        lambda: Channel.objects.filter(name=name.strip()), what=f"a channel {name!r}", slug=slug
    )


def _line(each: Channel) -> dict[str, Any]:
    return {
        "id": each.id,
        "short": short(each.id),
        "name": each.name,
        "kind": each.kind,
        "audience": each.audience,
        "tenant": each.tenant.slug,
        "agent": each.agent.name if each.agent_id else None,
        "target": shown_target(each),
        "enabled": each.enabled,
    }
