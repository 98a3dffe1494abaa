"""Run heartbeats now, and show their traces."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click
from django.db.models import Max, Min
from rich.console import Console
from rich.markup import escape

from apps.agents.models import Agent, HeartbeatSchedule
from apps.agents.services.lookup import own_model
from apps.default_model import default_model
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.inline import allocate_cycle, fleet_is_live, run_heartbeat_now, run_ticks
from apps.heartbeats.services.reports.trace import steps_of
from apps.heartbeats.services.schedule import claim_now
from apps.tenants.scope import tenant_transaction
from arbor.errors import NotFound, ServerError
from arbor.quotations import counted
from arbor.runtime import Tick
from config.cli.agents.trace import model_line, render, render_step, step_value, trace_of
from config.cli.kit.declarations import ExitCode, Output, is_given
from config.cli.kit.output import console, print_note
from config.cli.kit.tenancy import ChosenAgent, actor, audit_act, with_agent

#: The seconds between two polls of a heartbeat that the fleet runs.
_POLL_S = 0.1


@with_agent
def run_one(agent: ChosenAgent, *, here: bool, timeout: float, as_json: bool) -> Output:
    """Run a heartbeat of an active agent now, and print its trace."""
    if here and is_given("timeout"):
        raise click.UsageError("--timeout is for a heartbeat that workers run: leave it out, or --here")
    _audit_request(agent)
    followed = not here and fleet_is_live()
    if followed:
        trace = follow_heartbeat(agent, timeout_s=timeout, quiet=as_json)
    else:
        print_note(
            "this process runs the heartbeat" if here else "no workers: this process runs the heartbeat"
        )
        trace = run_heartbeat(agent)
    # A followed heartbeat's steps are printed already.
    text = render({**trace, "steps": []} if followed else trace)
    done = trace["status"] == HeartbeatStatus.DONE
    return Output(trace, text=text, code=ExitCode.DONE if done else ExitCode.FAILED)


@with_agent
def show_trace(agent: ChosenAgent, *, number: int | None) -> Output:
    """Print the trace of a heartbeat."""
    with tenant_transaction(agent.tenant_id):
        heartbeats = Heartbeat.objects.filter(agent_id=agent.id)
        wanted = heartbeats if number is None else heartbeats.filter(number=number)
        heartbeat = wanted.order_by("-started_at").first()
        if heartbeat is None:
            raise NotFound(_describe_missing(agent, number))
    trace = _read_trace(agent, heartbeat)
    return Output(trace, text=render(trace))


def _describe_missing(agent: ChosenAgent, number: int | None) -> str:
    """Describe a missing heartbeat, with the first and the last number: earlier heartbeats may be deleted by age."""
    numbered = Heartbeat.objects.filter(agent_id=agent.id, number__gt=0)
    numbers = numbered.aggregate(first=Min("number"), last=Max("number"))
    if number is None or numbers["first"] is None:
        return f"{agent.name} has no heartbeat yet; `arbor agent run {agent.argument}` runs one"
    return f"{agent.name} has no heartbeat {number}; its heartbeats have the numbers {numbers['first']} to {numbers['last']}"


def _audit_request(agent: ChosenAgent) -> None:
    with tenant_transaction(agent.tenant_id):
        audit_act(agent, "asked for a heartbeat now")


def _model_of(agent: ChosenAgent) -> str:
    with tenant_transaction(agent.tenant_id):
        own = own_model(Agent.objects.select_related("tenant").get(id=agent.id))
    return model_line(own or default_model())


def _read_trace(agent: ChosenAgent, heartbeat: Heartbeat) -> dict[str, Any]:
    with tenant_transaction(agent.tenant_id):
        return trace_of(Heartbeat.objects.select_related("agent").get(id=heartbeat.id))


def run_heartbeat(agent: ChosenAgent) -> dict[str, Any]:
    """Run a heartbeat in this process, and return its trace."""
    with console(err=True).status(f"{agent.name} runs a heartbeat, {_model_of(agent)}"):
        heartbeat = run_heartbeat_now(agent_id=agent.id, tenant_id=agent.tenant_id)
    return _read_trace(agent, heartbeat)


def follow_heartbeat(agent: ChosenAgent, *, timeout_s: float, quiet: bool) -> dict[str, Any]:
    """Request a heartbeat from the fleet, follow it to its end, and return its trace; print its steps unless quiet."""
    with tenant_transaction(agent.tenant_id):
        claim_now(agent_id=agent.id)
        slot_at = HeartbeatSchedule.objects.values_list("slot_at", flat=True).get(agent_id=agent.id)
    assert slot_at is not None
    # The steps and the status line below them share one console, or they would overwrite each other.
    screen = console(err=quiet)
    follower = _Follower(agent, slot_at, screen=None if quiet else screen)
    deadline = time.monotonic() + timeout_s
    with screen.status("waiting for a worker") as status:
        while True:
            heartbeat = follower.poll()
            if heartbeat is not None and heartbeat.ended_at is not None:
                return _read_trace(agent, heartbeat)
            status.update(follower.describe_wait(heartbeat))
            if time.monotonic() > deadline:
                raise ServerError(
                    f"{agent.name} has not ended its heartbeat in {timeout_s:g} s ({follower.describe_wait(heartbeat)});"
                    f" it goes on: `arbor agent trace {agent.argument}` shows it, `arbor doctor` checks the workers"
                )
            time.sleep(_POLL_S)


class _Follower:
    """Polls one heartbeat."""

    def __init__(self, agent: ChosenAgent, slot_at: datetime, *, screen: Console | None) -> None:
        self._agent = agent
        self._slot_at = slot_at
        self._screen = screen
        self._printed = 0

    def poll(self) -> Heartbeat | None:
        """Print the new steps, and return the heartbeat once it has begun."""
        with tenant_transaction(self._agent.tenant_id):
            heartbeat: Heartbeat | None = Heartbeat.objects.filter(
                agent_id=self._agent.id, slot_at=self._slot_at
            ).first()
            new = [step for step in steps_of(heartbeat) if step.sequence > self._printed] if heartbeat else []
            for step in new:
                self._printed = step.sequence
                if self._screen is not None:
                    self._screen.print(render_step(step_value(step)))
        return heartbeat

    def describe_wait(self, heartbeat: Heartbeat | None) -> str:
        """Describe the progress of the heartbeat: waiting for a worker or a model, or its status and mode."""
        if heartbeat is None:
            return "waiting for a worker"
        if heartbeat.status == HeartbeatStatus.WAITING:
            return f"waiting for {heartbeat.model or 'the model'}"
        return f"{heartbeat.status}, {heartbeat.mode or 'beginning'}"


@with_agent
def run_cycle(agent: ChosenAgent, *, ticks: int | None) -> Output:
    """Run heartbeats of an active agent here until its ticks are used up or nothing is left to do."""
    if ticks is not None:
        with tenant_transaction(agent.tenant_id):
            allocate_cycle(agent_id=agent.id, ticks=ticks, actor=actor())

    def report(tick: Tick, left: int) -> None:
        actions = ", ".join(action.action for action in tick.actions) or tick.reason or "nothing"
        print_note(f"{tick.mode or tick.status}: {actions} ({counted(left, 'tick')} left)")

    cycle = run_ticks(agent_id=agent.id, tenant_id=agent.tenant_id, progress=report)
    failed = bool(cycle.ticks) and cycle.ticks[-1].status == HeartbeatStatus.FAILED
    ran = counted(len(cycle.ticks), "heartbeat")
    return Output(
        {**asdict(cycle), "used": cycle.used, "agent": agent.name, "tenant": agent.tenant_slug},
        text=f"{agent.name} ran {ran} and used {cycle.used} of {counted(cycle.allocated, 'tick')}: {escape(cycle.ended)}.",
        code=ExitCode.FAILED if failed else ExitCode.DONE,
    )
