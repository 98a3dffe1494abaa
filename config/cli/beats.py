"""`arbor agent tick` and `arbor agent trace`: a heartbeat now, and what one did."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import click
from rich.console import Console

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.heartbeats.models import Heartbeat, HeartbeatSchedule, HeartbeatStatus
from apps.heartbeats.services.inline import beat_now, fleet_is_live
from apps.heartbeats.services.schedule import tick_now
from apps.heartbeats.services.trace import steps_of
from apps.providers import default_model
from apps.tenants.scope import tenant_transaction
from arbor.errors import NotFound, ServerError
from config.cli.output import console, json_option, note, show
from config.cli.tenancy import ChosenAgent, actor, choose_agent, tenant_option
from config.cli.trace import model_line, render, render_step, step_line, trace_of

#: How often a heartbeat that the fleet runs is looked at.
_LOOK_EVERY_S = 0.1


@click.command()
@click.argument("name")
@click.option(
    "--here",
    is_flag=True,
    help="Run it in this process, also when workers could.  [default: without workers]",
)
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Seconds to follow it."
)
@tenant_option
@json_option
def tick(name: str, here: bool, timeout: float, tenant_slug: str | None, as_json: bool) -> None:
    """Let an active agent beat now, and print the trace. Exit code 1 when the heartbeat fails.

    \b
    Example: arbor agent tick Vega
    """
    agent = choose_agent(name, tenant_slug)
    _put_on_record(agent)
    followed = not here and fleet_is_live()
    if followed:
        trace = follow_beat(agent, timeout_s=timeout, quiet=as_json)
    else:
        note("this process runs the heartbeat" if here else "no workers: this process runs the heartbeat")
        trace = run_beat(agent)
    # Who followed it has seen its steps already.
    people = render({**trace, "steps": []} if followed else trace)
    show(trace, as_json=as_json, people=people)
    if trace["status"] != HeartbeatStatus.DONE:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("name")
@click.option("--beat", "number", type=click.IntRange(min=1), help="Its number.  [default: the last one]")
@tenant_option
@json_option
def trace(name: str, number: int | None, tenant_slug: str | None, as_json: bool) -> None:
    """Print what a heartbeat saw, decided and did.

    \b
    Example: arbor agent trace Vega --beat 3
    """
    agent = choose_agent(name, tenant_slug)
    with tenant_transaction(agent.tenant_id):
        beats = Heartbeat.objects.filter(agent_id=agent.id)
        if number is None:
            found = beats.order_by("-started_at").first()
            missing = f"{agent.name} has not beaten yet; `arbor agent tick {agent.name}` lets it"
        else:
            found = beats.filter(number=number).order_by("-started_at").first()
            missing = f"{agent.name} has no heartbeat {number}; it has {beats.filter(number__gt=0).count()}"
    if found is None:
        raise NotFound(missing)
    told = _trace(agent, found)
    show(told, as_json=as_json, people=render(told))


def _put_on_record(agent: ChosenAgent) -> None:
    with tenant_transaction(agent.tenant_id):
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor(),
            agent_id=agent.id,
            message="asked for a heartbeat now",
        )


def _model_of(agent: ChosenAgent) -> str:
    with tenant_transaction(agent.tenant_id):
        own = Agent.objects.values_list("model", flat=True).get(id=agent.id)
    return model_line(own or default_model())


def _trace(agent: ChosenAgent, beat: Heartbeat) -> dict[str, Any]:
    with tenant_transaction(agent.tenant_id):
        return trace_of(Heartbeat.objects.select_related("agent").get(id=beat.id))


def run_beat(agent: ChosenAgent) -> dict[str, Any]:
    """Run a heartbeat in this process, and return its trace."""
    with console(err=True).status(f"{agent.name} beats, {_model_of(agent)}"):
        beat = beat_now(agent_id=agent.id, tenant_id=agent.tenant_id)
    return _trace(agent, beat)


def follow_beat(agent: ChosenAgent, *, timeout_s: float, quiet: bool) -> dict[str, Any]:
    """Ask the fleet for a heartbeat, look on until it has ended, and return its trace; print its steps unless quiet."""
    with tenant_transaction(agent.tenant_id):
        tick_now(agent_id=agent.id)
        slot_at = HeartbeatSchedule.objects.values_list("slot_at", flat=True).get(agent_id=agent.id)
    # One console for the steps and the line that moves below them, or they would write over each other.
    screen = console(err=quiet)
    follower = _Follower(agent, slot_at, screen=None if quiet else screen)
    deadline = time.monotonic() + timeout_s
    with screen.status("waiting for a worker") as status:
        while True:
            beat = follower.look()
            if beat is not None and beat.ended_at is not None:
                return _trace(agent, beat)
            status.update(follower.where(beat))
            if time.monotonic() > deadline:
                raise ServerError(
                    f"{agent.name} has not ended its heartbeat in {timeout_s:g} s ({follower.where(beat)});"
                    f" it goes on: `arbor agent trace {agent.name}` shows it, `arbor doctor` checks the workers"
                )
            time.sleep(_LOOK_EVERY_S)


class _Follower:
    """Looks at one heartbeat again and again."""

    def __init__(self, agent: ChosenAgent, slot_at: datetime, *, screen: Console | None) -> None:
        self._agent = agent
        self._slot_at = slot_at
        self._screen = screen
        self._seen = 0

    def look(self) -> Heartbeat | None:
        """Print the steps that are new, and return the heartbeat once it has begun."""
        with tenant_transaction(self._agent.tenant_id):
            beat: Heartbeat | None = Heartbeat.objects.filter(
                agent_id=self._agent.id, slot_at=self._slot_at
            ).first()
            new = [step for step in steps_of(beat) if step.sequence > self._seen] if beat else []
            for step in new:
                self._seen = step.sequence
                if self._screen is not None:
                    self._screen.print(render_step(step_line(step)))
        return beat

    def where(self, beat: Heartbeat | None) -> str:
        """Say what is being waited for."""
        if beat is None:
            return "waiting for a worker"
        if beat.status == HeartbeatStatus.WAITING:
            return f"waiting for {beat.model or 'the model'}"
        return f"{beat.status}, {beat.mode or 'beginning'}"
