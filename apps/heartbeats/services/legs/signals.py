"""The signals of the legs of a batch, as values of the statements that write its heartbeats."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any
from uuid import UUID

from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.legs.members import LeasedHeartbeat
from apps.signals.services.emission import batch_values
from arbor.heartbeat.leg_signals import signals_of_leg
from arbor.heartbeat.state import HeartbeatState
from arbor.signals import Signal, SignalName, signal
from arbor.values import replace


def effect_signals(
    members: Iterable[LeasedHeartbeat], *, agents_at_new_level: Collection[UUID]
) -> list[Signal]:
    """Return the signals of the effects of heartbeats; `agents_at_new_level` are the agents whose budget level has changed."""
    return [
        emitted
        for member in members
        for emitted in signals_of_leg(
            member.checkpoint.state, member.heartbeat, level_changed=member.agent.id in agents_at_new_level
        )
    ]


def end_signals(members: Iterable[LeasedHeartbeat]) -> list[Signal]:
    """Return the signals of the ends of those of the heartbeats that have ended."""
    return [
        end_signal(member, member.ended_as, member.heartbeat)
        for member in members
        if member.ended_as is not None
    ]


def with_heartbeats(signals: Iterable[Signal], members: Iterable[LeasedHeartbeat]) -> list[Signal]:
    """Return the signals, of which those of the members' agents name their heartbeats."""
    heartbeats: dict[UUID | None, UUID] = {member.agent.id: member.heartbeat_id for member in members}
    return [
        replace(emitted, heartbeat_id=heartbeats[emitted.agent_id])
        if emitted.heartbeat_id is None and emitted.agent_id in heartbeats
        else emitted
        for emitted in signals
    ]


def step_signal(member: LeasedHeartbeat) -> Signal:
    """Return the signal of a heartbeat that waits for a model."""
    heartbeat, suspension = member.heartbeat, member.progress.suspension
    assert suspension is not None
    return signal(
        SignalName.HEARTBEAT_STEP,
        member.agent.id,
        member.heartbeat_id,
        mode=heartbeat.mode,
        purpose=suspension.kind,
        round_trip=heartbeat.round_trip,
        steps=len(member.steps),
    )


def end_signal(member: LeasedHeartbeat, status: HeartbeatStatus, heartbeat: HeartbeatState | None) -> Signal:
    """Return the signal of the end of a heartbeat; its state is None if it was not loaded."""
    return signal(
        SignalName.HEARTBEAT,
        member.agent.id,
        member.heartbeat_id,
        status=status.value,
        trigger=member.trigger,
        mode=heartbeat.mode if heartbeat else "",
        number=heartbeat.situation.heartbeat_number if heartbeat and not heartbeat.idle else 0,
        round_trips=heartbeat.round_trips if heartbeat else 0,
        actions=len(heartbeat.whole.action_records) if heartbeat else 0,
        energy=heartbeat.energy_end if heartbeat else None,
    )


def signal_values(
    members: Sequence[LeasedHeartbeat],
    pending: list[Signal],
    *,
    last: Sequence[Signal],
    without_start: Collection[UUID] = (),
) -> dict[str, list[Any]]:
    """Return the parameters of `INSERT_BATCHES` for the signals of the members' agents, each agent's in order.

    Those of the pending signals are removed from `pending`; signals of other members need the ids of their own heartbeats.
    The first leg of a heartbeat begins with its start, unless `without_start` names the agent, and ends with its `last` signal.
    """
    agents = {member.agent.id for member in members}
    own = [emitted for emitted in pending if emitted.agent_id in agents]
    pending[:] = [emitted for emitted in pending if emitted.agent_id not in agents]
    starts = [
        signal(SignalName.HEARTBEAT_STARTED, member.agent.id, member.heartbeat_id, trigger=member.trigger)
        for member in members
        if member.step is None and member.agent.id not in without_start
    ]
    by_agent: dict[UUID | None, list[Signal]] = {}
    for emitted in with_heartbeats(chain(starts, own, last), members):
        by_agent.setdefault(emitted.agent_id, []).append(emitted)
    return batch_values(chain.from_iterable(by_agent.values()))
