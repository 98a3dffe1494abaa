"""Cycles: beats run here one after the other, under a budget of ticks (seed 003, 4 and 10.1)."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import NamedTuple
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Greatest

from apps.agents.models import AgentState
from apps.agents.services.profile import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.heartbeats.models import Heartbeat, HeartbeatStatus, Trigger
from apps.heartbeats.services.inline import beat_now
from apps.heartbeats.services.schedule import require_beatable
from apps.tenants.scope import tenant_transaction
from arbor.errors import AgentNotActive, BudgetExhausted, Invalid, TransitionIllegal
from arbor.heartbeat.results import ActionOutcome
from arbor.runtime import ActionTaken, Cycle, Tick

#: The most ticks of one cycle: the origin of seed 003 has 256 in all.
MOST_TICKS = 256
#: How long a cycle waits, in seconds, for a beat that a fleet runs between two of its own, and how often it looks; ours.
WAIT_S = 10.0
LOOK_S = 0.1


class _Standing(NamedTuple):
    """What of an agent's state tells what a beat came to: its ticks, and replies in a row that could not be used."""

    left: int
    nops: int


def allocate(*, agent_id: UUID, ticks: int, actor: str) -> int:
    """Give an agent a cycle's ticks in place of what was left of the last one. Raises NotFound, Invalid."""
    if not 0 <= ticks <= MOST_TICKS:
        raise Invalid(f"a cycle has 0 to {MOST_TICKS} ticks, got {ticks}")
    agent = agent_by_id(agent_id)
    AgentState.objects.filter(agent_id=agent_id).update(ticks_left=ticks)
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"gave {agent.name} a cycle of {ticks} ticks",
        detail={"ticks": ticks},
    )
    return ticks


def give_cycle(*, agent_id: UUID, ticks: int, actor: str) -> int:
    """Give an agent the ticks of a cycle that is to run now.

    Raises what its first beat would, BudgetExhausted for no tick, and what `allocate` raises; the ticks stay as they were
    then.
    """
    require_beatable(agent_id=agent_id)
    if ticks == 0:
        raise BudgetExhausted(f"a cycle that is run has 1 to {MOST_TICKS} ticks, got 0")
    return allocate(agent_id=agent_id, ticks=ticks, actor=actor)


def beat_once(*, agent_id: UUID, tenant_id: UUID, trigger: Trigger = Trigger.OPERATOR) -> Tick:
    """Run one beat in this process. Raises as `inline.beat_now` does."""
    return tick_of(beat_now(agent_id=agent_id, tenant_id=tenant_id, trigger=trigger))


def run_ticks(
    *, agent_id: UUID, tenant_id: UUID, progress: Callable[[Tick, int], None] | None = None
) -> Cycle:
    """Beat until the ticks that the agent has are used up, or nothing is left to do.

    An action costs a tick, and a beat that did nothing costs one too (10.7). One that failed before it did anything, for
    its model is out of reach, costs none, and ends the cycle: the next would fare no better. `progress` is told of each
    beat, with the ticks that are left then. Raises NotFound, BudgetExhausted where there is no tick, and what the first
    beat raises.
    """
    standing = _standing(agent_id, tenant_id)
    allocated = standing.left
    if not allocated:
        raise BudgetExhausted(
            f"agent {agent_id} has no ticks left; allocate some, or give the cycle a budget"
        )
    ticks: list[Tick] = []
    ended = ""
    while standing.left and not ended:
        try:
            made = _beat(agent_id, tenant_id, patience=WAIT_S if ticks else 0.0)
        except TransitionIllegal as error:
            if not ticks:
                raise
            ended = (
                f"{'no longer active' if isinstance(error, AgentNotActive) else 'cannot beat now'}: {error}"
            )
            break
        ticks.append(made)
        if made.status == HeartbeatStatus.SKIPPED:
            idle = made.reason.startswith("idle:")
            ended = f"nothing left to do: {made.reason}" if idle else made.reason
        else:
            before, standing = standing, _standing(agent_id, tenant_id)
            if made.status == HeartbeatStatus.FAILED and standing == before and not made.actions:
                ended = made.reason
            else:
                standing = _charge(agent_id, tenant_id, before=before, after=standing)
        if progress is not None:
            progress(made, standing.left)
    return Cycle(ticks=ticks, allocated=allocated, left=standing.left, ended=ended or "used up")


def tick_of(beat: Heartbeat) -> Tick:
    """Return a heartbeat that has ended as its caller sees it."""
    done = [
        ActionTaken(
            action=entry["action"],
            params=entry["params"],
            reasoning=entry.get("reasoning", ""),
            outcome=entry["outcome"],
            summary=entry.get("summary", ""),
        )
        for entry in beat.actions
        if entry.get("verdict") == "run" and entry["outcome"] != ActionOutcome.BLOCKED
    ]
    return Tick(
        heartbeat_id=beat.id,
        number=beat.number,
        status=beat.status,
        reason=beat.reason,
        mode=beat.mode,
        narrative=beat.narrative,
        actions=done,
    )


def _beat(agent_id: UUID, tenant_id: UUID, *, patience: float) -> Tick:
    """Run the cycle's next beat; one that a fleet runs just now is waited for, so many seconds at most."""
    until = monotonic() + patience
    while True:
        try:
            return beat_once(agent_id=agent_id, tenant_id=tenant_id, trigger=Trigger.CYCLE)
        except AgentNotActive:
            raise
        except TransitionIllegal:
            if monotonic() >= until:
                raise
        sleep(LOOK_S)


def _standing(agent_id: UUID, tenant_id: UUID) -> _Standing:
    with tenant_transaction(tenant_id):
        agent_by_id(agent_id)
        return _Standing(*AgentState.objects.values_list("ticks_left", "nops").get(agent_id=agent_id))


def _charge(agent_id: UUID, tenant_id: UUID, *, before: _Standing, after: _Standing) -> _Standing:
    """Return the standing after a beat; one that paid for nothing pays one tick."""
    if after.left < before.left:
        return after
    with tenant_transaction(tenant_id):
        AgentState.objects.filter(agent_id=agent_id).update(ticks_left=Greatest(F("ticks_left") - 1, 0))
    return _standing(agent_id, tenant_id)
