"""A tenant with one row of everything that the console shows."""

from __future__ import annotations

from django.db.models import Model

from apps.agents.models import Agent, AgentEndorsement, AgentKey, RequestedCapability
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.heartbeats.models import HeartbeatStatus
from apps.memories.models import Memory
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Speaker
from tests.factories.access import ApiTokenFactory, IdempotentRequestFactory
from tests.factories.agents import (
    AgentFactory,
    AgentPolicyFactory,
    AgentStateFactory,
    TemplateFactory,
)
from tests.factories.approvals import ActionApprovalFactory
from tests.factories.authority import CapabilityUseFactory
from tests.factories.contacts import (
    ChannelFactory,
    ChatMessageFactory,
    ChatSessionFactory,
    HookDeliveryFactory,
    HookFactory,
    OutboxMessageFactory,
    SignalWebhookFactory,
)
from tests.factories.fleet import SavedSeedFactory
from tests.factories.goals import (
    GoalFactory,
    GoalMemoryLinkFactory,
    IntentFactory,
    PlanFactory,
    PlanStepFactory,
    ProgressNoteFactory,
    SatisfactionFactory,
)
from tests.factories.heartbeats import (
    DailyUsageFactory,
    ExternalCallFactory,
    HeartbeatFactory,
    LedgerEntryFactory,
    MaintenanceCallFactory,
    PerceptFactory,
    ProviderKeyFactory,
    ScheduleFactory,
)
from tests.factories.knowledge import (
    AgentKnowledgeFactory,
    DocumentFactory,
    DocumentVersionFactory,
    PassageFactory,
)
from tests.factories.memories import (
    ActivationFactory,
    BufferItemFactory,
    ClusterFactory,
    ClusterMemberFactory,
    ClusterRelationFactory,
    CodeSnippetFactory,
    ConceptFactory,
    EdgeFactory,
    EpisodeFactory,
    MemoryAccessFactory,
    MemoryConceptFactory,
    MemoryFactory,
    MindFactory,
    NextEmbeddingFactory,
    PinFactory,
    PracticeFactory,
    UpkeepFactory,
)
from tests.factories.selves import (
    BeliefEvidenceFactory,
    BeliefFactory,
    BoundaryFactory,
    ExperienceFactory,
    IdentityAspectFactory,
    PeerModelFactory,
    PreferenceFactory,
    ProposalFactory,
    SelfChangeFactory,
)
from tests.factories.skills import (
    AgentSkillFactory,
    SignalSubscriptionFactory,
    SkillFactory,
    SkillVersionFactory,
)
from tests.factories.tools import ToolFactory, ToolServerFactory
from tests.factories.workflows import (
    WorkflowFactory,
    WorkflowRunFactory,
    WorkflowStepFactory,
    WorkflowVersionFactory,
)
from tests.support.console import World


def make_world(tenant: Tenant, *, text: str = "the river") -> World:
    """Fill a tenant; every field that outsiders can write contains `text`."""
    with tenant_transaction(tenant.id):
        agent = AgentFactory(name=f"Scout {text}", character={"name": text, "description": text})
        CapabilityUseFactory(capability=agent.capabilities.first())
        episode = EpisodeFactory(agent=agent, session=text, summary=text, failure=text)
        memory = MemoryFactory(
            agent=agent,
            content=f"It is about {text}.",
            role=text,
            session=text,
            detail={"by": text},
            episode=episode,
            sequence=1,
        )
        goal = GoalFactory(agent=agent, title=f"Map {text}", description=text, blocked_by=text)
        heartbeat = HeartbeatFactory(
            agent=agent, memory=memory, narrative=text, reasoning=text, reason=text, situation={"name": text}
        )
        actions = [{**action, "reasoning": text, "goal_id": str(goal.id)} for action in heartbeat.actions]
        type(heartbeat).objects.filter(id=heartbeat.id).update(
            actions=actions,
            goal_changes=[{"goal_id": str(goal.id), "kind": "progressed", "change": text}],
            dropped=[{"path": text, "value": text, "reason": text}],
        )
        call = ExternalCallFactory(
            heartbeat=heartbeat,
            reply=f'{{"thinking": "{text.replace(chr(34), "")}"}}',
            error=text,
            sections=[{"name": text, "text": text, "tokens": 9}],
            request={"system": text, "messages": [{"role": "user", "content": text}]},
        )
        world = World(tenant=tenant, agent=agent, heartbeat=heartbeat)
        world.rows += [
            agent,
            AgentStateFactory(
                agent=agent,
                working_memory={
                    "thoughts": [{"text": text, "at": "2026-01-01T00:00:00Z"}],
                    "concerns": [text],
                    "curiosity": [text],
                    "engagement": 0.5,
                },
            ),
            *AgentKey.objects.filter(agent=agent),
            AgentEndorsement.objects.get(agent=agent),
            RequestedCapability.objects.create(
                tenant_id=tenant.id, agent=agent, resource="arbor://fs/read/**", description=text
            ),
            token := ApiTokenFactory(agent=agent, name=text[:100], created_by=text[:200]),
            IdempotentRequestFactory(token=token, key=text[:100]),
            AgentPolicyFactory(agent=agent),
            DailyUsageFactory(agent=agent),
            TemplateFactory(name=f"Template {text}", description=text, source_text=text),
            memory,
            MemoryAccessFactory(memory=memory),
            EdgeFactory(agent=agent, source_id=memory.id, note=text, origin=text),
            episode,
            *_add_maintenance_rows(memory, text),
            BeliefFactory(agent=agent, statement=text, source=text),
            IdentityAspectFactory(agent=agent, content=text, source=text),
            goal,
            ProgressNoteFactory(goal=goal, text=text, heartbeat_id=heartbeat.id),
            IntentFactory(agent=agent, goal=goal, description=text),
            heartbeat,
            call,
            LedgerEntryFactory(call=call),
            LedgerEntryFactory(call=MaintenanceCallFactory(agent=agent, error=text, reply=text)),
            MaintenanceCallFactory(
                agent=agent,
                error=text,
                subject={"episode": str(episode.id)},
                subject_key=f"episode:{episode.id}",
            ),
            MaintenanceCallFactory(
                agent=agent,
                purpose="extract",
                subject={"memories": [str(memory.id)]},
                subject_key=f"memories:{memory.id}",
            ),
            PerceptFactory(agent=agent, content=text),
            PreferenceFactory(agent=agent, key=text[:60], value=text, source=text),
            CodeSnippetFactory(agent=agent, language=text[:40], title=text, code=text, source=text),
            *_add_self(agent, memory, text),
            *_add_plan(agent, goal, memory, text),
            *_add_conversation(agent, text),
            *_add_contacts(agent, text),
            *_add_documents(agent, text),
            *_add_skills(agent, text),
            ActionApprovalFactory(agent=agent, about=text[:200], reasoning=text, why=text[:200]),
            SavedSeedFactory(agent_id=agent.id, name=text[:100], actor=text[:200]),
            ScheduleFactory(agent=agent, last_error=text),
            record(
                action=AuditAction.OPERATOR_ACT,
                actor="user:ann",
                message=text,
                agent_id=agent.id,
                detail={"t": text},
            ),
        ]
        HeartbeatFactory(agent=agent, status=HeartbeatStatus.SKIPPED, number=0, reason=text)
        HeartbeatFactory(agent=agent, status=HeartbeatStatus.WAITING, ended_at=None, narrative="")
    return world


def _add_skills(agent: Agent, text: str) -> list[Model]:
    """Create a skill that the agent follows, and a subscription."""
    version = SkillVersionFactory(text=f"---\nname: lamps\n---\n{text}", created_by=text[:200])
    return [
        version,
        SkillFactory(description=text[:1000], tags=[text], version=text[:40], digest=version.digest),
        AgentSkillFactory(agent=agent),
        SignalSubscriptionFactory(agent=agent, source=agent, names=[text], created_by=text[:200]),
    ]


def _add_plan(agent: Agent, goal: Model, memory: Model, text: str) -> list[Model]:
    """Create rows of a goal: a part, a plan with a step, a linked memory and a satisfaction."""
    plan = PlanFactory(agent=agent, goal=goal, reason=text, dependencies=[text])
    return [
        GoalFactory(agent=agent, parent=goal, title=f"Part of {text}"),
        plan,
        PlanStepFactory(plan=plan, description=text, precondition=text, postcondition=text),
        GoalMemoryLinkFactory(goal=goal, memory=memory),
        SatisfactionFactory(agent=agent, goal=goal),
    ]


def _add_workflow(agent: Agent, text: str) -> list[Model]:
    """Create a workflow with a run whose step waits for a person."""
    workflow = WorkflowFactory(agent=agent, description=text[:500], scheduled_input={"topic": text})
    version = WorkflowVersionFactory(workflow=workflow)
    run = WorkflowRunFactory(version=version, input={"topic": text}, error=text)
    step = WorkflowStepFactory(run=run, agent=agent, input=text, output=text, error=text)
    return [workflow, version, run, step]


def _add_contacts(agent: Agent, text: str) -> list[Model]:
    """Create what connects an agent with others: messages, a channel, hooks, a tool, a workflow and a key of a provider."""
    channel = ChannelFactory(agent=agent, name=text[:60], target=text[:500])
    server = ToolServerFactory(url=text[:500], last_error=text, skipped=[text])
    webhook = SignalWebhookFactory(
        agent=agent, name=text[:60], url=text[:500], signals=[text], last_error=text
    )
    hook = HookFactory(
        agent=agent, name=text[:60], mapping={"title": text[:500]}, events=[text], last_refusal=text[:300]
    )
    return [
        channel,
        webhook,
        hook,
        HookDeliveryFactory(hook=hook, event=text[:200], delivery_id=text[:200], error=text, body=text),
        HookDeliveryFactory(hook=None, webhook=webhook, event=text[:200], status="failed", error=text),
        server,
        ToolFactory(server=server, description=text),
        *_add_workflow(agent, text),
        ProviderKeyFactory(base_url=text[:500], listed=[text]),
        OutboxMessageFactory(agent=agent, subject=text[:300], content=text),
        OutboxMessageFactory(
            agent=agent,
            channel=channel,
            kind="webhook",
            target=text[:500],
            content=text,
            status="failed",
            attempts=8,
            sent_at=None,
            last_error=text,
        ),
    ]


def _add_documents(agent: Agent, text: str) -> list[Model]:
    """Create a document with a version and a passage, an unreadable document, and the categories of the agent."""
    document = DocumentFactory(name=text[:400], title=text[:300], category=text[:60], created_by=text[:200])
    version = DocumentVersionFactory(document=document, created_by=text[:200], text=text)
    PassageFactory(version=version, text=text, headings=[text], category=text[:60])
    failed = DocumentFactory(name=f"{text[:300]}.pdf", kind="pdf", indexing="failed", error=text)
    DocumentVersionFactory(document=failed, kind="pdf", error=text, indexed_at=None)
    return [document, failed, AgentKnowledgeFactory(agent=agent, categories=[text[:60]])]


def _add_self(agent: Agent, memory: Model, text: str) -> list[Model]:
    """Create evidence for a belief, and the rows of the agent's self that are neither beliefs nor aspects."""
    belief = BeliefFactory(agent=agent, statement=f"Not {text}")
    proposal = ProposalFactory(
        agent=agent,
        content=text,
        source=text,
        reason=text,
        decided_by=text,
        change={"aspect": "value", "note": text},
        evidence=[text],
    )
    return [
        BeliefEvidenceFactory(belief=belief, memory=memory),
        BoundaryFactory(
            agent=agent, name=text[:60], description=text, patterns=[text], examples=[text], source=text
        ),
        PeerModelFactory(agent=agent, name=text, interests=[text]),
        ExperienceFactory(agent=agent, about=text, lesson=text),
        proposal,
        SelfChangeFactory(
            agent=agent, before={"t": text}, after={"t": text}, proposal=proposal, decided_by=text
        ),
    ]


def _add_conversation(agent: Agent, text: str) -> list[Model]:
    session = ChatSessionFactory(agent=agent, person=text)
    boundary = {"name": text, "response": text, "why": text, "withheld": False}
    return [
        session,
        ChatMessageFactory(session=session, content=text, detail={"boundaries": [boundary]}),
        ChatMessageFactory(session=session, speaker=Speaker.AGENT, content="", error=text, model=text),
    ]


def _add_maintenance_rows(memory: Memory, text: str) -> list[Model]:
    """Create the rows that maintenance derives from a memory; return the ones that have a page."""
    agent = memory.agent
    near = MemoryFactory(agent=agent, content=f"Near it is {text}.", episode=memory.episode, sequence=2)
    cluster = ClusterFactory(agent=agent, name=f"Cluster {text}", keywords=[text, "ford"])
    other = ClusterFactory(agent=agent, name=f"Other {text}")
    broad = ConceptFactory(agent=agent, name=f"Nature {text}"[:100])
    concept = ConceptFactory(
        agent=agent, name=f"Idea {text}"[:100], description=text, parent=broad, ancestors=[str(broad.id)]
    )
    ClusterMemberFactory(cluster=cluster, memory=memory)
    ClusterRelationFactory(source=cluster, target=other, relation=text[:24])
    MemoryConceptFactory(concept=concept, memory=memory)
    return [
        near,
        cluster,
        other,
        broad,
        concept,
        UpkeepFactory(memory=memory, neighbors={str(near.id): 1.1}, computed_at=memory.occurred_at),
        ActivationFactory(memory=memory),
        NextEmbeddingFactory(memory=memory, embedding_model=text[:100]),
        PinFactory(memory=memory),
        PracticeFactory(memory=memory),
        BufferItemFactory(agent=agent, content=text, source=text, promoted_to=memory),
        MindFactory(agent=agent, embedding_model=text[:100]),
    ]
