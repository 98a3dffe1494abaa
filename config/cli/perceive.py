"""`arbor agent perceive`: something happens around an agent."""

from __future__ import annotations

import json
import sys

import click

from apps.agents.models import Agent
from apps.heartbeats.services.perception import perceive
from config.cli.kit import Output
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction


@in_agent_transaction
def perceive_event(agent: ChosenAgent, *, text: str, kind: str, urgent: bool, detail: str) -> Output:
    """Add an event to what an agent perceives. TEXT - is standard input."""
    try:
        known = json.loads(detail)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="--detail") from error
    if not isinstance(known, dict):
        raise click.BadParameter('an object is wanted, like \'{"sensor": "river"}\'', param_hint="--detail")
    if text == "-":
        text = sys.stdin.read()
    percept = perceive(agent_id=agent.id, kind=kind, content=text, urgent=urgent, detail=known, actor=actor())
    status = Agent.objects.values_list("status", flat=True).get(id=agent.id)
    when = "its next heartbeat, which is due now" if percept.urgent else "its next heartbeat"
    then = (
        f"will see it at {when}" if status == "active" else f"is {status} and will see it when it beats again"
    )
    return Output(
        {
            "id": percept.id,
            "agent": agent.name,
            "tenant": agent.tenant_slug,
            "kind": percept.kind,
            "urgent": percept.urgent,
            "agent_status": status,
        },
        people=f"{agent.name} {then}.",
    )
