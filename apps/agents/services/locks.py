"""Lock agents in the order that all writers follow (docs/architecture.md, "Locks")."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from apps.agents.models import Agent, HeartbeatSchedule
from arbor.errors import NotFound


def lock_schedule(agent_id: UUID) -> None:
    """Lock an agent's schedule until the transaction ends, as its heartbeats do; nothing for an agent without one.

    A transaction that locks several things of an agent calls this first: heartbeats lock them in the order of their actions.
    """
    list(HeartbeatSchedule.objects.select_for_update().filter(agent_id=agent_id).values_list("epoch"))


def lock_schedules(agent_ids: Collection[UUID]) -> None:
    """Lock the schedules of several agents, in the order of ids, as batches of heartbeats do."""
    schedules = HeartbeatSchedule.objects.select_for_update().filter(agent_id__in=agent_ids)
    list(schedules.order_by("agent_id").values_list("epoch"))


def lock_agent(agent_id: UUID) -> Agent:
    """Lock the agent's schedule, then the agent, in the order of heartbeats, to avoid deadlocks; raise NotFound.

    A heartbeat that ends at this moment then sees the new status, and leaves the schedule as it is.
    """
    lock_schedule(agent_id)
    agent: Agent | None = Agent.objects.select_for_update(no_key=True).filter(id=agent_id).first()
    if agent is None:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    return agent


def lock_agent_row(agent_id: UUID) -> None:
    """Lock an agent until the transaction ends, so that concurrent additions to it wait for each other. Raises NotFound."""
    if not Agent.objects.select_for_update(no_key=True).filter(id=agent_id).values_list("id"):
        raise NotFound(f"there is no agent {agent_id} in this tenant")
