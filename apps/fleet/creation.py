"""Create an agent with all its rows in one transaction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction

from apps.agents.models import Agent, AgentState, RequestedCapability
from apps.agents.services.identity_creation import NewIdentity, create_identities
from apps.agents.services.profile import valid_name
from apps.agents.services.templates import FoundTemplate, find_template
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.services.grants import grant_actions
from apps.authority.services.trust_tiers import create_tiers
from apps.fleet.policy import create_policy
from apps.goals.services.backlogs import lock_backlog, save_backlog
from apps.heartbeats.services.schedule import create_schedule
from apps.memories.services.store.remember import store
from apps.selves.services.birth import create_self
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from apps.tenants.services import require_active
from arbor.agents.birth import (
    SOURCES,
    first_aspects,
    first_goals,
    first_knowledge,
    first_mind,
)
from arbor.agents.identity import KeyPair, generate_key_pair
from arbor.agents.template import MAX_INTERVAL_S
from arbor.errors import AlreadyExists, Invalid
from arbor.goals.values import GoalState, NewGoalRequest
from arbor.heartbeat.actions import first_actions
from arbor.models.handles import Handle
from arbor.signals import SignalName, label, signal

SHORTEST_INTERVAL = timedelta(seconds=1)
LONGEST_INTERVAL = timedelta(seconds=MAX_INTERVAL_S)


@transaction.atomic
def create_agent(
    *,
    name: str,
    template_name: str,
    actor: str,
    interval: timedelta | None = None,
    model: str = "",
) -> Agent:
    """Create an agent of the current tenant from a template; it has no heartbeats before it is started.

    Interval and model (`provider/model`) default to the template's, then the installation's. Maintenance embeds the agent's
    first memories later; until then recall finds them by their words.

    Raises NotFound for the template, AlreadyExists for the name, Invalid, TransitionIllegal where the tenant is
    suspended, and ConfigurationInvalid without a master key.
    """
    require_active()
    name = valid_name(name)
    template = find_template(template_name)
    beat_every = _interval(interval, template)
    handle = model or template.spec.metadata.handle
    if handle:
        handle = str(Handle.entered(handle))
    now = datetime.now(UTC)
    pair = generate_key_pair()
    agent = _agent(name, template, handle, pair)
    create_identities([NewIdentity(agent=agent, pair=pair)], now=now)
    RequestedCapability.objects.bulk_create(_requests(agent, template))
    actions = first_actions(template.spec.actions)
    grant_actions(agents=[agent], actions=actions, actor=actor)
    create_tiers([agent], now=now)
    create_schedule(agent=agent, interval=beat_every, now=now)
    create_policy(agent, energy=template.spec.energy)
    shortened = _create_mind(agent, template, actor, now)
    record(
        action=AuditAction.AGENT_CREATED,
        actor=actor,
        agent_id=agent.id,
        message=f"created {agent.name} from {template.origin} template {template.name} {template.version}",
        detail={
            "public_id": agent.public_id,
            "template": template.name,
            "interval_s": beat_every.total_seconds(),
            "model": handle,
            "actions": list(actions),
            "shortened": list(shortened),
        },
    )
    emit(
        signal(
            SignalName.AGENT_CREATED,
            agent.id,
            name=agent.name,
            template=label(template.name),
            actor=actor,
        )
    )
    return agent


@transaction.atomic
def ensure_agent(
    *,
    name: str,
    template_name: str,
    actor: str,
    interval: timedelta | None = None,
    model: str = "",
) -> Agent:
    """Return the tenant's agent of this name, and create it as `create_agent` does if there is none.

    An existing agent stays as it is. Raises AlreadyExists if it was created from another template, and what `create_agent` raises.
    """
    existing: Agent | None = Agent.objects.filter(name__iexact=valid_name(name)).first()
    if existing is None:
        return create_agent(
            name=name, template_name=template_name, actor=actor, interval=interval, model=model
        )
    if existing.template_name.casefold() != template_name.strip().casefold():
        raise AlreadyExists(
            f"there is an agent {existing.name!r} already, created from the template {existing.template_name}, not {template_name}"
        )
    return existing


def _interval(wanted: timedelta | None, template: FoundTemplate) -> timedelta:
    if wanted is None and template.spec.heartbeat_interval_s is not None:
        return timedelta(seconds=template.spec.heartbeat_interval_s)
    interval: timedelta = settings.ARBOR_HEARTBEAT_INTERVAL if wanted is None else wanted
    if not SHORTEST_INTERVAL <= interval <= LONGEST_INTERVAL:
        raise Invalid(
            f"a heartbeat's interval is 1 second to {LONGEST_INTERVAL.days} days, got {interval.total_seconds():g} s"
        )
    return interval


def _agent(name: str, template: FoundTemplate, handle: str, pair: KeyPair) -> Agent:
    name_in_use = AlreadyExists(f"this tenant has an agent {name!r} already; choose another name")
    if Agent.objects.filter(name__iexact=name).exists():
        raise name_in_use
    spec = template.spec
    agent = Agent(
        tenant_id=current_tenant(),
        public_id=pair.public_id,
        name=name,
        template_name=template.name,
        template_version=template.version,
        trust_tier=spec.trust_tier,
        character=spec.character.model_dump(mode="json"),
        genome=spec.genome.model_dump(mode="json") if spec.genome else None,
        pipeline=spec.pipeline,
        model=handle,
    )
    try:
        with transaction.atomic():
            agent.save(force_insert=True)
    except IntegrityError as error:
        raise name_in_use from error
    return agent


def _requests(agent: Agent, template: FoundTemplate) -> list[RequestedCapability]:
    return [
        RequestedCapability(
            tenant_id=agent.tenant_id,
            agent=agent,
            resource=request.resource,
            description=request.description,
            constraints=request.constraints,
        )
        for request in template.spec.required_capabilities
    ]


def _create_mind(agent: Agent, template: FoundTemplate, actor: str, now: datetime) -> tuple[str, ...]:
    """Store the agent's first working memory, goals, memories and self; return the beginnings of shortened texts."""
    mind = first_mind(template.spec, now=now)
    own = {"agent_id": str(agent.id), "name": agent.name, "started_at": now}
    AgentState.objects.create(
        tenant_id=agent.tenant_id,
        agent=agent,
        working_memory=mind.working_memory.model_copy(update=own).model_dump(mode="json"),
    )
    backlog = lock_backlog(agent.id, now=now)
    for goal in first_goals(template.spec):
        # The first three goals become active; the backlog queues the rest.
        backlog.add(
            NewGoalRequest(
                title=goal.heading,
                description=goal.description,
                layer=goal.layer,
                type=goal.type,
                priority=goal.priority,
                source=SOURCES[goal.type],
                state=GoalState.ACTIVE,
            )
        )
    save_backlog(backlog)
    create_self(agent_id=agent.id, aspects=first_aspects(template.spec), actor=actor)
    store(agent_id=agent.id, memories=first_knowledge(template.spec, now=now), vectors=None)
    return mind.shortened
