"""Create, list, show, start, pause, stop, publish and destroy agents."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.agents.models import Agent, ScheduleState
from apps.agents.services.lookup import NAME_LENGTH
from apps.agents.services.publication import DESCRIPTION_LENGTH, card_path, publish_agent, unpublish_agent
from apps.api.authentication import ADMINISTER, READ_OWN
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input
from apps.fleet.creation import LONGEST_INTERVAL, create_agent
from apps.fleet.lifecycle import (
    destroy_agent,
    pause_agent,
    resume_agent,
    sleep_agent,
    start_agent,
    stop_agent,
    wake_agent,
)
from apps.fleet.pauses import pause_all_agents, resume_all_agents
from arbor.agents.lifecycle import AgentStatus, LifecycleVerb
from arbor.errors import NotFound

router = Router()

_TRANSITIONS: dict[LifecycleVerb, Callable[..., Agent]] = {
    LifecycleVerb.START: start_agent,
    LifecycleVerb.PAUSE: pause_agent,
    LifecycleVerb.RESUME: resume_agent,
    LifecycleVerb.STOP: stop_agent,
    LifecycleVerb.SLEEP: sleep_agent,
    LifecycleVerb.WAKE: wake_agent,
}


class AgentResource(Schema):
    """An agent."""

    id: UUID
    public_id: str = Field(description="agent_ and the SHA-256 of its first public key.")
    name: str = Field(examples=["Vega"])
    status: AgentStatus
    template: str = Field(description="The template it was created from.", examples=["Scout"])
    template_version: str
    trust_tier: str = Field(description="The tier that its template asks for; `/tier` has its tier now.")
    model: str = Field(description="provider/model; empty: the tenant's default, else the installation's.")
    energy: float
    heartbeats: int = Field(description="Heartbeats that ran to a decision.")
    published: bool = Field(description="Whether agents elsewhere find its card, by the protocol A2A.")
    public_description: str = Field(description="What the card says about it; empty: its role.")
    card_path: str = Field(description="The path of its card, which exists while it is published.")
    interval_s: float = Field(description="Seconds between its heartbeats.")
    due_at: datetime | None = Field(description="The time of its next heartbeat; null: it has none.")
    last_heartbeat_at: datetime | None
    created_at: datetime

    @classmethod
    def of(cls, agent: Agent) -> AgentResource:
        """Return the resource of a row with its state and schedule."""
        return cls(
            id=agent.id,
            public_id=agent.public_id,
            name=agent.name,
            status=AgentStatus(agent.status),
            template=agent.template_name,
            template_version=agent.template_version,
            trust_tier=agent.trust_tier,
            model=agent.model,
            energy=agent.state.energy,
            heartbeats=agent.state.heartbeats,
            published=agent.published,
            public_description=agent.public_description,
            card_path=card_path(agent),
            interval_s=agent.schedule.interval_s,
            due_at=None if agent.schedule.state == ScheduleState.OFF else agent.schedule.due_at,
            last_heartbeat_at=agent.state.last_heartbeat_at,
            created_at=agent.created_at,
        )


class AgentCreation(Input):
    """A request for an agent."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH, examples=["Vega"])]
    template: Annotated[
        str, Field(min_length=1, max_length=100, description="The name of a template.", examples=["Scout"])
    ]
    interval_s: Annotated[
        float | None,
        Field(
            ge=1,
            le=LONGEST_INTERVAL.total_seconds(),
            description="Null: the template's, or the installation's.",
        ),
    ] = None
    model: Annotated[str, Field(max_length=200, description="provider/model; empty: the template's.")] = ""
    start: Annotated[bool, Field(description="Start it at once.")] = False


class Publication(Input):
    """The publication of an agent."""

    description: Annotated[
        str | None,
        Field(
            max_length=DESCRIPTION_LENGTH,
            description="What the card says about the agent; empty: its role; null: as before.",
        ),
    ] = None


class Destruction(Schema):
    """A destroyed agent."""

    id: UUID
    deleted: dict[str, int] = Field(description="The number of deleted rows by kind.")


class PauseInput(Input):
    """The reason of a pause of all agents."""

    reason: Annotated[str, Field(max_length=300, description="For the audit log.")] = ""


class ChangedAgents(Schema):
    """The number of agents whose status changed."""

    changed: int


@router.get("/agents", response=ListPage[AgentResource], auth=READ_OWN, summary="List agents")
def list_agents(
    request: HttpRequest,
    page: Paging,
    name: Annotated[str, Field(max_length=100)] = "",
    status: AgentStatus | None = None,
) -> ListPage[AgentResource]:
    """List the agents of the tenant by name; a token of one agent lists only this agent."""
    rows = _agents()
    own = access_of(request).agent_id
    if own is not None:
        rows = rows.filter(id=own)
    if name:
        rows = rows.filter(name__iexact=name)
    if status is not None:
        rows = rows.filter(status=status)
    return page_of(rows, page, order="name", to_resource=AgentResource.of)


@router.post("/agents", response={201: AgentResource}, summary="Create an agent")
def create(request: HttpRequest, payload: AgentCreation) -> Status[AgentResource]:
    """Create an agent from a template. It has no heartbeats before it is started."""
    actor = access_of(request).actor
    agent = create_agent(
        name=payload.name,
        template_name=payload.template,
        actor=actor,
        interval=timedelta(seconds=payload.interval_s) if payload.interval_s is not None else None,
        model=payload.model,
    )
    if payload.start:
        start_agent(agent_id=agent.id, actor=actor)
    return Status(201, _show(agent.id))


@router.get("/agents/{uuid:agent_id}", response=AgentResource, summary="Show an agent")
def show(request: HttpRequest, agent_id: UUID) -> AgentResource:
    """Show an agent with its state and schedule."""
    return _show(agent_id)


def _add_transition(verb: LifecycleVerb, change: Callable[..., Agent]) -> None:
    """Add the operation that moves an agent to another status."""

    @router.post(
        f"/agents/{{uuid:agent_id}}/{verb}",
        response=AgentResource,
        operation_id=f"{verb}_agent",
        summary=f"{verb.capitalize()} an agent",
        description=f"{verb.capitalize()} an agent. Where its status does not allow that, the answer is 409.",
    )
    def run(request: HttpRequest, agent_id: UUID) -> AgentResource:
        change(agent_id=agent_id, actor=access_of(request).actor)
        return _show(agent_id)


for _verb, _change in _TRANSITIONS.items():
    _add_transition(_verb, _change)


@router.post("/agents/{uuid:agent_id}/publish", response=AgentResource, summary="Publish an agent")
def publish(request: HttpRequest, agent_id: UUID, publication: Publication) -> AgentResource:
    """Publish an agent to agents elsewhere: they find its card without a token, and give it tasks by the protocol A2A."""
    publish_agent(agent_id=agent_id, actor=access_of(request).actor, description=publication.description)
    return _show(agent_id)


@router.post("/agents/{uuid:agent_id}/unpublish", response=AgentResource, summary="Withdraw an agent's card")
def unpublish(request: HttpRequest, agent_id: UUID) -> AgentResource:
    """Withdraw an agent's card; agents elsewhere reach it no longer."""
    unpublish_agent(agent_id=agent_id, actor=access_of(request).actor)
    return _show(agent_id)


@router.post("/pause-agents", response=ChangedAgents, summary="Pause all agents")
def pause_all(request: HttpRequest, pause: PauseInput) -> ChangedAgents:
    """Pause all active agents of the tenant; heartbeats under way end by themselves."""
    return ChangedAgents(changed=pause_all_agents(actor=access_of(request).actor, reason=pause.reason))


@router.post("/resume-agents", response=ChangedAgents, summary="Resume all agents")
def resume_all(request: HttpRequest) -> ChangedAgents:
    """Resume the paused agents of the tenant, except agents that were paused one by one."""
    return ChangedAgents(changed=resume_all_agents(actor=access_of(request).actor))


@router.delete("/agents/{uuid:agent_id}", response=Destruction, auth=ADMINISTER, summary="Destroy an agent")
def destroy(
    request: HttpRequest,
    agent_id: UUID,
    confirm: Annotated[str, Field(max_length=100)],
    seed: Annotated[bool, Field(description="Save a seed of the agent first, for 30 days.")] = True,
) -> Destruction:
    """Delete an agent and all its data, for good. `confirm` is its exact name. The audit of its acts stays."""
    deleted = destroy_agent(
        agent_id=agent_id, confirm=confirm, actor=access_of(request).actor, saves_seed=seed
    )
    return Destruction(id=agent_id, deleted=deleted)


def _agents() -> Any:
    return Agent.objects.select_related("state", "schedule")


def _show(agent_id: UUID) -> AgentResource:
    agent = _agents().filter(id=agent_id).first()
    if agent is None:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    return AgentResource.of(agent)
