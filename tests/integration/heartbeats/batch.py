"""Batches of one tenant's agents, and their rows for comparison."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent, AgentState, Percept, ScheduleState
from apps.audit.models import AuditEvent
from apps.calls.models import DailyUsage, ExternalCall, LedgerEntry
from apps.goals.models import Goal, GoalMemoryLink, Intent, ProgressNote
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.legs.runner import advance_heartbeats
from apps.heartbeats.services.reports.trace import steps_of
from apps.memories.models import BufferItem, Edge, Memory, MemoryAccess
from apps.queues import Task, TaskMessage
from apps.selves.models import Experience, Proposal
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.integration.heartbeats.conftest import begin_heartbeat, make_due, schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.support.database import recorded_statements

EIGHT = 8

type MakeAgent = Callable[..., Agent]

#: Parts of texts that differ each time: ids, times and seconds since.
_VARIES = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|agent_[0-9a-f]{16,}"
    r"|\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?|\d+ s ago"
)
#: Keys whose values differ each time.
_TIMES = {"at", "started_at", "ended_at", "occurred_at", "satisfied_at", "observed_at", "slot_at"}
_DIFFER = {"own_ms", "elapsed_ms", "duration_ms", "capability_id"}


class Batch:
    """Agents of a tenant whose messages one worker executes as a batch."""

    def __init__(self, fleet: Fleet, agents: Sequence[Agent]) -> None:
        self._fleet = fleet
        self.agents = agents

    @property
    def tenant_id(self) -> UUID:
        """Return the id of the agents' tenant."""
        return self.agents[0].tenant_id

    def dispatch(self) -> None:
        """Make all agents due, and dispatch their heartbeats."""
        for agent in self.agents:
            make_due(agent)
        self._fleet.dispatch()

    def pop_leases(self, agents: Iterable[Agent] | None = None) -> list[tuple[UUID, int]]:
        """Remove the messages of these agents' heartbeats (None: of all) from the fleet; return their leases."""
        ids = {str(agent.id) for agent in (self.agents if agents is None else agents)}
        messages = [message for message in self._fleet.messages if _advances(message, ids)]
        self._fleet.messages[:] = [message for message in self._fleet.messages if not _advances(message, ids)]
        return [(UUID(message.arguments["agent_id"]), message.arguments["epoch"]) for message in messages]

    def run_leg(self) -> set[UUID]:
        """Run all heartbeats that are ready, in one batch; return the agents whose heartbeats went on."""
        return advance_heartbeats(tenant_id=self.tenant_id, leases=self.pop_leases())

    def execute_calls(self) -> None:
        """Execute all pending calls."""
        messages = [message for message in self._fleet.messages if message.task is Task.EXECUTE_CALL]
        self._fleet.messages[:] = [
            message for message in self._fleet.messages if message.task is not Task.EXECUTE_CALL
        ]
        for message in messages:
            self._fleet.deliver(message)

    def run_until_last_leg(self) -> None:
        """Run the first legs and the calls of all agents, whose next leg is the last if their models rest."""
        self.dispatch()
        self.run_leg()
        self.execute_calls()

    def run(self) -> int:
        """Run the heartbeats of all agents to their ends, each leg in one batch; return the number of legs."""
        self.dispatch()
        legs = 0
        while self._fleet.messages:
            self.run_leg()
            self.execute_calls()
            legs += 1
        return legs

    def run_singly(self) -> None:
        """Run the heartbeats of all agents to their ends, one after the other."""
        self.dispatch()
        self._fleet.run()

    def heartbeats(self) -> list[Heartbeat]:
        """Return all heartbeats, by the names of their agents and in order."""
        with tenant_transaction(self.tenant_id):
            rows = Heartbeat.objects.filter(agent__in=self.agents).select_related("agent")
            return sorted(rows, key=lambda heartbeat: (heartbeat.agent.name, heartbeat.started_at))


def _advances(message: TaskMessage, agent_ids: set[str]) -> bool:
    return message.task is Task.ADVANCE and message.arguments["agent_id"] in agent_ids


def shorten(statements: Iterable[str]) -> str:
    """Return the beginnings of statements, one a line."""
    return "\n".join(" ".join(statement.split())[:110] for statement in statements)


# --- Comparing -----------------------------------------------------------------------------------------


def rows_of(agent: Agent) -> dict[str, Any]:
    """Return everything that heartbeats have written about an agent, without ids and times."""
    with tenant_transaction(agent.tenant_id):
        rows_by_name = {name: [*read(agent.id)] for name, read in _ROWS.items()}
    return {name: sorted(map(_plain_text, rows)) for name, rows in rows_by_name.items()}


def _plain_text(row: Any) -> str:
    return json.dumps(plain(row), sort_keys=True, default=str)


def plain(value: Any) -> Any:
    """Return a value without what differs each time: some keys, ids and times in texts, small differences of numbers."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items() if key not in _TIMES | _DIFFER}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        # Values that fade depend on the time of reading; moods and drives change by steps of 0.05.
        return round(value / 0.05)
    return _VARIES.sub("#", value) if isinstance(value, str) else value


def _heartbeats(agent_id: UUID) -> Iterator[Any]:
    for heartbeat in Heartbeat.objects.filter(agent_id=agent_id):
        situation = heartbeat.situation
        yield {
            "fields": [getattr(heartbeat, name) for name in _HEARTBEAT_FIELDS],
            "steps": [[step.node, step.outcome, list(step.changed)] for step in steps_of(heartbeat)],
            "situation": {
                name: situation.get(name) for name in ("percepts", "notices", "mode", "energy", "held")
            },
            "relevant": sorted(item["content"] for item in situation.get("relevant", [])),
            "remembered": heartbeat.memory_id is not None,
        }


_HEARTBEAT_FIELDS = (
    "number",
    "status",
    "trigger",
    "step",
    "mode",
    "energy_start",
    "energy_end",
    "energy_unit",
    "reasoning",
    "actions",
    "goal_changes",
    "dropped",
    "repairs",
    "narrative",
    "emotional_valence",
    "arousal",
    "tier",
    "round_trips",
    "reason",
    "model",
)
_STATE = (
    "energy",
    "ticks_left",
    "bonus_actions",
    "heartbeats",
    "nops",
    "idle_heartbeats",
    "stale_heartbeats",
    "working_memory",
    "learned",
    "notices",
)


def _listed(model: Any, *names: str) -> Callable[[UUID], Iterable[Any]]:
    return lambda agent_id: model.objects.filter(agent_id=agent_id).values_list(*names)


_ROWS: Mapping[str, Callable[[UUID], Iterable[Any]]] = {
    "heartbeats": _heartbeats,
    "state": _listed(AgentState, *_STATE),
    "memories": _listed(
        Memory, "content", "type", "importance", "retention", "trust", "session", "position", "source"
    ),
    "embedded": lambda agent_id: Memory.objects.filter(
        agent_id=agent_id, embedding__isnull=False
    ).values_list("content"),
    "accesses": lambda agent_id: MemoryAccess.objects.filter(memory__agent_id=agent_id).values_list(
        "memory__content", "count"
    ),
    "edges": _listed(Edge, "relation", "source_kind", "target_kind", "origin"),
    "goals": _listed(Goal, "title", "state", "fraction", "effort", "source", "rule", "emotional_valence"),
    "notes": lambda agent_id: ProgressNote.objects.filter(goal__agent_id=agent_id).values_list("text"),
    "links": lambda agent_id: GoalMemoryLink.objects.filter(goal__agent_id=agent_id).values_list(
        "goal__title", "memory__content", "kind"
    ),
    "intents": _listed(Intent, "action", "description", "status", "attempts", "ticks_used"),
    "percepts": lambda agent_id: Percept.objects.filter(agent_id=agent_id).values_list(
        "content", "heartbeat__number"
    ),
    "buffer_items": _listed(BufferItem, "content", "role", "source"),
    "experiences": _listed(Experience, "action", "about", "outcome", "lesson", "heartbeat_number"),
    "proposals": _listed(Proposal, "kind", "content", "confidence"),
    "audit": _listed(AuditEvent, "action", "actor", "message"),
    "calls": _listed(ExternalCall, "purpose", "status", "model", "reply", "error_kind", "attempts"),
    "ledger": _listed(LedgerEntry, "purpose", "error_kind"),
    "usage": _listed(DailyUsage, "heartbeats", "calls", "level"),
}


def batch_of_eight(fleet: Fleet, tenant: Tenant, make: MakeAgent) -> Batch:
    """Create eight agents of one tenant; return them as a batch."""
    return Batch(fleet, [make(tenant, name=f"Agent {number}") for number in range(EIGHT)])


@pytest.fixture
def batch(fleet: Fleet, tenant: Tenant, new_agent: MakeAgent) -> Batch:
    """Return eight agents of one tenant."""
    return batch_of_eight(fleet, tenant, new_agent)


def statuses_of(batch: Batch) -> list[str]:
    return [str(heartbeat.status) for heartbeat in batch.heartbeats()]


def assert_one_heartbeat_each(batch: Batch, *, except_for: dict[int, str] | None = None) -> None:
    """Check that each agent has one completed heartbeat, except those whose status is given by their number."""
    expected = [(except_for or {}).get(number, str(HeartbeatStatus.DONE)) for number in range(EIGHT)]
    assert statuses_of(batch) == expected
    for agent, status in zip(batch.agents, expected, strict=True):
        with tenant_transaction(agent.tenant_id):
            count = AgentState.objects.get(agent_id=agent.id).heartbeats
            narratives = Memory.objects.filter(agent_id=agent.id, session="heartbeats").count()
        assert (count, narratives) == ((1, 1) if status == HeartbeatStatus.DONE else (0, 0))
        assert schedule_of(agent).state == ScheduleState.IDLE


def heartbeat_statements(fleet: Fleet, agent: Agent) -> list[str]:
    """Run the agent's next heartbeat, and return its statements."""
    begin_heartbeat(fleet, agent)
    with recorded_statements() as sent:
        fleet.run()
    return sent
