"""Cycles: beats run here one after the other, under a budget of ticks (seed 003, 4 and 10.1)."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Greatest

from apps.agents.models import AgentState
from apps.agents.services.profile import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.heartbeats.models import Heartbeat, HeartbeatStatus, Trigger
from apps.heartbeats.services.inline import beat_now
from apps.tenants.scope import tenant_transaction
from arbor.errors import AgentNotActive, BudgetExhausted, Invalid
from arbor.heartbeat.results import ActionOutcome
from arbor.runtime import ActionTaken, Cycle, Tick

#: The most ticks of one cycle: the origin of seed 003 has 256 in all.
MOST_TICKS = 256


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


def beat_once(*, agent_id: UUID, tenant_id: UUID, trigger: Trigger = Trigger.OPERATOR) -> Tick:
    """Run one beat in this process. Raises as `inline.beat_now` does."""
    return tick_of(beat_now(agent_id=agent_id, tenant_id=tenant_id, trigger=trigger))


def run_ticks(
    *, agent_id: UUID, tenant_id: UUID, progress: Callable[[Tick, int], None] | None = None
) -> Cycle:
    """Beat until the ticks that the agent has are used up, or nothing is left to do.

    An action costs a tick, and a beat that did nothing costs one too (10.7). `progress` is told of each beat, with the
    ticks that are left then. Raises NotFound, BudgetExhausted where there is no tick, and what the first beat raises.
    """
    allocated = left = _left(agent_id, tenant_id)
    if not left:
        raise BudgetExhausted(
            f"agent {agent_id} has no ticks left; allocate some, or give the cycle a budget"
        )
    ticks: list[Tick] = []
    ended = ""
    while left and not ended:
        try:
            made = beat_once(agent_id=agent_id, tenant_id=tenant_id, trigger=Trigger.CYCLE)
        except AgentNotActive as error:
            if not ticks:
                raise
            ended = f"no longer active: {error}"
            break
        ticks.append(made)
        if made.status == HeartbeatStatus.SKIPPED:
            idle = made.reason.startswith("idle:")
            ended = f"nothing left to do: {made.reason}" if idle else made.reason
        else:
            left = _charge(agent_id, tenant_id, before=left)
        if progress is not None:
            progress(made, left)
    return Cycle(ticks=ticks, allocated=allocated, left=left, ended=ended or "used up")


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


def _left(agent_id: UUID, tenant_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        agent_by_id(agent_id)
        left: int = AgentState.objects.values_list("ticks_left", flat=True).get(agent_id=agent_id)
    return left


def _charge(agent_id: UUID, tenant_id: UUID, *, before: int) -> int:
    """Return what is left after a beat; one that paid for nothing pays one tick."""
    left = _left(agent_id, tenant_id)
    if left < before:
        return left
    with tenant_transaction(tenant_id):
        AgentState.objects.filter(agent_id=agent_id).update(ticks_left=Greatest(F("ticks_left") - 1, 0))
    return _left(agent_id, tenant_id)
