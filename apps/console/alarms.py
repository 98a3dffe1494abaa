"""Alarms about the fleet and maintenance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import reverse

from apps.console.pages.fleet import FleetPage
from apps.contacts.services.outbox import MAX_COUNTED
from apps.heartbeats.models import HeartbeatStatus
from apps.memories.services.jobs.health import Health
from arbor.agents.lifecycle import AgentStatus
from arbor.authority.approvals import ApprovalStatus
from arbor.contacts.values import DeliveryStatus
from arbor.memory.maintenance.health import HealthState
from arbor.quotations import bounded, bounded_noun, counted

#: Findings about maintenance that the first page shows.
FINDINGS_SHOWN = 4
#: The longest time that a due agent waits while a dispatcher claims agents.
OVERDUE_AFTER = timedelta(seconds=30)
#: The share of failed heartbeats from which they are an alarm.
FAILED_SHARE = 0.05


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """A problem that needs a person."""

    tone: str
    title: str
    text: str
    #: The commands that help.
    commands: tuple[str, ...] = ()
    #: The address of the page that shows what is concerned; empty for none.
    address: str = ""


def alarms_of(fleet: FleetPage, *, now: datetime) -> list[Alarm]:
    """Return the alarms of a fleet, from the data of its page."""
    return [*_alarms_of_processes(fleet, now=now), *_alarms_of_agents(fleet)]


def _alarms_of_processes(fleet: FleetPage, *, now: datetime) -> Iterator[Alarm]:
    kinds = {process.kind for process in fleet.processes}
    if "worker" not in kinds:
        yield Alarm(
            tone="bad",
            title="No worker is running",
            text="Agents have no heartbeats until one runs.",
            commands=("arbor up", "arbor worker"),
        )
    elif "scheduler" not in kinds:
        yield Alarm(
            tone="bad",
            title="The scheduler is not running",
            text="Nothing is dispatched until it runs.",
            commands=("arbor scheduler",),
        )
    if fleet.oldest_due and now - fleet.oldest_due > OVERDUE_AFTER:
        yield Alarm(
            tone="warn",
            title="Heartbeats are waiting to be claimed",
            text="The dispatcher is behind, or not running.",
            address=reverse("admin:operations"),
        )


def _alarms_of_agents(fleet: FleetPage) -> Iterator[Alarm]:
    if dormant := fleet.agents.get(AgentStatus.DORMANT, 0):
        yield Alarm(
            tone="warn",
            title=f"{counted(dormant, 'agent is', 'agents are')} dormant",
            text="A person put them to sleep, or too many heartbeats in a row brought no usable reply. A message wakes them.",
            commands=("arbor agent wake NAME",),
            address=_list_of("agents_agent", AgentStatus.DORMANT),
        )
    if undelivered := fleet.outbox.failed:
        yield Alarm(
            tone="bad",
            title=f"{bounded_noun(undelivered, MAX_COUNTED, 'message')} of agents did not arrive",
            text="The outbox shows the reasons; messages can be retried or withdrawn there.",
            address=_list_of("contacts_outboxmessage", DeliveryStatus.FAILED),
        )
    if suspended := fleet.suspended_tools:
        yield Alarm(
            tone="warn",
            title=f"{bounded_noun(suspended, fleet.sample, 'tool is', 'tools are')} suspended",
            text="Their servers have changed or removed them since they were allowed. Look at them, and allow or withdraw them.",
            commands=("arbor tool list", "arbor tool show SERVER.NAME"),
            address=_list_of("tools_tool"),
        )
    if undecided := fleet.undecided:
        yield Alarm(
            tone="warn",
            title=f"{bounded_noun(undecided, fleet.sample, 'request')} for approval expired without a decision",
            text="In the last 24 hours. The actions were not executed; their agents may ask again.",
            commands=("arbor approval list --all",),
            address=_list_of("authority_actionapproval", ApprovalStatus.EXPIRED),
        )
    if fleet.low_budget:
        # The halted agents are among those that were counted.
        halted_shown = bounded(fleet.halted, fleet.sample, of=fleet.low_budget)
        halted = f", and {halted_shown} of them nothing until tomorrow" if fleet.halted else ""
        yield Alarm(
            tone="bad" if fleet.halted else "warn",
            title=f"The day's budget of {bounded_noun(fleet.low_budget, fleet.sample, 'agent')} runs low",
            text=f"They do less{halted}. Their pages show what they have used.",
            commands=("arbor agent policy set NAME --daily-usd …", "arbor tenant limit SLUG --usd …"),
            address=reverse("admin:model-usage"),
        )
    ended = fleet.done + fleet.failed
    if fleet.failed and fleet.failed >= FAILED_SHARE * ended:
        sample = f"Of the newest {fleet.sample:,} in" if fleet.sampled else "In"
        yield Alarm(
            tone="bad",
            title=f"{fleet.failed:,} of {ended:,} heartbeats failed",
            text=f"{sample} the last 24 hours. Their pages show the reasons.",
            address=_list_of("heartbeats_heartbeat", HeartbeatStatus.FAILED),
        )


def _list_of(model: str, status: str = "") -> str:
    """Return the address of a list; of its rows with a status."""
    address = reverse(f"admin:{model}_changelist")
    return f"{address}?status__exact={status}" if status else address


def alarms_of_maintenance(health: Health) -> list[Alarm]:
    """Return alarms of the worst findings about maintenance, and one with the number of the others, for superusers."""
    shown, others = health.findings[:FINDINGS_SHOWN], health.findings[FINDINGS_SHOWN:]
    alarms = [
        Alarm(
            tone="bad" if state is HealthState.CRITICAL else "warn",
            title=what[0].upper() + what[1:],
            text=f"{remedy[0].upper()}{remedy[1:]}.",
            address=reverse("admin:operations"),
        )
        for state, what, remedy in shown
    ]
    if others:
        number = counted(len(others), "further finding")
        alarms.append(
            Alarm(
                tone="bad" if others[0][0] is HealthState.CRITICAL else "warn",
                title=f"{number} about maintenance",
                text="The page Operations lists all of them.",
                address=reverse("admin:operations"),
            )
        )
    return alarms
