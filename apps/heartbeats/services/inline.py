"""Run heartbeats in this process, without workers: one, or a cycle under a budget of ticks (seed 003, 4 and 10.1)."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import NamedTuple
from uuid import UUID

from django.db import connections
from django.db.models import F
from django.db.models.functions import Greatest

from apps.agents.models import AgentState, HeartbeatSchedule, Trigger
from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.calls.calls import execute_call
from apps.heartbeats.services.legs.runner import advance_heartbeat
from apps.heartbeats.services.processes import living_processes
from apps.heartbeats.services.schedule import claim_now, require_claimable
from apps.queues import Queue, Task, TaskMessage, captured, publish
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import AgentNotActive, BudgetExhausted, Invalid, TransitionIllegal
from arbor.heartbeat.results import ActionOutcome
from arbor.quotations import counted
from arbor.runtime import AgentAction, Cycle, Tick

#: The queues whose workers a heartbeat needs.
_NEEDED_QUEUES = frozenset({Queue.HEARTBEAT.value, Queue.LLM.value})
#: Ticks of one cycle at most (seed 003).
MAX_TICKS = 256
#: Seconds that a cycle waits at most for a heartbeat that a worker runs, and between two checks.
WAIT_S = 10.0
POLL_S = 0.1


def fleet_is_live() -> bool:
    """Return whether workers of all queues that heartbeats need are alive."""
    served = {queue for process in living_processes() for queue in process.queues.split(",")}
    return served >= _NEEDED_QUEUES


def run_heartbeat_now(*, agent_id: UUID, tenant_id: UUID, trigger: Trigger = Trigger.OPERATOR) -> Heartbeat:
    """Claim the agent and execute the messages of its heartbeat here until the heartbeat has ended; return it.

    The lease excludes workers that start in the meantime. Raises NotFound, TransitionIllegal if the agent is not active or its
    heartbeat is under way, and RuntimeError inside a transaction, which would stay open during the model call.
    """
    if connections[APP].in_atomic_block:
        raise RuntimeError("a heartbeat must be run outside any transaction, because it opens its own")
    with captured() as messages:
        with tenant_transaction(tenant_id):
            claim_now(agent_id=agent_id, trigger=trigger)
            slot_at = HeartbeatSchedule.objects.values_list("slot_at", flat=True).get(agent_id=agent_id)
        assert slot_at is not None
        for message in messages:  # `captured` appends while the loop runs
            _run(message)
    with tenant_transaction(tenant_id):
        return Heartbeat.objects.get(agent_id=agent_id, slot_at=slot_at)


def _run(message: TaskMessage) -> None:
    arguments = message.arguments
    if message.task is Task.ADVANCE:
        advance_heartbeat(
            agent_id=UUID(arguments["agent_id"]), tenant_id=message.tenant_id, epoch=arguments["epoch"]
        )
    elif message.task is Task.EXECUTE_CALL:
        execute_call(call_id=UUID(arguments["call_id"]), tenant_id=message.tenant_id)
    else:
        publish(message)


class _CycleState(NamedTuple):
    """An agent's ticks, and its count of nops in a row."""

    left: int
    nops: int


def allocate(*, agent_id: UUID, ticks: int, actor: str) -> int:
    """Set an agent's ticks for a cycle; unused ticks of the last one are lost. Raises NotFound, Invalid."""
    if not 0 <= ticks <= MAX_TICKS:
        raise Invalid(f"a cycle has 0 to {MAX_TICKS} ticks, got {ticks}")
    agent = agent_by_id(agent_id)
    AgentState.objects.filter(agent_id=agent_id).update(ticks_left=ticks)
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"gave {agent.name} a cycle of {counted(ticks, 'tick')}",
        detail={"ticks": ticks},
    )
    return ticks


def allocate_cycle(*, agent_id: UUID, ticks: int, actor: str) -> int:
    """Set an agent's ticks for a cycle that runs now.

    Raises the errors of its first heartbeat and of `allocate`, and BudgetExhausted for 0 ticks; the ticks are unchanged then.
    """
    require_claimable(agent_id=agent_id)
    if ticks == 0:
        raise BudgetExhausted(f"a cycle that is run has 1 to {MAX_TICKS} ticks, got 0")
    return allocate(agent_id=agent_id, ticks=ticks, actor=actor)


def run_one_heartbeat(*, agent_id: UUID, tenant_id: UUID, trigger: Trigger = Trigger.OPERATOR) -> Tick:
    """Run one heartbeat in this process. Raises the errors of `run_heartbeat_now`."""
    return tick_of(run_heartbeat_now(agent_id=agent_id, tenant_id=tenant_id, trigger=trigger))


def run_ticks(
    *, agent_id: UUID, tenant_id: UUID, progress: Callable[[Tick, int], None] | None = None
) -> Cycle:
    """Run heartbeats until the agent's ticks are used up, or nothing is left to do.

    An action costs a tick, as does a heartbeat without actions (10.7). A heartbeat that failed before its first action,
    such as for an unreachable model, costs none and ends the cycle. `progress` is called after each heartbeat with the
    ticks left. Raises NotFound, BudgetExhausted for 0 ticks, and the errors of the first heartbeat.
    """
    state = _load_state(agent_id, tenant_id)
    allocated = state.left
    if not allocated:
        raise BudgetExhausted(
            f"agent {agent_id} has no ticks left; allocate some, or give the cycle a budget"
        )
    ticks: list[Tick] = []
    ended = ""
    while state.left and not ended:
        try:
            tick = _run_next(agent_id, tenant_id, wait_s=WAIT_S if ticks else 0.0)
        except TransitionIllegal as error:
            if not ticks:
                raise
            ended = (
                f"{'no longer active' if isinstance(error, AgentNotActive) else 'cannot run now'}: {error}"
            )
            break
        ticks.append(tick)
        if tick.status == HeartbeatStatus.SKIPPED:
            idle = tick.reason.startswith("idle:")
            ended = f"nothing left to do: {tick.reason}" if idle else tick.reason
        else:
            before, state = state, _load_state(agent_id, tenant_id)
            if tick.status == HeartbeatStatus.FAILED and state == before and not tick.actions:
                ended = tick.reason
            else:
                state = _charge(agent_id, tenant_id, before=before, after=state)
        if progress is not None:
            progress(tick, state.left)
    return Cycle(ticks=ticks, allocated=allocated, left=state.left, ended=ended or "used up")


def tick_of(heartbeat: Heartbeat) -> Tick:
    """Convert an ended heartbeat to a Tick."""
    done = [
        AgentAction(
            action=entry["action"],
            params=entry["params"],
            reasoning=entry.get("reasoning", ""),
            outcome=entry["outcome"],
            summary=entry.get("summary", ""),
        )
        for entry in heartbeat.actions
        if entry.get("verdict") == "run" and entry["outcome"] != ActionOutcome.BLOCKED
    ]
    return Tick(
        heartbeat_id=heartbeat.id,
        number=heartbeat.number,
        status=heartbeat.status,
        reason=heartbeat.reason,
        mode=heartbeat.mode,
        narrative=heartbeat.narrative,
        actions=done,
    )


def _run_next(agent_id: UUID, tenant_id: UUID, *, wait_s: float) -> Tick:
    """Run the cycle's next heartbeat; wait up to `wait_s` seconds for one that a worker runs."""
    until = monotonic() + wait_s
    while True:
        try:
            return run_one_heartbeat(agent_id=agent_id, tenant_id=tenant_id, trigger=Trigger.CYCLE)
        except AgentNotActive:
            raise
        except TransitionIllegal:
            if monotonic() >= until:
                raise
        sleep(POLL_S)


def _load_state(agent_id: UUID, tenant_id: UUID) -> _CycleState:
    with tenant_transaction(tenant_id):
        agent_by_id(agent_id)
        return _CycleState(*AgentState.objects.values_list("ticks_left", "nops").get(agent_id=agent_id))


def _charge(agent_id: UUID, tenant_id: UUID, *, before: _CycleState, after: _CycleState) -> _CycleState:
    """Charge a tick for a heartbeat that paid for no action; return the agent's state after it."""
    if after.left < before.left:
        return after
    with tenant_transaction(tenant_id):
        AgentState.objects.filter(agent_id=agent_id).update(ticks_left=Greatest(F("ticks_left") - 1, 0))
    return _load_state(agent_id, tenant_id)
