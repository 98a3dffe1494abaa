"""`arbor perceive`: something happens around an agent."""

from __future__ import annotations

import json
import sys

import click

from apps.agents.models import Agent
from apps.heartbeats.services.perception import TOLD, perceive
from apps.tenants.scope import tenant_transaction
from config.cli.output import json_option, show
from config.cli.tenancy import actor, choose_agent, tenant_option


@click.command("perceive")
@click.argument("name")
@click.argument("text")
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in TOLD]),
    default=TOLD[0].value,
    show_default=True,
    help="An interrupt is always urgent.",
)
@click.option("--urgent", is_flag=True, help="Bring its next heartbeat forward to now.")
@click.option("--detail", default="{}", help="A JSON object that goes with it.")
@tenant_option
@json_option
def perceive_command(
    name: str, text: str, kind: str, urgent: bool, detail: str, tenant_slug: str | None, as_json: bool
) -> None:
    """Let an agent perceive that something happened around it. TEXT - is standard input.

    \b
    Example: arbor perceive Vega "The river is rising" --urgent
    """
    chosen = choose_agent(name, tenant_slug)
    try:
        known = json.loads(detail)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="--detail") from error
    if not isinstance(known, dict):
        raise click.BadParameter('an object is wanted, like \'{"sensor": "river"}\'', param_hint="--detail")
    if text == "-":
        text = sys.stdin.read()
    with tenant_transaction(chosen.tenant_id):
        percept = perceive(
            agent_id=chosen.id, kind=kind, content=text, urgent=urgent, detail=known, actor=actor()
        )
        status = Agent.objects.values_list("status", flat=True).get(id=chosen.id)
    when = "its next heartbeat, which is due now" if percept.urgent else "its next heartbeat"
    then = (
        f"will see it at {when}" if status == "active" else f"is {status} and will see it when it beats again"
    )
    show(
        {
            "id": percept.id,
            "agent": chosen.name,
            "tenant": chosen.tenant_slug,
            "kind": percept.kind,
            "urgent": percept.urgent,
            "agent_status": status,
        },
        as_json=as_json,
        people=f"{chosen.name} {then}.",
    )
