"""Agents as rows of a list, and one agent in full."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from apps.agents.models import Agent, HeartbeatSchedule, Percept, ScheduleState
from apps.agents.services.energy import energy_terms_of
from apps.agents.services.lookup import agent_by_id, genome_of, own_model
from apps.authority.services.explanations import action_names
from apps.calls.services.usage import used_today
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.processes import fleet_model
from apps.heartbeats.services.reports.status import day_figures
from apps.heartbeats.services.situations.goal_situation import goal_views
from apps.memories.models import Memory
from apps.selves.services.self_knowledge import system_prompt_of
from arbor.agents.lifecycle import AgentStatus
from arbor.clock import SystemClock
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.quotations import counted
from arbor.workflows.durations import format_duration
from config.cli.agents.trace import model_line
from config.cli.kit.columns import OutputColumn, row_to_dict
from config.cli.kit.output import format_relative_time, stamp, table
from config.cli.kit.tenancy import tenant_or_all

_COLORS = {
    AgentStatus.ACTIVE: "green",
    AgentStatus.PAUSED: "yellow",
    AgentStatus.DORMANT: "magenta",
    AgentStatus.STOPPED: "red",
    AgentStatus.CREATED: "cyan",
}


def agents_of(tenant_slug: str | None) -> list[Agent]:
    """Return the agents of the named tenant, the default one, or all tenants, with their state, schedule and model."""
    with tenant_or_all(tenant_slug, reason="list of agents"):
        return _load_agents()


def _load_agents() -> list[Agent]:
    agents = list(
        Agent.objects.select_related("state", "schedule", "tenant").order_by("tenant__slug", "name")
    )
    # Read once, for all agents without a model of their own.
    model = fleet_model()
    for agent in agents:
        agent.model = own_model(agent) or model
    return agents


def agent_value(agent: Agent) -> dict[str, Any]:
    """Return an agent as a row of a list, for JSON."""
    return row_to_dict(agent, AGENT_COLUMNS)


def _next(agent: Agent) -> str:
    schedule: HeartbeatSchedule = agent.schedule
    if schedule.state == ScheduleState.OFF:
        return "-"
    if schedule.state != ScheduleState.IDLE:
        return f"{schedule.state} now"
    return format_relative_time(schedule.due_at)


def _next_due_at(agent: Agent) -> str | None:
    schedule: HeartbeatSchedule = agent.schedule
    return None if schedule.state == ScheduleState.OFF else stamp(schedule.due_at)


AGENT_COLUMNS = (
    OutputColumn("name", "agent"),
    OutputColumn("tenant", "tenant", value=lambda agent: agent.tenant.slug),
    OutputColumn("status", "status"),
    OutputColumn("template", "template", value=lambda agent: agent.template_name),
    OutputColumn(
        "energy", "energy", value=lambda agent: agent.state.energy, cell=lambda energy: f"{energy:g}"
    ),
    OutputColumn("heartbeats", "heartbeats", value=lambda agent: agent.state.heartbeats),
    OutputColumn(head="last", value=lambda agent: format_relative_time(agent.state.last_heartbeat_at)),
    OutputColumn(head="next", value=_next),
    OutputColumn("model", "model", value=lambda agent: own_model(agent) or fleet_model()),
    OutputColumn("id", value=lambda agent: str(agent.id)),
    *(OutputColumn(key) for key in ("public_id", "template_version", "trust_tier", "published")),
    OutputColumn("last_heartbeat_at", value=lambda agent: stamp(agent.state.last_heartbeat_at)),
    OutputColumn("schedule", value=lambda agent: agent.schedule.state),
    OutputColumn("interval_s", value=lambda agent: agent.schedule.interval_s),
    OutputColumn("next_due_at", value=_next_due_at),
)


def agent_details(agent_id: UUID, *, prompt: bool) -> dict[str, Any]:
    """Return an agent with its state, goals and counts, for JSON. Inside the tenant's transaction."""
    agent = agent_by_id(agent_id)
    genome = genome_of(agent)
    goals = goal_views(agent_id=agent_id, traits=genome.traits if genome else None, now=SystemClock().now())
    heartbeats = Heartbeat.objects.filter(agent_id=agent_id)
    figures = day_figures(agent_id)
    details = agent_value(agent) | {
        "max_energy": energy_terms_of(agent).maximum,
        "role": agent.character.get("role", ""),
        "public_description": agent.public_description,
        "genome": agent.genome,
        "allowed_actions": action_names(agent_id),
        "own_pipeline": bool(agent.pipeline),
        "created_at": stamp(agent.created_at),
        "nops": agent.state.nops,
        "idle_heartbeats": agent.state.idle_heartbeats,
        "notices": agent.state.notices,
        "used_today": used_today(agent_id),
        "energy_delta_24h": figures.energy_delta,
        "reach_outs_24h": figures.reach_outs,
        "last_error": agent.schedule.last_error,
        "last_user_contact_at": stamp(agent.state.last_user_contact_at),
        "waiting_messages": Percept.objects.filter(agent_id=agent_id, heartbeat__isnull=True).count(),
        "heartbeats_by_status": dict(
            heartbeats.values_list("status").annotate(Count("id")).order_by("status")
        ),
        "memories": dict(
            Memory.objects.filter(agent_id=agent_id)
            .values_list("type")
            .annotate(Count("id"))
            .order_by("type")
        ),
        "goals": [goal.model_dump(mode="json") for goal in goals],
        "working_memory": WorkingMemory.model_validate(agent.state.working_memory).model_dump(mode="json"),
    }
    return {**details, "system_prompt": system_prompt_of(agent)} if prompt else details


def render_agent(details: dict[str, Any]) -> RenderableType:
    """Return an agent for a terminal."""
    working_memory = details["working_memory"]
    parts: list[RenderableType] = [_head(details)]
    if details["notices"]:
        notices = "\n".join(f"  [yellow]{escape(notice['text'])}[/yellow]" for notice in details["notices"])
        parts.append(_with_title("Noticed", notices))
    goals = ((goal["state"], f"{goal['fraction']:.0%}", goal["title"]) for goal in details["goals"])
    parts.append(
        _with_title("Goals", table(("state", "done", "goal"), goals) if details["goals"] else "  none")
    )
    for title, lines in (
        ("Thoughts", [thought["text"] for thought in working_memory["thoughts"]]),
        ("Concerns", working_memory["concerns"]),
        ("Curious about", working_memory["curiosity"]),
    ):
        if lines:
            parts.append(_with_title(title, "\n".join(f"  {escape(line)}" for line in lines)))
    if "system_prompt" in details:
        parts.append(_with_title("Character, as prompts have it", escape(details["system_prompt"])))
    return Group(*parts)


def _head(details: dict[str, Any]) -> Text:
    color = _COLORS[AgentStatus(details["status"])]
    memories = ", ".join(f"{count} {kind}" for kind, count in details["memories"].items()) or "none"
    heartbeats = (
        ", ".join(f"{count} {status}" for status, count in details["heartbeats_by_status"].items())
        or "none yet"
    )
    every = format_duration(timedelta(seconds=details["interval_s"]))
    lines = [
        f"[bold]{escape(details['name'])}[/bold] of {details['tenant']}: [{color}]{details['status']}[/{color}]"
        f", {escape(details['template'])} {escape(details['template_version'])}, {details['trust_tier']}",
        f"  {details['public_id']}{', published' if details['published'] else ''}",
        f"  energy {details['energy']:g} of {details['max_energy']:g} · a heartbeat every {every}, the next {_when(details['next_due_at'])}",
        f"  heartbeats: {heartbeats} · memories: {memories} · waiting messages: {details['waiting_messages']}",
        f"  {model_line(details['model'])} · may {', '.join(details['allowed_actions'])}",
    ]
    used = details["used_today"]
    lines.append(
        f"  today: {counted(used['heartbeats'], 'heartbeat')}, {counted(used['tokens'], 'token')}, ${used['usd']}; budget: {used['level'].replace('_', ' ')}"
    )
    delta = details["energy_delta_24h"]
    lines.append(
        f"  last 24 h: {'no energy used' if delta is None else f'{delta:+g} energy a heartbeat'},"
        f" {counted(details['reach_outs_24h'], 'message')} sent"
    )
    if details["last_error"]:
        lines.append(f"  [red]last failure: {escape(details['last_error'])}[/red]")
    return Text.from_markup("\n".join(lines))


def _when(due: str | None) -> str:
    return format_relative_time(datetime.fromisoformat(due)) if due else "-"


def _with_title(title: str, body: RenderableType) -> RenderableType:
    return Group(Text.from_markup(f"\n[bold]{title}[/bold]"), body)
