"""`arbor channel`: by which ways agents' messages leave."""

from __future__ import annotations

import shlex
from typing import Any
from uuid import UUID

import click
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
from config.cli.memory.finding import short
from config.cli.output import json_option, show, table
from config.cli.tenancy import (
    actor,
    choose_agent,
    choose_tenant,
    only_tenant,
    tenant_having,
    tenant_option,
    tenant_or_all,
)

_KINDS = [each.value for each in ChannelKind if each is not ChannelKind.PEER]


@click.group()
def channel() -> None:
    """Channels: mail, webhooks and the inbox, by which agents reach people. NAME is a channel's name.

    An agent without a channel for an audience uses its tenant's; where there is none either, it writes to the inbox.
    """


@channel.command("list")
@tenant_option
@json_option
def list_them(tenant_slug: str | None, as_json: bool) -> None:
    """List the channels.

    \b
    Example: arbor channel list
    """
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
    empty = (
        "No channels: agents write to the inbox (`arbor inbox`). [bold]arbor channel add NAME --help[/bold]"
    )
    show({"channels": [_line(each) for each in found]}, as_json=as_json, people=people if found else empty)


@channel.command("add")
@click.argument("name")
@click.option("--kind", type=click.Choice(_KINDS), required=True)
@click.option("--to", "target", default="", help="An e-mail address or a URL; none for the inbox.")
@click.option(
    "--audience",
    type=click.Choice([each.value for each in Audience]),
    default=Audience.USER.value,
    show_default=True,
    help="Which messages leave by it.",
)
@click.option("--agent", metavar="NAME", help="Of this agent only.")
@tenant_option
@json_option
def add(
    name: str,
    kind: str,
    target: str,
    audience: str,
    agent: str | None,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Add a channel. Of a webhook, the secret that signs its requests is shown, this once.

    \b
    Example: arbor channel add ops --kind webhook --to https://example.org/arbor
             arbor channel add mail --kind email --to ann@example.org --agent Vega
    """
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
    trial = f"arbor channel test {shlex.quote(made.channel.name)}"
    if only_tenant() is None:
        trial += f" --tenant {line['tenant']}"
    said = f"[bold]{escape(made.channel.name)}[/bold] is added; try it: {escape(trial)}"
    if made.secret:
        said += (
            f"\nIts requests are signed with [bold]{escape(made.secret)}[/bold]: give this to the receiver."
            " It is not shown again."
        )
    show({**line, "secret": made.secret or None}, as_json=as_json, people=said)


@channel.command("remove")
@click.argument("name")
@tenant_option
@json_option
def remove(name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Remove a channel. Messages that wait for it fail with that reason.

    \b
    Example: arbor channel remove ops
    """
    with tenant_transaction(_tenant_of(name, tenant_slug)):
        removed = remove_channel(channel_id=channel_by_name(name).id, actor=actor())
        line = _line(removed)
    show({"removed": line}, as_json=as_json, people=f"[bold]{escape(removed.name)}[/bold] is removed.")


def _switch(name: str, tenant_slug: str | None, as_json: bool, *, enabled: bool) -> None:
    with tenant_transaction(_tenant_of(name, tenant_slug)):
        switched = switch_channel(channel_id=channel_by_name(name).id, enabled=enabled, actor=actor())
        line = _line(switched)
    word = "enabled" if enabled else "disabled"
    show(line, as_json=as_json, people=f"[bold]{escape(switched.name)}[/bold] is {word}.")


@channel.command("enable")
@click.argument("name")
@tenant_option
@json_option
def enable(name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Use a channel again."""
    _switch(name, tenant_slug, as_json, enabled=True)


@channel.command("disable")
@click.argument("name")
@tenant_option
@json_option
def disable(name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Leave a channel aside. Messages that wait for it fail with that reason."""
    _switch(name, tenant_slug, as_json, enabled=False)


@channel.command("test")
@click.argument("name")
@tenant_option
@json_option
def try_out(name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Send a message that says it is a test, now and once, and say what came of it.

    \b
    Example: arbor channel test ops
    """
    with tenant_transaction(_tenant_of(name, tenant_slug)):
        found = channel_by_name(name)
        message = trial_message(found, actor=actor())
    carry_trial(ChannelKind(found.kind), message)
    show(
        {"channel": found.name, "sent": True, "key": message.key},
        as_json=as_json,
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
