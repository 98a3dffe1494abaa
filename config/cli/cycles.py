"""`arbor agent cycle`: beats one after the other, under a budget of ticks."""

from __future__ import annotations

from dataclasses import asdict

import click

from apps.heartbeats.services.cycles import MOST_TICKS, give_cycle, run_ticks
from apps.tenants.scope import tenant_transaction
from arbor.runtime import Tick
from config.cli.output import json_option, note, show
from config.cli.tenancy import actor, choose_agent, tenant_option


@click.command()
@click.argument("name")
@click.option(
    "--ticks",
    type=click.IntRange(1, MOST_TICKS),
    help="Give it so many ticks first.  [default: those it has left]",
)
@tenant_option
@json_option
def cycle(name: str, ticks: int | None, tenant_slug: str | None, as_json: bool) -> None:
    """Let an active agent beat in this process until its ticks are used up or nothing is left to do.

    Each action costs a tick, and so does a beat that does nothing; a model that is out of reach costs none, and ends the
    cycle. Exit code 1 when the last beat failed.

    \b
    Example: arbor agent cycle Vega --ticks 12
    """
    agent = choose_agent(name, tenant_slug)
    if ticks is not None:
        with tenant_transaction(agent.tenant_id):
            give_cycle(agent_id=agent.id, ticks=ticks, actor=actor())

    def tell(tick: Tick, left: int) -> None:
        did = ", ".join(each.action for each in tick.actions) or tick.reason or "nothing"
        note(f"{tick.mode or tick.status}: {did} ({left} ticks left)")

    ran = run_ticks(agent_id=agent.id, tenant_id=agent.tenant_id, progress=tell)
    show(
        {**asdict(ran), "used": ran.used, "agent": agent.name, "tenant": agent.tenant_slug},
        as_json=as_json,
        people=f"{agent.name} beat {len(ran.ticks)} times and used {ran.used} of {ran.allocated} ticks: {ran.ended}.",
    )
    if ran.ticks and ran.ticks[-1].status == "failed":
        raise click.exceptions.Exit(1)
