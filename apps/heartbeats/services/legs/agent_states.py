"""Write the states of agents at the end of a leg, merged with the changes that others made meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import structlog

from apps.agents.services.state import make_dormant, pack_working_memory, write_states
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.legs.members import LeasedHeartbeat
from apps.tenants.packing import unpack, unpack_text
from apps.tenants.statements import fetch
from arbor.errors import TransitionIllegal
from arbor.heartbeat.state_merge import (
    after_writing,
    merged_amount,
    merged_memory,
    merged_mood,
    merged_stale_heartbeats,
)
from arbor.heartbeat.steps.records import NOPS_TO_DORMANCY, NOPS_TO_WARN
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.values import replace

log = structlog.get_logger(__name__)

#: The bound of ticks and bonus actions, which have none of their own.
_UNBOUNDED = 2**31 - 1

# Conversations and operators may have changed a state while its heartbeat ran: it is read again and merged.
_STATES = """
SELECT agent_id, energy, ticks_left, bonus_actions, mood, stale_heartbeats, nops, working_memory
FROM agents_agentstate WHERE tenant_id = %(tenant)s AND agent_id = ANY(%(agents)s::uuid[])
ORDER BY agent_id FOR UPDATE
"""


def lock_states(members: Sequence[LeasedHeartbeat]) -> dict[UUID, Sequence[Any]]:
    """Lock the states to write, and read their current values.

    Call it before daily usage is counted: conversations lock in this order.
    """
    # A suspended heartbeat without actions writes the state when it ends.
    writing = sorted(
        member.agent.id for member in members if member.ended_as is not None or member.heartbeat.has_acted
    )
    return {agent_id: current for agent_id, *current in fetch(_STATES, agents=writing)} if writing else {}


def write_agent_states(members: Sequence[LeasedHeartbeat], *, states: Mapping[UUID, Sequence[Any]]) -> None:
    """Write the agents' states, merged with changes since the heartbeats began."""
    writing = {member.agent.id: member for member in members if member.agent.id in states}
    if not writing:
        return
    columns = {agent_id: _columns(writing[agent_id], *current) for agent_id, current in states.items()}
    write_states(columns)
    for member in writing.values():
        _rebase_state(member, columns[member.agent.id])
        if member.heartbeat.effects.nop:
            _react_to_nop(member)


def _columns(
    member: LeasedHeartbeat,
    energy: float,
    ticks_left: int,
    bonus_actions: int,
    mood: bytes,
    stale_heartbeats: int,
    nops: int,
    working_memory: bytes,
) -> dict[str, Any]:
    """Return the columns of the agent's state to write, merged with their current values."""
    heartbeat = member.heartbeat
    state, found, moved = heartbeat.state, heartbeat.found, heartbeat.moved
    failed = member.ended_as == HeartbeatStatus.FAILED
    ticks = merged_amount(
        state.ticks_left,
        found=found.ticks_left,
        now=ticks_left,
        most=_UNBOUNDED,
        renewed=found.ticks_renewed,
    )
    if failed and not heartbeat.has_acted:
        # A heartbeat that failed without actions writes its notices, and the ticks of an unusable reply.
        nop = {"nops": nops + 1, "ticks_left": ticks} if heartbeat.effects.nop else {}
        return {"notices": state.notices, **nop}
    columns: dict[str, Any] = {
        "energy": merged_amount(
            state.energy, found=found.energy, now=energy, most=heartbeat.situation.max_energy
        ),
        "ticks_left": ticks,
        "bonus_actions": merged_amount(
            state.bonus_actions, found=found.bonus_actions, now=bonus_actions, most=_UNBOUNDED
        ),
        "mood": merged_mood(
            state.mood,
            found=found.mood,
            now=unpack(mood),
            valence=moved.valence if moved else 0.0,
            arousal=moved.arousal if moved else 0.0,
        ),
        "stale_heartbeats": merged_stale_heartbeats(
            state.stale_heartbeats, found=found.stale_heartbeats, now=stale_heartbeats
        ),
        "drives": state.drives,
        "learned": state.learned,
        "idle_heartbeats": state.idle_heartbeats,
        "notices": state.notices,
        "last_reach_out_at": state.last_reach_out_at,
    }
    if heartbeat.effects.nop:
        columns["nops"] = nops + 1
    afterwards = heartbeat.effects.afterwards
    if afterwards is not None:
        memory = merged_memory(
            afterwards.working_memory,
            now=WorkingMemory.model_validate_json(unpack_text(working_memory)),
            found=heartbeat.situation.working_memory,
            since=heartbeat.situation.environment.now,
        )
        columns |= {
            "heartbeats": afterwards.heartbeats,
            "nops": 0,
            "last_heartbeat_at": heartbeat.now,
            "working_memory": pack_working_memory(memory),
        }
    return columns


def _rebase_state(member: LeasedHeartbeat, written: Mapping[str, Any]) -> None:
    """Set the values just written as the base of the next merge: later differences are changes by others."""
    progress, heartbeat, left = member.progress, member.heartbeat, member.heartbeat.state
    mood = written.get("mood")
    found = after_writing(
        heartbeat.found,
        energy=left.energy,
        ticks_left=left.ticks_left,
        bonus_actions=left.bonus_actions,
        stale_heartbeats=left.stale_heartbeats,
        mood=mood,
    )
    # The mood just written includes the heartbeat's own change.
    own_change: dict[str, Any] = {} if mood is None else {"state": replace(left, mood=mood), "moved": None}
    checkpoint = replace(progress.checkpoint, state=replace(heartbeat, found=found, **own_change))
    member.progress = replace(progress, checkpoint=checkpoint)


def _react_to_nop(member: LeasedHeartbeat) -> None:
    """Warn of unusable replies in a row; make the agent dormant after too many."""
    heartbeat = member.heartbeat
    if heartbeat.effects.dormant:
        # A person may have paused or stopped the agent meanwhile.
        with suppress(TransitionIllegal):
            make_dormant(agent_id=heartbeat.agent_id, reason=heartbeat.effects.dormant)
    elif heartbeat.nops >= NOPS_TO_WARN:
        log.warning(
            "replies_unusable", agent=member.agent.name, in_a_row=heartbeat.nops, dormant_at=NOPS_TO_DORMANCY
        )
