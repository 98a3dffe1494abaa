"""Run a heartbeat in this process, without workers: for the command line, demos and tests."""

from __future__ import annotations

from uuid import UUID

from django.db import connections

from apps.agents.models import HeartbeatSchedule, Trigger
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.calls.calls import execute_call
from apps.heartbeats.services.legs.runner import advance_heartbeat
from apps.heartbeats.services.processes import living_processes
from apps.heartbeats.services.schedule import claim_now
from apps.queues import Queue, Task, TaskMessage, captured, publish
from apps.tenants.scope import APP, tenant_transaction

#: The queues that a heartbeat needs to end.
_NEEDED = frozenset({Queue.HEARTBEAT.value, Queue.LLM.value})


def fleet_is_live() -> bool:
    """Return whether workers of all queues that heartbeats need are alive."""
    served = {queue for process in living_processes() for queue in process.queues.split(",")}
    return served >= _NEEDED


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
