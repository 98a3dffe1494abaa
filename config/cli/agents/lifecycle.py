"""Create, list, start, stop, publish and destroy agents, and send them messages and events."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click
from rich.markup import escape

from apps.agents.models import Agent, Percept
from apps.agents.services.percepts import perceive
from apps.agents.services.publication import card_path, publish_agent, unpublish_agent
from apps.fleet.contact import message_agent
from apps.fleet.creation import create_agent, ensure_agent
from apps.fleet.lifecycle import (
    destroy_agent,
    pause_agent,
    resume_agent,
    sleep_agent,
    start_agent,
    stop_agent,
    wake_agent,
)
from apps.fleet.pauses import pause_all_agents, resume_all_agents
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.agents.lifecycle import AgentStatus
from config.cli.agents.views import AGENT_COLUMNS, agent_details, agents_of, render_agent
from config.cli.kit.columns import listing
from config.cli.kit.declarations import Output
from config.cli.kit.tenancy import (
    ChosenAgent,
    actor,
    in_agent_transaction,
    in_tenant_transaction,
    with_agent,
)
from config.cli.kit.text_files import read_text
from config.environment import data_dir, server_urls

#: The next verb that a person gives to an agent of a status.
_NEXT = {
    AgentStatus.CREATED: "start",
    AgentStatus.ACTIVE: "run",
    AgentStatus.PAUSED: "resume",
    AgentStatus.STOPPED: "start",
    AgentStatus.DORMANT: "wake",
}


def list_all(tenant_slug: str | None) -> Output:
    """List the agents of a tenant, or of all tenants (which is audited)."""
    return listing(
        "agents",
        agents_of(tenant_slug),
        AGENT_COLUMNS,
        empty="No agent yet. Create one: [bold]arbor agent create NAME --template Scout --start[/bold]",
    )


@in_agent_transaction
def show_one(agent: ChosenAgent, *, prompt: bool) -> Output:
    """Show an agent: status, energy, next heartbeat, goals and working memory."""
    details = agent_details(agent.id, prompt=prompt)
    return Output(details, text=render_agent(details))


@in_tenant_transaction
def create(
    tenant: Tenant,
    *,
    name: str,
    template_name: str,
    interval: timedelta | None,
    model: str,
    starts: bool,
    if_missing: bool,
) -> Output:
    """Create an agent from a template; it has no heartbeats before it is started."""
    create_or_find = ensure_agent if if_missing else create_agent
    created = create_or_find(
        name=name, template_name=template_name, actor=actor(), interval=interval, model=model
    )
    if starts and not (if_missing and created.status == AgentStatus.ACTIVE):
        created = start_agent(agent_id=created.id, actor=actor())
    then = f"arbor agent {_NEXT[AgentStatus(created.status)]} {shlex.quote(created.name)}"
    return Output(
        {
            "id": created.id,
            "name": created.name,
            "public_id": created.public_id,
            "status": created.status,
            "tenant": tenant.slug,
        },
        text=f"{'Ensured' if if_missing else 'Created'} [bold]{created.name}[/bold] of {tenant.slug} from {created.template_name}"
        f" {escape(created.template_version)} ({created.status}).\n  {created.public_id}\nNext: [bold]{then}[/bold]",
    )


def _transition(change: Callable[..., Agent], result: str) -> Callable[..., Output]:
    """Return the function of a command that moves an agent to another status."""

    @in_agent_transaction
    def run(agent: ChosenAgent) -> Output:
        changed = change(agent_id=agent.id, actor=actor())
        return Output(
            {"id": agent.id, "name": agent.name, "status": changed.status, "tenant": agent.tenant_slug},
            text=f"{agent.name} {result}.",
        )

    return run


start = _transition(start_agent, "is active")
pause = _transition(pause_agent, "is paused")
resume = _transition(resume_agent, "is active again")
stop = _transition(stop_agent, "is stopped; all its data stays")
sleep = _transition(sleep_agent, "sleeps")
wake = _transition(wake_agent, "is awake")


@in_agent_transaction
def publish(agent: ChosenAgent, *, description: str | None) -> Output:
    """Publish an agent to agents elsewhere, which find its card and give it tasks by the protocol A2A."""
    published = publish_agent(agent_id=agent.id, actor=actor(), description=description)
    card = f"{(server_urls(data_dir()).get('api_url') or 'the API').rstrip('/')}{card_path(published)}"
    token = f"arbor token create NAME --tasks-only --agent {agent.argument}"
    return Output(
        {**_publication(agent, published), "card": card_path(published)},
        text=f"{agent.name} is published. Its card:\n  {card}\nTasks need a token: [bold]{token}[/bold]",
    )


@in_agent_transaction
def unpublish(agent: ChosenAgent) -> Output:
    """Withdraw an agent's card; agents elsewhere reach it no longer."""
    withdrawn = unpublish_agent(agent_id=agent.id, actor=actor())
    return Output(_publication(agent, withdrawn), text=f"{agent.name} is not published.")


def _publication(agent: ChosenAgent, row: Agent) -> dict[str, Any]:
    return {
        "id": agent.id,
        "name": agent.name,
        "published": row.published,
        "description": row.public_description,
        "tenant": agent.tenant_slug,
    }


@with_agent
def destroy(agent: ChosenAgent, *, confirm: str | None, no_seed: bool) -> Output:
    """Delete an agent and all its data, for good. The audit of its acts stays."""
    if confirm is None:
        if not sys.stdin.isatty():
            raise click.UsageError(f"there is no terminal to ask: confirm with --confirm {agent.argument}")
        confirm = click.prompt(f"This deletes {agent.name} of {agent.tenant_slug} for good. Type its name")
    with tenant_transaction(agent.tenant_id):
        counts = destroy_agent(agent_id=agent.id, confirm=str(confirm), actor=actor(), saves_seed=not no_seed)
    deleted = ", ".join(f"{kind} ({count})" for kind, count in counts.items())
    return Output(
        {"id": agent.id, "name": agent.name, "tenant": agent.tenant_slug, "deleted": counts},
        text=f"{agent.name} is gone, and with it its {deleted}."
        + ("" if no_seed else " [bold]arbor seed list[/bold] has a seed of it for 30 days."),
    )


@with_agent
def send_message(agent: ChosenAgent, *, text: str) -> Output:
    """Send an agent a message; its next heartbeat starts at once. TEXT - is standard input."""
    # Read before the transaction begins, because a person may type it.
    if text == "-":
        text = read_text(sys.stdin)
    with tenant_transaction(agent.tenant_id):
        percept = message_agent(agent_id=agent.id, text=text, actor=actor())
        return _percept_output(agent, percept, is_due_now=True)


def _percept_output(agent: ChosenAgent, percept: Percept, *, is_due_now: bool, **details: Any) -> Output:
    """Return the output about a percept that waits for the agent's next heartbeat."""
    status = Agent.objects.values_list("status", flat=True).get(id=agent.id)
    if status == AgentStatus.ACTIVE:
        when = f"at its next heartbeat{', which is due now' if is_due_now else ''}"
        text = f"{agent.name} will perceive it {when}."
    else:
        text = f"{agent.name} is {status} and will perceive it when its heartbeats go on."
    value = {"id": percept.id, "agent": agent.name, "tenant": agent.tenant_slug, **details}
    return Output({**value, "agent_status": status}, text=text)


@with_agent
def perceive_event(agent: ChosenAgent, *, text: str, kind: str, urgent: bool, detail: str) -> Output:
    """Add an event to what an agent perceives. TEXT - is standard input."""
    try:
        parsed_detail = json.loads(detail)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="--detail") from error
    if not isinstance(parsed_detail, dict):
        raise click.BadParameter('give an object, like \'{"sensor": "river"}\'', param_hint="--detail")
    if text == "-":
        text = read_text(sys.stdin)
    with tenant_transaction(agent.tenant_id):
        percept = perceive(
            agent_id=agent.id, kind=kind, content=text, urgent=urgent, detail=parsed_detail, actor=actor()
        )
        return _percept_output(
            agent, percept, is_due_now=percept.urgent, kind=percept.kind, urgent=percept.urgent
        )


@in_tenant_transaction
def pause_all(tenant: Tenant, *, reason: str) -> Output:
    """Pause all active agents of a tenant."""
    paused = pause_all_agents(actor=actor(), reason=reason)
    return Output(
        {"tenant": tenant.slug, "paused": paused}, text=f"Paused agents of {tenant.slug}: {paused}."
    )


@in_tenant_transaction
def resume_all(tenant: Tenant) -> Output:
    """Resume the paused agents of a tenant, except those that were paused one by one."""
    resumed = resume_all_agents(actor=actor())
    return Output(
        {"tenant": tenant.slug, "resumed": resumed}, text=f"Resumed agents of {tenant.slug}: {resumed}."
    )
