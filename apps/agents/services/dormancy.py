"""Make an agent dormant: the one change of status that a heartbeat makes by itself."""

from __future__ import annotations

from uuid import UUID

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from arbor.agents.lifecycle import AgentStatus, LifecycleVerb, transition
from arbor.errors import NotFound


def make_dormant(*, agent_id: UUID, reason: str) -> Agent:
    """Make an agent dormant from within its own heartbeat, whose end switches its schedule off.

    Raises TransitionIllegal when a person has paused or stopped it meanwhile.
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
    return agent
