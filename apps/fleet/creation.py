"""Create agents with all their rows in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Lower

from apps.agents.models import Agent, AgentState, RequestedCapability
from apps.agents.services.identity_creation import NewIdentity, create_identities
from apps.agents.services.lookup import valid_name
from apps.agents.services.templates import FoundTemplate, find_template
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.services.grants import grant_actions
from apps.authority.services.trust_tiers import create_tiers
from apps.fleet.policy import create_policy
from apps.goals.services.backlogs import load_backlogs, save_backlogs
from apps.heartbeats.services.schedule import create_schedules
from apps.knowledge.services.active_skills import create_skills
from apps.knowledge.services.subscriptions import create_subscriptions
from apps.memories.services.embedding.embedding import embed_for_storage, embeds_here
from apps.memories.services.embedding.minds import installation_model
from apps.memories.services.store.placement import StoreRequest
from apps.memories.services.store.remember import MemoryWriter
from apps.selves.services.birth import SelfAtBirth, create_selves
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from apps.tenants.services import require_active
from arbor.agents.birth import (
    SOURCES,
    WorkingMemoryDraft,
    first_aspects,
    first_goals,
    first_knowledge,
    first_working_memory,
)
from arbor.agents.identity import KeyPair, generate_key_pair
from arbor.agents.template import MAX_INTERVAL_S
from arbor.errors import AlreadyExists, Invalid
from arbor.goals.backlog import Backlog
from arbor.goals.values import GoalState, NewGoalRequest
from arbor.heartbeat.actions import first_actions
from arbor.models.handles import Handle
from arbor.signals import SignalName, label, signal

SHORTEST_INTERVAL = timedelta(seconds=1)
LONGEST_INTERVAL = timedelta(seconds=MAX_INTERVAL_S)
#: Agents that are created together at most.
MAX_TOGETHER = 100


@dataclass(frozen=True, kw_only=True)
class NewAgent:
    """An agent to create; an empty interval or model defaults as in `create_agents`."""

    name: str
    template_name: str
    interval: timedelta | None = None
    #: `provider/model`.
    model: str = ""


@dataclass(frozen=True, kw_only=True)
class _BuiltAgent:
    """An agent that is not stored yet, with its template, keys and interval."""

    agent: Agent
    template: FoundTemplate
    pair: KeyPair
    interval: timedelta


def create_agent(
    *,
    name: str,
    template_name: str,
    actor: str,
    interval: timedelta | None = None,
    model: str = "",
) -> Agent:
    """Create an agent of the current tenant from a template; see `create_agents`."""
    new_agent = NewAgent(name=name, template_name=template_name, interval=interval, model=model)
    (agent,) = create_agents(new_agents=[new_agent], actor=actor)
    return agent


@transaction.atomic
def create_agents(*, new_agents: Sequence[NewAgent], actor: str) -> list[Agent]:
    """Create agents of the current tenant from templates, all or none; they have no heartbeats before they are started.

    Interval and model (`provider/model`) default to the template's, then the installation's; before the latter comes the tenant's
    default model. Where the embedder is remote, maintenance embeds the agents' first memories later; until then recall finds them
    by their words.

    Raises NotFound for a template, AlreadyExists for a name, Invalid, TransitionIllegal where the tenant is
    suspended, and ConfigurationInvalid without a master key.
    """
    require_active()
    if not 0 < len(new_agents) <= MAX_TOGETHER:
        raise Invalid(f"1 to {MAX_TOGETHER} agents are created together, got {len(new_agents)}")
    templates = {name: find_template(name) for name in {new_agent.template_name for new_agent in new_agents}}
    now = datetime.now(UTC)
    built = [_build_agent(new_agent, templates[new_agent.template_name]) for new_agent in new_agents]
    agents = [made.agent for made in built]
    _store_agents(agents)
    create_identities([NewIdentity(agent=made.agent, pair=made.pair) for made in built], now=now)
    RequestedCapability.objects.bulk_create(
        [row for made in built for row in _requested_capabilities(made.agent, made.template)]
    )
    for template in templates.values():
        of_template = [made.agent for made in built if made.template is template]
        grant_actions(agents=of_template, actions=first_actions(template.spec.actions), actor=actor)
    create_tiers(agents, now=now)
    create_schedules(intervals={made.agent: made.interval for made in built}, now=now)
    for made in built:
        create_policy(made.agent, energy=made.template.spec.energy)
    shortened = _create_minds(built, actor, now)
    for template in templates.values():
        of_template = [made.agent for made in built if made.template is template]
        create_skills(of_template, names=template.spec.skills)
        create_subscriptions(of_template, requests=template.spec.subscriptions, actor=actor)
    for made in built:
        _record(made, shortened[made.agent.id], actor)
    emit(
        *(
            signal(
                SignalName.AGENT_CREATED,
                made.agent.id,
                name=made.agent.name,
                template=label(made.template.name),
                actor=actor,
            )
            for made in built
        )
    )
    return agents


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


def _build_agent(new_agent: NewAgent, template: FoundTemplate) -> _BuiltAgent:
    spec = template.spec
    handle = new_agent.model or spec.metadata.handle
    pair = generate_key_pair()
    agent = Agent(
        tenant_id=current_tenant(),
        public_id=pair.public_id,
        name=valid_name(new_agent.name),
        template_name=template.name,
        template_version=template.version,
        trust_tier=spec.trust_tier,
        character=spec.character.model_dump(mode="json"),
        genome=spec.genome.model_dump(mode="json") if spec.genome else None,
        pipeline=spec.pipeline,
        model=str(Handle.parse_input(handle)) if handle else "",
    )
    return _BuiltAgent(
        agent=agent, template=template, pair=pair, interval=_interval(new_agent.interval, template)
    )


def _store_agents(agents: Sequence[Agent]) -> None:
    """Store the rows of new agents. Raises AlreadyExists for a name that is in use, regardless of case."""
    names = [agent.name.lower() for agent in agents]
    taken = set(
        Agent.objects.annotate(lower=Lower("name")).filter(lower__in=names).values_list("lower", flat=True)
    )
    for position, agent in enumerate(agents):
        if names[position] in taken or names[position] in names[:position]:
            raise AlreadyExists(f"this tenant has an agent {agent.name!r} already; choose another name")
    try:
        with transaction.atomic():
            Agent.objects.bulk_create(agents)
    except IntegrityError as error:
        wanted = " or ".join(repr(agent.name) for agent in agents)
        raise AlreadyExists(f"this tenant has an agent {wanted} already; choose another name") from error


def _record(made: _BuiltAgent, shortened: Sequence[str], actor: str) -> None:
    agent, template = made.agent, made.template
    record(
        action=AuditAction.AGENT_CREATED,
        actor=actor,
        agent_id=agent.id,
        message=f"created {agent.name} from {template.origin} template {template.name} {template.version}",
        detail={
            "public_id": agent.public_id,
            "template": template.name,
            "interval_s": made.interval.total_seconds(),
            "model": agent.model,
            "actions": list(first_actions(template.spec.actions)),
            "shortened": list(shortened),
        },
    )


def _requested_capabilities(agent: Agent, template: FoundTemplate) -> list[RequestedCapability]:
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


def _create_minds(built: Sequence[_BuiltAgent], actor: str, now: datetime) -> dict[UUID, tuple[str, ...]]:
    """Store the agents' first working memories, goals, selves and memories; return the beginnings of shortened texts."""
    minds = {made.agent.id: first_working_memory(made.template.spec, now=now) for made in built}
    AgentState.objects.bulk_create([_state(made.agent, minds[made.agent.id], now) for made in built])
    backlogs = load_backlogs(dict.fromkeys(minds), now=now)
    for made in built:
        _add_goals(backlogs[made.agent.id], made.template)
    save_backlogs(backlogs.values())
    create_selves(
        selves=[
            SelfAtBirth(agent_id=made.agent.id, aspects=first_aspects(made.template.spec)) for made in built
        ],
        actor=actor,
    )
    writer = MemoryWriter()
    writer.place([_first_memories(made, now) for made in built])
    writer.write()
    return {agent_id: mind.shortened for agent_id, mind in minds.items()}


def _first_memories(made: _BuiltAgent, now: datetime) -> StoreRequest:
    memories = first_knowledge(made.template.spec, now=now)
    model = installation_model()
    texts = [memory.content for memory in memories]
    # A vector added later would write the row and all its index entries once more.
    vectors = (
        embed_for_storage(tenant_id=made.agent.tenant_id, texts=texts, model=model)
        if embeds_here(model)
        else None
    )
    return StoreRequest(agent_id=made.agent.id, memories=memories, vectors=vectors, model=model)


def _state(agent: Agent, mind: WorkingMemoryDraft, now: datetime) -> AgentState:
    own = {"agent_id": str(agent.id), "name": agent.name, "started_at": now}
    return AgentState(
        tenant_id=agent.tenant_id,
        agent=agent,
        working_memory=mind.working_memory.model_copy(update=own).model_dump(mode="json"),
    )


def _add_goals(backlog: Backlog, template: FoundTemplate) -> None:
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
