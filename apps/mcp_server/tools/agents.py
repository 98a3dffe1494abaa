"""List agents, and show the health of the tenant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
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
from arbor.agents.lifecycle import AgentStatus
from arbor.memory.values import MemoryStatus
from arbor.selves.proposals import ProposalStatus

#: The period over which ended heartbeats are counted.
WINDOW = timedelta(hours=24)


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


def list_agents(context: ToolContext) -> AgentList:
    """List the agents whose memory and goals this server gives access to, by name."""
    with caller_transaction(context) as caller:
        agents = served_agents(caller)
        schedules = {
            schedule.agent_id: schedule
            for schedule in HeartbeatSchedule.objects.filter(agent_id__in=[agent.id for agent in agents])
        }
        beats = dict(
            Agent.objects.filter(id__in=[agent.id for agent in agents]).values_list("id", "state__beats")
        )
        return AgentList(
            agents=[_line(agent, schedules.get(agent.id), beats.get(agent.id) or 0) for agent in agents]
        )


def show_health(context: ToolContext) -> TenantHealth:
    """Show whether the tenant's agents and the workers are well: statuses, heartbeats, backlogs."""
    with caller_transaction(context):
        now = datetime.now(UTC)
        statuses = dict(Agent.objects.order_by().values_list("status").annotate(Count("id")))
        ended = dict(
            Heartbeat.objects.filter(started_at__gte=now - WINDOW)
            .order_by()
            .values_list("status")
            .annotate(Count("id"))
        )
        idle = HeartbeatSchedule.objects.filter(state=ScheduleState.IDLE, next_due_at__lt=now)
        active = Memory.objects.filter(status=MemoryStatus.ACTIVE)
        figures = {
            "overdue": idle.exclude(paused_until__gt=now).count(),
            "memories": active.count(),
            "memories_without_vector": active.filter(embedding__isnull=True).count(),
            "pending_proposals": Proposal.objects.filter(status=ProposalStatus.PENDING).count(),
        }
    return TenantHealth(
        agents={status.value: statuses.get(status.value, 0) for status in AgentStatus},
        workers_alive=fleet_is_live(),
        model=fleet_model(),
        heartbeats_24h={status.value: ended.get(status.value, 0) for status in HeartbeatStatus},
        **figures,
    )


def _line(agent: Agent, schedule: HeartbeatSchedule | None, heartbeats: int) -> AgentLine:
    has_heartbeats = schedule is not None and schedule.state != ScheduleState.OFF
    return AgentLine(
        id=agent.id,
        public_id=agent.public_id,
        name=agent.name,
        status=AgentStatus(agent.status),
        role=str(agent.character.get("role", "")),
        heartbeats=heartbeats,
        next_heartbeat_at=schedule.due_at if schedule is not None and has_heartbeats else None,
    )
