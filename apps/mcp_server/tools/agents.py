"""List agents, and show the health of the tenant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated
from uuid import UUID

from django.db.models import Count
from pydantic import Field

from apps.agents.models import Agent, HeartbeatSchedule, ScheduleState
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.inline import fleet_is_live
from apps.heartbeats.services.processes import fleet_model
from apps.mcp_server.callers import ToolContext, caller_transaction, served_agents
from apps.mcp_server.definitions import ToolResult
from apps.memories.models import Memory
from apps.selves.models import Proposal
from apps.tenants.models import Tenant
from arbor.agents.lifecycle import AgentStatus
from arbor.memory.values import MemoryStatus
from arbor.selves.proposals import ProposalStatus

#: Heartbeats that started within this period are counted.
WINDOW = timedelta(hours=24)
#: The most agents of one answer.
MAX_AGENTS = 200


class AgentLine(ToolResult):
    """An agent in a list."""

    id: UUID
    public_id: str
    name: str
    status: AgentStatus
    role: str
    heartbeats: int
    next_heartbeat_at: datetime | None = Field(description="None while the agent has no heartbeats.")


class AgentList(ToolResult):
    """The agents that this server serves."""

    agents: list[AgentLine]
    more: bool = Field(description="Whether there are more agents than these.")


class TenantHealth(ToolResult):
    """The state of the tenant's agents, and of the workers that run them."""

    agents: dict[str, int] = Field(description="Numbers of agents by status.")
    workers_alive: bool = Field(
        description="Whether workers of all queues that heartbeats need report themselves."
    )
    model: str = Field(description="The model of agents without one of their own.")
    heartbeats_24h: dict[str, int] = Field(description="Heartbeats of the last 24 hours by status.")
    overdue: int = Field(description="Agents whose heartbeat is due and was not claimed.")
    memories: int
    memories_without_vector: int = Field(description="Memories that are found by their words alone so far.")
    pending_proposals: int


def list_agents(
    context: ToolContext,
    name: Annotated[str, Field(max_length=100, description="Only agents whose name has this text.")] = "",
    limit: Annotated[int, Field(ge=1, le=MAX_AGENTS)] = 50,
) -> AgentList:
    """List the agents whose memory and goals this server gives access to, by name."""
    with caller_transaction(context) as caller:
        rows = served_agents(caller).select_related("state", "schedule").filter(name__icontains=name)
        agents = list(rows[: limit + 1])
        return AgentList(agents=[_line(agent) for agent in agents[:limit]], more=len(agents) > limit)


def show_health(context: ToolContext) -> TenantHealth:
    """Show whether the agents and the workers are well: statuses, heartbeats of the last day, backlogs."""
    with caller_transaction(context) as caller:
        now, agents = datetime.now(UTC), served_agents(caller).order_by()
        of_agent = {} if caller.only_agent is None else {"agent_id": caller.only_agent}
        recent = Heartbeat.objects.filter(started_at__gte=now - WINDOW, **of_agent).order_by()
        idle = HeartbeatSchedule.objects.filter(state=ScheduleState.IDLE, next_due_at__lt=now, **of_agent)
        active = Memory.objects.filter(status=MemoryStatus.ACTIVE, **of_agent)
        default_model = Tenant.objects.values_list("default_model", flat=True).get(id=caller.tenant_id)
        statuses = dict(agents.values_list("status").annotate(Count("id")))
        heartbeats = dict(recent.values_list("status").annotate(Count("id")))
        figures = {
            "overdue": idle.exclude(paused_until__gt=now).count(),
            "memories": active.count(),
            "memories_without_vector": active.filter(embedding__isnull=True).count(),
            "pending_proposals": Proposal.objects.filter(status=ProposalStatus.PENDING, **of_agent).count(),
        }
    return TenantHealth(
        agents={status.value: statuses.get(status.value, 0) for status in AgentStatus},
        workers_alive=fleet_is_live(),
        model=default_model or fleet_model(),
        heartbeats_24h={status.value: heartbeats.get(status.value, 0) for status in HeartbeatStatus},
        **figures,
    )


def _line(agent: Agent) -> AgentLine:
    schedule: HeartbeatSchedule = agent.schedule
    return AgentLine(
        id=agent.id,
        public_id=agent.public_id,
        name=agent.name,
        status=AgentStatus(agent.status),
        role=str(agent.character.get("role", "")),
        heartbeats=agent.state.heartbeats,
        next_heartbeat_at=None if schedule.state == ScheduleState.OFF else schedule.due_at,
    )
