"""`arbor agent`: from an agent's first moment to its last."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click
from rich.markup import escape

from apps.agents.models import Agent
from apps.fleet.contact import tell_agent
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import (
    destroy_agent,
    pause_agent,
    resume_agent,
    sleep_agent,
    start_agent,
    stop_agent,
    wake_agent,
)
from apps.tenants.scope import tenant_transaction
from config.cli.agent_views import agent_details, agent_line, agents_of, render_agent, render_agents
from config.cli.beats import tick, trace
from config.cli.cycles import cycle
from config.cli.output import json_option, show
from config.cli.tenancy import actor, choose_agent, choose_tenant, tenant_option
from config.cli.values import Duration


@click.group()
def agent() -> None:
    """Agents: create, start, tick, talk to, look into, destroy."""


agent.add_command(tick)
agent.add_command(trace)
agent.add_command(cycle)


@agent.command("list")
@tenant_option
@json_option
def list_them(tenant_slug: str | None, as_json: bool) -> None:
    """List the agents of a tenant, or of all tenants (a look that is on record).

    \b
    Example: arbor agent list --tenant acme --json
    """
    found = agents_of(tenant_slug)
    empty = "No agent yet. Create one: [bold]arbor agent create NAME --template Scout --start[/bold]"
    show(
        {"agents": [agent_line(each) for each in found]},
        as_json=as_json,
        people=render_agents(found) if found else empty,
    )


@agent.command("show")
@click.argument("name")
@click.option("--prompt", is_flag=True, help="With its character as the model is told it.")
@tenant_option
@json_option
def show_one(name: str, prompt: bool, tenant_slug: str | None, as_json: bool) -> None:
    """Show an agent: status, energy, next beat, goals, and what is on its mind.

    \b
    Example: arbor agent show Vega --prompt
    """
    chosen = choose_agent(name, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        details = agent_details(chosen.id, prompt=prompt)
    show(details, as_json=as_json, people=render_agent(details))


@agent.command("create")
@click.argument("name")
@click.option(
    "--template", "template_name", required=True, help="`arbor template list` shows those there are."
)
@click.option(
    "--interval", type=Duration(), help="From beat to beat: 30s, 5m, 1h.  [default: the template's]"
)
@click.option("--model", default="", help="As provider/model.  [default: the installation's]")
@click.option("--start", "starts", is_flag=True, help="Start it, too.")
@tenant_option
@json_option
def create(
    name: str,
    template_name: str,
    interval: timedelta | None,
    model: str,
    starts: bool,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Create an agent from a template; it does not beat before it is started.

    \b
    Example: arbor agent create Vega --template Scout --interval 5m --start
    """
    tenant = choose_tenant(tenant_slug)
    with tenant_transaction(tenant.id):
        made = create_agent(
            name=name, template_name=template_name, actor=actor(), interval=interval, model=model
        )
        if starts:
            made = start_agent(agent_id=made.id, actor=actor())
    then = f"arbor agent {'tick' if starts else 'start'} {_typed(made.name)}"
    show(
        {
            "id": made.id,
            "name": made.name,
            "public_id": made.public_id,
            "status": made.status,
            "tenant": tenant.slug,
        },
        as_json=as_json,
        people=f"Created [bold]{made.name}[/bold] of {tenant.slug} from {made.template_name}"
        f" {escape(made.template_version)} ({made.status}).\n  {made.public_id}\nNext: [bold]{then}[/bold]",
    )


def _verb(name: str, service: Callable[..., Agent], done: str, summary: str) -> click.Command:
    """Make the command for a step of an agent's life."""

    @click.command(name, help=f"{summary}\n\n\b\nExample: arbor agent {name} Vega")
    @click.argument("name")
    @tenant_option
    @json_option
    def command(name: str, tenant_slug: str | None, as_json: bool) -> None:
        chosen = choose_agent(name, tenant_slug)
        with tenant_transaction(chosen.tenant_id):
            changed = service(agent_id=chosen.id, actor=actor())
        show(
            {"id": chosen.id, "name": chosen.name, "status": changed.status, "tenant": chosen.tenant_slug},
            as_json=as_json,
            people=f"{chosen.name} {done}.",
        )

    return command


for _command in (
    _verb("start", start_agent, "is active", "Let a new or stopped agent beat."),
    _verb("pause", pause_agent, "is paused", "Hold an agent's heartbeats for a while."),
    _verb("resume", resume_agent, "is active again", "End a pause."),
    _verb("stop", stop_agent, "is stopped; all it was is kept", "End an agent's life, reversibly."),
    _verb("sleep", sleep_agent, "sleeps", "Put an agent to sleep until it is woken, or told something."),
    _verb("wake", wake_agent, "is awake", "End the sleep of an agent that fell dormant."),
):
    agent.add_command(_command)


@agent.command("destroy")
@click.argument("name")
@click.option("--confirm", metavar="NAME", help="The agent's name once more.  [default: asked for]")
@tenant_option
@json_option
def destroy(name: str, confirm: str | None, tenant_slug: str | None, as_json: bool) -> None:
    """Delete an agent and all that is its own. There is no way back; the record of its acts stays.

    \b
    Example: arbor agent destroy Vega --confirm Vega
    """
    chosen = choose_agent(name, tenant_slug)
    if confirm is None:
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"there is no terminal to ask: confirm with --confirm {_typed(chosen.name)}"
            )
        confirm = click.prompt(f"This deletes {chosen.name} of {chosen.tenant_slug} for good. Type its name")
    with tenant_transaction(chosen.tenant_id):
        counts = destroy_agent(agent_id=chosen.id, confirm=str(confirm), actor=actor())
    gone = ", ".join(f"{kind} ({count})" for kind, count in counts.items())
    show(
        {"id": chosen.id, "name": chosen.name, "tenant": chosen.tenant_slug, "deleted": counts},
        as_json=as_json,
        people=f"{chosen.name} is gone, and with it its {gone}.",
    )


@agent.command("tell")
@click.argument("name")
@click.argument("text")
@tenant_option
@json_option
def tell(name: str, text: str, tenant_slug: str | None, as_json: bool) -> None:
    """Say something to an agent; its next heartbeat comes at once, and answers in its trace. TEXT - is standard input.

    \b
    Example: arbor agent tell Vega "What did you find by the river?"
    """
    chosen = choose_agent(name, tenant_slug)
    if text == "-":
        text = sys.stdin.read()
    with tenant_transaction(chosen.tenant_id):
        percept = tell_agent(agent_id=chosen.id, text=text, actor=actor())
        status = Agent.objects.values_list("status", flat=True).get(id=chosen.id)
    heard: dict[str, Any] = {"id": percept.id, "agent": chosen.name, "tenant": chosen.tenant_slug}
    then = (
        "will see it at its next heartbeat, which is due now"
        if status == "active"
        else f"is {status} and will see it when it beats again"
    )
    show({**heard, "agent_status": status}, as_json=as_json, people=f"{chosen.name} {then}.")


def _typed(name: str) -> str:
    return f'"{name}"' if " " in name or "'" in name else name
