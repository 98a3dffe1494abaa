"""Write the states of several agents by one statement; make an agent dormant."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connections

from apps.agents.models import Agent, AgentState
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.signals.services.emission import emit
from apps.tenants.encoding import to_json
from apps.tenants.packing import in_json, pack, pack_text
from apps.tenants.scope import APP
from apps.tenants.statements import change
from arbor.agents.lifecycle import AgentStatus, LifecycleVerb, transition
from arbor.errors import NotFound
from arbor.heartbeat.working_memory import WorkingMemory, as_stored
from arbor.signals import SignalName, signal

#: Columns that a heartbeat writes.
_COLUMNS = (
    "energy",
    "bonus_actions",
    "ticks_left",
    "drives",
    "mood",
    "learned",
    "stale_heartbeats",
    "idle_heartbeats",
    "notices",
    "last_reach_out_at",
    "heartbeats",
    "nops",
    "last_heartbeat_at",
    "working_memory",
)
#: Columns that are packed here. The working memory comes packed: its length is checked before.
_PACKED = frozenset({"drives", "mood", "learned"})


def pack_working_memory(memory: WorkingMemory) -> str:
    """Pack a working memory for `write_states`. Raises WorkingMemoryOverflow above 64 KB."""
    return in_json(pack_text(as_stored(memory).encode()))


def write_states(columns: Mapping[UUID, Mapping[str, Any]]) -> None:
    """Write columns of agents' states in the open transaction by one statement; None leaves a column unchanged.

    `working_memory` comes from `pack_working_memory`, other JSON columns are values. Raises KeyError for a column that no
    heartbeat writes.
    """
    rows = [
        {
            "agent_id": agent_id,
            **{name: _in_row(name, value) for name, value in changes.items() if value is not None},
        }
        for agent_id, changes in columns.items()
    ]
    if unknown := {name for changes in columns.values() for name in changes} - set(_COLUMNS):
        raise KeyError(f"no heartbeat writes {', '.join(sorted(unknown))}")
    rows = [row for row in rows if len(row) > 1]
    if rows:
        change(_statement(), rows=to_json(rows), agents=[row["agent_id"] for row in rows])


def _in_row(name: str, value: Any) -> Any:
    return in_json(pack(value)) if name in _PACKED else value


@cache
def _statement() -> str:
    connection = connections[APP]
    kinds = {name: AgentState._meta.get_field(name).db_type(connection) for name in _COLUMNS}
    changes = ", ".join(f"{name} = coalesce(r.{name}, s.{name})" for name in _COLUMNS)
    columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    return (
        f"UPDATE agents_agentstate s SET {changes}"  # noqa: S608 (no external input)
        f" FROM json_to_recordset(%(rows)s::json) AS r (agent_id uuid, {columns})"
        # The ids are repeated because the planner expects a hundred rows of JSON, and would read the whole table.
        " WHERE s.tenant_id = %(tenant)s AND s.agent_id = r.agent_id AND s.agent_id = ANY(%(agents)s::uuid[])"
    )


def make_dormant(*, agent_id: UUID, reason: str) -> Agent:
    """Make an agent dormant during its heartbeat; the end of the heartbeat switches off the schedule.

    Raises NotFound for an unknown agent, TransitionIllegal if a person has paused or stopped the agent in the meantime.
    """
    agent: Agent | None = Agent.objects.select_for_update(no_key=True).filter(id=agent_id).first()
    if agent is None:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    agent.status = transition(AgentStatus(agent.status), LifecycleVerb.SLEEP)
    agent.save(update_fields=["status"])
    record(
        action=AuditAction.AGENT_DORMANT,
        actor=f"agent:{agent.public_id}",
        agent_id=agent.id,
        message=f"{agent.name} fell asleep: {reason}",
    )
    emit(signal(SignalName.AGENT_DORMANT, agent.id, name=agent.name, actor=f"agent:{agent.public_id}"))
    return agent
