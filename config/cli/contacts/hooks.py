"""Manage hooks, and list the deliveries at hooks and of webhooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TextIO

import click
from rich.markup import escape

from apps.contacts.models import Hook, HookDelivery, SignalWebhook
from apps.contacts.services.hooks import (
    HookWithSecret,
    NewHook,
    change_hook,
    create_hook,
    delete_hook,
    hook_by_name,
    lock_hook,
    rotate_hook_secret,
    switch_hook,
    try_mapping,
)
from apps.contacts.services.webhook_deliveries import resend_delivery
from apps.tenants.scope import tenant_transaction
from arbor.contacts.hooks import HOOKS_PATH, HookKind
from arbor.errors import NotFound
from config.cli.kit.columns import OutputColumn, columns_for, listing, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_in_tenant, tenant_of_name, tenant_of_row
from config.cli.kit.output import cut, format_relative_time, short
from config.cli.kit.tenancy import (
    ChosenAgent,
    actor,
    tenant_or_all,
    with_agent,
)
from config.cli.kit.text_files import read_secret_text, read_text
from config.cli.kit.values import index_by_name


def _moment_of(field: str) -> Callable[[Hook], str | None]:
    def moment(hook: Hook) -> str | None:
        at: datetime | None = getattr(hook, field)
        return at.isoformat() if at is not None else None

    return moment


HOOK_COLUMNS = (
    OutputColumn("name", "name"),
    OutputColumn("tenant", "tenant", value=lambda hook: hook.tenant.slug),
    OutputColumn("agent", "agent", value=lambda hook: hook.agent.name),
    OutputColumn("kind", "kind"),
    OutputColumn("events", "events", cell=lambda names: ", ".join(names) or "all"),
    OutputColumn("active", "active", cell=lambda active: "on" if active else "off"),
    OutputColumn("last_refusal", "last refusal", cell=cut),
    OutputColumn("path", value=lambda hook: f"{HOOKS_PATH}{hook.key}"),
    *(OutputColumn(key) for key in ("signature_header", "mapping", "urgent_from")),
    *(OutputColumn(key, value=_moment_of(key)) for key in ("refused_at", "previous_until", "created_at")),
    OutputColumn("id"),
    OutputColumn("short", value=lambda hook: short(hook.id)),
)
DELIVERY_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("at", "at", cell=format_relative_time),
    OutputColumn("tenant", "tenant", value=lambda delivery: delivery.tenant.slug),
    OutputColumn("of", "of", value=lambda delivery: (delivery.hook or delivery.webhook).name),
    OutputColumn("event", "event", cell=cut),
    OutputColumn("status", "status"),
    OutputColumn("attempts", "attempts"),
    OutputColumn("error", "error", cell=cut),
    OutputColumn("direction", value=lambda delivery: "in" if delivery.hook_id else "out"),
    *(OutputColumn(key) for key in ("delivery_id", "percept_id", "tried_at")),
)

#: The models whose rows have deliveries.
_PARENTS: dict[str, Any] = {"hook": Hook, "webhook": SignalWebhook}


def list_hooks(tenant_slug: str | None) -> Output:
    """List the hooks."""
    with tenant_or_all(tenant_slug, reason="list of hooks") as tenant:
        hooks = Hook.objects.select_related("agent", "tenant").defer("sealed_secret")
        shown = list(hooks if tenant else hooks.order_by("tenant__slug", "name"))
    return listing(
        "hooks",
        shown,
        columns_for(HOOK_COLUMNS, one_tenant=tenant is not None),
        empty="No hooks. [bold]arbor contact hook create NAME --help[/bold]",
    )


@with_agent
def create(
    agent: ChosenAgent,
    *,
    name: str,
    kind: str,
    mappings: Sequence[str],
    events: Sequence[str],
    header: str,
    urgent_from: float | None,
    secret_file: TextIO | None,
) -> Output:
    """Create a hook. Its secret is shown once."""
    new = NewHook(
        name=name,
        agent_id=agent.id,
        kind=HookKind(kind),
        signature_header=header,
        mapping=_parse_mappings(mappings),
        events=events,
        urgent_from=urgent_from,
        secret=_read_secret(secret_file),
    )
    with tenant_transaction(agent.tenant_id):
        return _secret_output(create_hook(new, actor=actor()), "is ready")


def change(
    name: str,
    *,
    mappings: Sequence[str],
    events: Sequence[str],
    all_events: bool,
    urgent_from: float | None,
    never_urgent: bool,
    tenant_slug: str | None,
) -> Output:
    """Change the mapping, the events and the urgency of a hook; what is not given stays."""
    if (events and all_events) or (urgent_from is not None and never_urgent):
        raise click.UsageError("give --event or --all-events, and --urgent-from or --never-urgent, not both")
    if not (mappings or events or all_events or never_urgent) and urgent_from is None:
        raise click.UsageError(
            "say what is to change: --map, --event, --all-events, --urgent-from or --never-urgent"
        )
    with tenant_transaction(tenant_of_name(Hook, name, tenant_slug)):
        # Locked before it is read: what is not given stays as another change has left it.
        hook = lock_hook(hook_by_name(name).id)
        changed = change_hook(
            hook_id=hook.id,
            actor=actor(),
            mapping={**hook.mapping, **_parse_mappings(mappings)} if mappings else None,
            events=[] if all_events else events or None,
            urgent_from=None if never_urgent else hook.urgent_from if urgent_from is None else urgent_from,
        )
        line = row_to_dict(changed, HOOK_COLUMNS)
    return Output(line, text=f"[bold]{escape(changed.name)}[/bold] is changed.")


def try_body(sample: TextIO, *, mappings: Sequence[str], name: str | None, tenant_slug: str | None) -> Output:
    """Show the message that a mapping would give for a body; nothing is stored."""
    known: dict[str, str] = {}
    if tenant_slug is not None and name is None:
        raise click.UsageError("--tenant is that of a hook: name the hook with --hook")
    if name is not None:
        with tenant_transaction(tenant_of_name(Hook, name, tenant_slug)):
            known = hook_by_name(name).mapping
    message = try_mapping(mapping={**known, **_parse_mappings(mappings)}, sample=read_text(sample))
    shown = {
        "content": message.content,
        "event": message.event,
        "sender": message.sender,
        "importance": message.importance,
        "warnings": list(message.warnings),
    }
    about = f"event {message.event or '–'}, sender {message.sender or '–'}, importance {message.importance:g}"
    faults = "".join(f"\n[yellow]{escape(warning)}[/yellow]" for warning in message.warnings)
    return Output(shown, text=f"{escape(message.content)}\n\n{escape(about)}{faults}")


def enable(name: str, tenant_slug: str | None) -> Output:
    """Switch a hook on again."""
    return _switch(name, tenant_slug, active=True)


def disable(name: str, tenant_slug: str | None) -> Output:
    """Switch a hook off. Its deliveries are refused."""
    return _switch(name, tenant_slug, active=False)


def rotate(name: str, *, secret_file: TextIO | None, tenant_slug: str | None) -> Output:
    """Give a hook a new secret, which is shown once; the one before, if it can be opened, is valid for a day more."""
    secret = _read_secret(secret_file)
    with tenant_transaction(tenant_of_name(Hook, name, tenant_slug)):
        new = rotate_hook_secret(hook_id=hook_by_name(name).id, actor=actor(), secret=secret)
        overlap = "; the one before is valid for a day more" if new.hook.previous_until else ""
        return _secret_output(new, f"has a new secret{overlap}")


def delete(name: str, tenant_slug: str | None) -> Output:
    """Delete a hook, with the log of its deliveries."""
    with tenant_transaction(tenant_of_name(Hook, name, tenant_slug)):
        deleted = delete_hook(hook_id=hook_by_name(name).id, actor=actor())
        line = row_to_dict(deleted, HOOK_COLUMNS)
    return Output({"deleted": line}, text=f"[bold]{escape(deleted.name)}[/bold] is deleted.")


def list_hook_deliveries(
    name: str | None, *, status: str | None, limit: int, tenant_slug: str | None
) -> Output:
    """List deliveries at hooks, the latest first."""
    return _deliveries("hook", name, status, limit, tenant_slug)


def list_webhook_deliveries(
    name: str | None, *, status: str | None, limit: int, tenant_slug: str | None
) -> Output:
    """List deliveries of webhooks, the latest first."""
    return _deliveries("webhook", name, status, limit, tenant_slug)


def resend(delivery_id: str, tenant_slug: str | None) -> Output:
    """Send a delivery of a webhook again, with the same id and signals."""
    with tenant_transaction(tenant_of_row(HookDelivery, delivery_id, tenant_slug)):
        delivery = resend_delivery(delivery_id=find_in_tenant(HookDelivery, delivery_id), actor=actor())
        line = row_to_dict(delivery, DELIVERY_COLUMNS)
    return Output(line, text="The delivery is sent again within seconds.")


def _deliveries(
    parent: str, name: str | None, status: str | None, limit: int, tenant_slug: str | None
) -> Output:
    with tenant_or_all(tenant_slug, reason="list of deliveries") as tenant:
        rows = HookDelivery.objects.select_related("hook", "webhook", "tenant").defer(
            "body", "hook__sealed_secret", "webhook__sealed_secret"
        )
        rows = rows.exclude(**{parent: None}).order_by("-at", "-id")
        filters: dict[str, Any] = {"status": status} if status else {}
        if name is not None:
            if not _PARENTS[parent].objects.filter(name=name.strip()).exists():
                raise NotFound(f"there is no {parent} {name!r}; `arbor contact {parent} list` shows them")
            filters[f"{parent}__name"] = name.strip()
        shown = list(rows.filter(**filters)[:limit])
    return listing(
        "deliveries",
        shown,
        columns_for(DELIVERY_COLUMNS, one_tenant=tenant is not None),
        empty="No deliveries.",
    )


def _switch(name: str, tenant_slug: str | None, *, active: bool) -> Output:
    with tenant_transaction(tenant_of_name(Hook, name, tenant_slug)):
        switched = switch_hook(hook_id=hook_by_name(name).id, active=active, actor=actor())
        line = row_to_dict(switched, HOOK_COLUMNS)
    word = "on" if active else "off: its deliveries are refused"
    return Output(line, text=f"[bold]{escape(switched.name)}[/bold] is {word}.")


def _secret_output(made: HookWithSecret, state: str) -> Output:
    line = row_to_dict(made.hook, HOOK_COLUMNS)
    text = (
        f"[bold]{escape(made.hook.name)}[/bold] {state}. The sender posts to the path [bold]{line['path']}[/bold] of the"
        f" API's address,\nand signs by [bold]{escape(made.secret)}[/bold]: give this to the sender. It is not shown again."
    )
    return Output({**line, "secret": made.secret}, text=text)


def _parse_mappings(mappings: Sequence[str]) -> dict[str, str]:
    """Parse NAME=TEMPLATE."""
    pairs = []
    for mapping in mappings:
        name, equals, template = mapping.partition("=")
        if not equals:
            raise click.UsageError(
                f"a mapping is NAME=TEMPLATE, such as title={{data.title}}, got {mapping!r}"
            )
        pairs.append((name.strip(), template))
    return index_by_name(pairs, option="--map")


def _read_secret(file: TextIO | None) -> str:
    return read_secret_text(file) if file is not None else ""
