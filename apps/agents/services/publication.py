"""Publish agents: agents elsewhere then find their cards and give them tasks."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from apps.agents.models import Agent
from apps.agents.services.locks import lock_agent_row
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.signals.services.emission import emit
from apps.tenants.models import TenantStatus
from arbor.errors import Invalid
from arbor.signals import SignalName, signal

DESCRIPTION_LENGTH = 500


@transaction.atomic
def publish_agent(*, agent_id: UUID, actor: str, description: str | None = None) -> Agent:
    """Publish an agent, or change the description on its card; None leaves the description as it is.

    Raises NotFound, and Invalid for the description.
    """
    lock_agent_row(agent_id)
    agent: Agent = Agent.objects.get(id=agent_id)
    described = agent.public_description if description is None else _valid_description(description)
    if agent.published and described == agent.public_description:
        return agent
    message = (
        f"changed the public description of {agent.name}"
        if agent.published
        else f"published {agent.name} to agents elsewhere"
    )
    agent.published, agent.public_description = True, described
    agent.save(update_fields=["published", "public_description"])
    _record(agent, message, actor=actor)
    return agent


@transaction.atomic
def unpublish_agent(*, agent_id: UUID, actor: str) -> Agent:
    """Withdraw an agent's card; agents elsewhere reach it no longer. Raises NotFound."""
    lock_agent_row(agent_id)
    agent: Agent = Agent.objects.get(id=agent_id)
    if not agent.published:
        return agent
    agent.published = False
    agent.save(update_fields=["published"])
    _record(agent, f"withdrew {agent.name} from agents elsewhere", actor=actor)
    return agent


def published_agent(agent_id: UUID) -> Agent | None:
    """Return a published agent of the current tenant, unless the tenant is suspended."""
    agent: Agent | None = Agent.objects.filter(
        id=agent_id, published=True, tenant__status=TenantStatus.ACTIVE
    ).first()
    return agent


def a2a_path(agent: Agent) -> str:
    """Return the path of an agent's endpoint below the API's address, by the Agent2Agent protocol.

    It names the tenant, so that a published card is found under row-level security, without a token.
    """
    return f"/a2a/{agent.tenant_id}/{agent.id}"


def card_path(agent: Agent) -> str:
    """Return the path of an agent's card below the API's address."""
    return f"{a2a_path(agent)}/.well-known/agent-card.json"


def _valid_description(text: str) -> str:
    text = " ".join(text.split())
    if len(text) > DESCRIPTION_LENGTH:
        raise Invalid(f"a public description has at most {DESCRIPTION_LENGTH} characters, got {len(text):,}")
    if not text.isprintable():
        raise Invalid("a public description has printable characters only")
    return text


def _record(agent: Agent, message: str, *, actor: str) -> None:
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent.id,
        message=message,
        detail={"published": agent.published, "description": agent.public_description},
    )
    name = SignalName.AGENT_PUBLISHED if agent.published else SignalName.AGENT_UNPUBLISHED
    emit(signal(name, agent.id, name=agent.name, actor=actor))
