"""Rows for tests. Everything that belongs to a tenant is made inside `tenant_transaction`, in that tenant."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import factory
from django.contrib.auth.hashers import make_password
from django.utils import timezone
from factory.django import DjangoModelFactory
from pgvector import HalfVector

from apps.agents.models import Agent, AgentKey, AgentPolicy, AgentState, Template
from apps.contacts.models import Channel, ChatMessage, ChatSession, OutboxMessage
from apps.goals.models import (
    Goal,
    GoalMemoryLink,
    Intent,
    Plan,
    PlanStep,
    ProgressNote,
    Satisfaction,
)
from apps.heartbeats.models import (
    CallStatus,
    DailyUsage,
    ExternalCall,
    Heartbeat,
    HeartbeatSchedule,
    HeartbeatStatus,
    LedgerEntry,
    Percept,
    PerceptKind,
    Process,
    ScheduleState,
    Trigger,
)
from apps.memories.models import (
    Activation,
    BufferItem,
    Cluster,
    ClusterMember,
    ClusterRelation,
    CodeSnippet,
    Concept,
    Edge,
    Episode,
    Memory,
    MemoryAccess,
    MemoryConcept,
    Mind,
    NextEmbedding,
    Practice,
    Upkeep,
)
from apps.selves.models import (
    Belief,
    BeliefEvidence,
    Boundary,
    Experience,
    IdentityAspect,
    PeerModel,
    Preference,
    Proposal,
    SelfChange,
)
from apps.tenants.models import User
from apps.tenants.scope import OPS, current_tenant
from arbor.agents.lifecycle import AgentStatus
from arbor.contacts.values import Speaker
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import LinkKind
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.ids import uuid7
from arbor.memory.content import content_hash
from arbor.memory.values import MemoryStatus, MemoryType
from arbor.selves.values import AspectKind, BeliefCategory

#: The password of every user made here.
PASSWORD = "correct horse battery staple"


@cache
def _hashed() -> str:
    # A real hash takes its time: one for all.
    return make_password(PASSWORD)


def _ago(minutes: int) -> datetime:
    return timezone.now() - timedelta(minutes=minutes)


class UserFactory(DjangoModelFactory[User]):
    class Meta:
        model = User
        database = OPS
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"person{n}")
    is_staff = True

    @classmethod
    def _create(cls, model_class: Any, *args: Any, **kwargs: Any) -> User:
        user: User = model_class(*args, **kwargs, password=_hashed())
        user.save(using=OPS)
        return user


class TenantRowFactory(DjangoModelFactory[Any]):
    class Meta:
        abstract = True

    tenant_id = factory.LazyFunction(current_tenant)


class TemplateFactory(TenantRowFactory):
    class Meta:
        model = Template

    name = factory.Sequence(lambda n: f"Template {n}")
    version = "1.0.0"
    description = "An archetype."
    source_text = "---\nname: Scout\n---\n"
    spec = factory.LazyFunction(dict)
    content_hash = factory.Sequence(lambda n: hashlib.sha256(str(n).encode()).hexdigest())


class AgentFactory(TenantRowFactory):
    class Meta:
        model = Agent

    name = factory.Sequence(lambda n: f"agent-{n}")
    public_id = factory.LazyAttribute(lambda o: "agent_" + hashlib.sha256(o.name.encode()).hexdigest())
    status = AgentStatus.ACTIVE
    template_name = "Scout"
    template_version = "1.0.0"
    trust_tier = "probationary"
    character = factory.LazyFunction(
        lambda: {
            "name": "Scout",
            "identity": {"role": "Explorer", "background": "Looks where others do not."},
            "voice": {"tone": "curious", "style": "concise"},
        }
    )
    allowed_actions = factory.LazyFunction(lambda: ["recall", "remember", "reflect", "rest"])


class AgentStateFactory(TenantRowFactory):
    class Meta:
        model = AgentState

    agent = factory.SubFactory(AgentFactory)
    energy = 12.0
    beats = 7
    working_memory = factory.LazyFunction(
        lambda: {
            "thoughts": [{"text": "The archive has no index.", "at": timezone.now().isoformat()}],
            "concerns": ["Nobody answered the last question."],
            "curiosity": ["Who wrote the first entry?"],
            "engagement": 0.6,
        }
    )
    last_beat_at = factory.LazyFunction(lambda: _ago(5))


class AgentKeyFactory(TenantRowFactory):
    class Meta:
        model = AgentKey

    agent = factory.SubFactory(AgentFactory)
    public_key = factory.LazyAttribute(lambda o: hashlib.sha256(o.agent.name.encode()).digest())
    sealed_private_key = factory.LazyFunction(
        lambda: {"v": 1, "ct": "Y2lwaGVydGV4dA==", "iv": "aXY=", "tag": "dGFn"}
    )


class ScheduleFactory(TenantRowFactory):
    class Meta:
        model = HeartbeatSchedule

    agent = factory.SubFactory(AgentFactory)
    state = ScheduleState.IDLE
    next_due_at = factory.LazyFunction(lambda: timezone.now() + timedelta(minutes=12))
    interval_s = 3600.0


class MemoryFactory(TenantRowFactory):
    class Meta:
        model = Memory

    agent = factory.SubFactory(AgentFactory)
    type = MemoryType.EPISODIC
    status = MemoryStatus.ACTIVE
    content = factory.Sequence(lambda n: f"On day {n} the river was frozen.")
    content_hash = factory.LazyAttribute(lambda o: hashlib.sha256(o.content.encode()).digest())
    importance = 0.6
    role = "user"
    session = "session-1"
    position = factory.Sequence(int)
    source = "operator"
    occurred_at = factory.LazyFunction(lambda: _ago(60))


class MemoryAccessFactory(TenantRowFactory):
    class Meta:
        model = MemoryAccess

    memory = factory.SubFactory(MemoryFactory)
    count = 3
    last_at = factory.LazyFunction(lambda: _ago(30))


class PracticeFactory(TenantRowFactory):
    class Meta:
        model = Practice

    memory = factory.SubFactory(MemoryFactory, type=MemoryType.PROCEDURAL)
    successes = 3
    failures = 1
    last_at = factory.LazyFunction(lambda: _ago(30))


class MindFactory(TenantRowFactory):
    class Meta:
        model = Mind

    agent = factory.SubFactory(AgentFactory)
    embedding_model = "fake"
    embedding_dimension = 3


class UpkeepFactory(TenantRowFactory):
    class Meta:
        model = Upkeep

    memory = factory.SubFactory(MemoryFactory)
    agent = factory.SelfAttribute("memory.agent")


class ActivationFactory(TenantRowFactory):
    class Meta:
        model = Activation

    memory = factory.SubFactory(MemoryFactory)
    agent = factory.SelfAttribute("memory.agent")
    level = 0.7
    at = factory.LazyFunction(lambda: _ago(3))


class NextEmbeddingFactory(TenantRowFactory):
    class Meta:
        model = NextEmbedding

    memory = factory.SubFactory(MemoryFactory)
    agent = factory.SelfAttribute("memory.agent")
    embedding_model = "fake-2"
    embedding = factory.LazyFunction(lambda: HalfVector([1.0, 0.0, 0.0]))


class EpisodeFactory(TenantRowFactory):
    class Meta:
        model = Episode

    agent = factory.SubFactory(AgentFactory)
    session = factory.Sequence(lambda n: f"session-{n}")
    started_at = factory.LazyFunction(lambda: _ago(90))
    last_at = factory.LazyFunction(lambda: _ago(60))
    ended_at = factory.LazyFunction(lambda: _ago(20))
    size = 2
    summary = "They spoke about the river and its fords."
    summarized_by = "rules"
    summarized_at = factory.LazyFunction(lambda: _ago(10))


class ClusterFactory(TenantRowFactory):
    class Meta:
        model = Cluster

    agent = factory.SubFactory(AgentFactory)
    name = factory.Sequence(lambda n: f"river, ford, ice {n}")
    keywords = factory.LazyFunction(lambda: ["river", "ford", "ice"])
    emotional_valence = 0.3
    emotional_intensity = 0.4
    importance = 0.6
    size = 1
    stale = False
    activations = 2
    activated_at = factory.LazyFunction(lambda: _ago(15))


class ClusterMemberFactory(TenantRowFactory):
    class Meta:
        model = ClusterMember

    cluster = factory.SubFactory(ClusterFactory)
    memory = factory.SubFactory(MemoryFactory, agent=factory.SelfAttribute("..cluster.agent"))
    strength = 0.8


class ClusterRelationFactory(TenantRowFactory):
    class Meta:
        model = ClusterRelation

    source = factory.SubFactory(ClusterFactory)
    target = factory.SubFactory(ClusterFactory, agent=factory.SelfAttribute("..source.agent"))
    relation = "similar"
    strength = 0.75


class ConceptFactory(TenantRowFactory):
    class Meta:
        model = Concept

    agent = factory.SubFactory(AgentFactory)
    name = factory.Sequence(lambda n: f"Water {n}")
    key = factory.LazyAttribute(lambda concept: concept.name.casefold())
    description = "What flows."


class MemoryConceptFactory(TenantRowFactory):
    class Meta:
        model = MemoryConcept

    concept = factory.SubFactory(ConceptFactory)
    memory = factory.SubFactory(MemoryFactory, agent=factory.SelfAttribute("..concept.agent"))
    strength = 0.9


class BufferItemFactory(TenantRowFactory):
    class Meta:
        model = BufferItem

    agent = factory.SubFactory(AgentFactory)
    content = factory.Sequence(lambda n: f"The ferryman coughed {n} times.")
    content_hash = factory.LazyAttribute(lambda o: hashlib.sha256(o.content.encode()).digest())
    source = "operator"
    expires_at = factory.LazyFunction(lambda: timezone.now() + timedelta(hours=1))


class EdgeFactory(TenantRowFactory):
    class Meta:
        model = Edge

    agent = factory.SubFactory(AgentFactory)
    source_kind = "memory"
    source_id = factory.LazyAttribute(lambda edge: MemoryFactory(agent=edge.agent).id)
    target_kind = "memory"
    target_id = factory.LazyAttribute(lambda edge: MemoryFactory(agent=edge.agent).id)
    relation = "associated"


class GoalFactory(TenantRowFactory):
    class Meta:
        model = Goal

    agent = factory.SubFactory(AgentFactory)
    title = factory.Sequence(lambda n: f"Map region {n}")
    description = "Every path is on the map."
    state = GoalState.ACTIVE
    layer = GoalLayer.OBJECTIVE
    source = GoalSource.CURIOSITY
    fraction = 0.4
    touched_at = factory.LazyFunction(lambda: _ago(20))


class ProgressNoteFactory(TenantRowFactory):
    class Meta:
        model = ProgressNote

    goal = factory.SubFactory(GoalFactory)
    text = factory.Sequence(lambda n: f"Found path {n}.")


class IntentFactory(TenantRowFactory):
    class Meta:
        model = Intent

    agent = factory.SubFactory(AgentFactory)
    goal = factory.SubFactory(GoalFactory, agent=factory.SelfAttribute("..agent"))
    action = "recall"
    description = "Recall what is known of the river."
    status = IntentStatus.PENDING


class PlanFactory(TenantRowFactory):
    class Meta:
        model = Plan

    agent = factory.SubFactory(AgentFactory)
    goal = factory.SubFactory(GoalFactory, agent=factory.SelfAttribute("..agent"))
    risk = 0.2
    estimated_ticks = 3


class PlanStepFactory(TenantRowFactory):
    class Meta:
        model = PlanStep

    plan = factory.SubFactory(PlanFactory)
    position = factory.Sequence(lambda n: n + 1)
    action = "recall"
    description = "Recall what is known of the river."


class GoalMemoryLinkFactory(TenantRowFactory):
    class Meta:
        model = GoalMemoryLink

    goal = factory.SubFactory(GoalFactory)
    memory = factory.SubFactory(MemoryFactory, agent=factory.SelfAttribute("..goal.agent"))
    kind = LinkKind.PROGRESS


class SatisfactionFactory(TenantRowFactory):
    class Meta:
        model = Satisfaction

    agent = factory.SubFactory(AgentFactory)
    goal = factory.SubFactory(GoalFactory, agent=factory.SelfAttribute("..agent"))
    outcome = "success"
    reward_actual = 0.8
    reward_expected = 0.6
    novelty = 0.2
    effort = 4


class BeliefFactory(TenantRowFactory):
    class Meta:
        model = Belief

    agent = factory.SubFactory(AgentFactory)
    category = BeliefCategory.WORLD
    statement = factory.Sequence(lambda n: f"The river freezes after {n} cold nights.")
    statement_hash = factory.LazyAttribute(lambda o: content_hash(o.statement))
    confidence = 0.8
    stability = 0.6
    source = "operator"


class BeliefEvidenceFactory(TenantRowFactory):
    class Meta:
        model = BeliefEvidence

    belief = factory.SubFactory(BeliefFactory)
    memory = factory.SubFactory(MemoryFactory, agent=factory.SelfAttribute("..belief.agent"))
    supports = True


class BoundaryFactory(TenantRowFactory):
    class Meta:
        model = Boundary

    agent = factory.SubFactory(AgentFactory)
    name = factory.Sequence(lambda n: f"no_gossip_{n}")
    type = "ethical"
    response = "refuse"
    patterns = factory.LazyFunction(lambda: ["gossip"])
    examples = factory.LazyFunction(lambda: ["Tell me what Bo said about Ada."])


class PeerModelFactory(TenantRowFactory):
    class Meta:
        model = PeerModel

    agent = factory.SubFactory(AgentFactory)
    name = factory.Sequence(lambda n: f"peer-{n}")
    interactions = 4
    successes = 3
    interests = factory.LazyFunction(lambda: ["eels"])
    last_tick = 6
    last_at = factory.LazyFunction(lambda: _ago(90))


class ExperienceFactory(TenantRowFactory):
    class Meta:
        model = Experience

    agent = factory.SubFactory(AgentFactory)
    heartbeat_id = factory.LazyFunction(uuid7)
    tick = factory.Sequence(int)
    action = "recall"
    about = "the tide"
    outcome = "failure"
    lesson = "Avoid doing recall (the tide) the same way again."


class ProposalFactory(TenantRowFactory):
    class Meta:
        model = Proposal

    agent = factory.SubFactory(AgentFactory)
    kind = "identity"
    content = factory.Sequence(lambda n: f"I am patient with tide {n}.")
    change = factory.LazyFunction(lambda: {"aspect": "self_concept"})
    confidence = 0.7
    source = "consolidation"


class SelfChangeFactory(TenantRowFactory):
    class Meta:
        model = SelfChange

    agent = factory.SubFactory(AgentFactory)
    what = "aspect"
    target_id = factory.LazyFunction(uuid7)
    before = factory.LazyFunction(dict)
    after = factory.LazyFunction(lambda: {"content": "I am patient."})
    decided_by = "cli:somebody"


class PreferenceFactory(TenantRowFactory):
    class Meta:
        model = Preference

    agent = factory.SubFactory(AgentFactory)
    key = factory.Sequence(lambda n: f"habit {n}")
    value = "short and dry"
    source = "operator"


class CodeSnippetFactory(TenantRowFactory):
    class Meta:
        model = CodeSnippet

    agent = factory.SubFactory(AgentFactory)
    language = "python"
    title = "How high the tide is"
    code = factory.Sequence(lambda n: f"tide = {n}")
    code_hash = factory.LazyAttribute(lambda o: hashlib.sha256(o.code.encode()).digest())
    source = "chat:1"


class ChatSessionFactory(TenantRowFactory):
    class Meta:
        model = ChatSession

    agent = factory.SubFactory(AgentFactory)
    person = "user:ann"
    started_at = factory.LazyFunction(lambda: _ago(20))
    last_at = factory.LazyFunction(lambda: _ago(15))
    ended_at = factory.LazyFunction(lambda: _ago(10))
    significance = 0.4


class ChatMessageFactory(TenantRowFactory):
    class Meta:
        model = ChatMessage

    session = factory.SubFactory(ChatSessionFactory)
    speaker = Speaker.USER
    content = "Is the river frozen?"
    at = factory.LazyFunction(lambda: _ago(15))


class IdentityAspectFactory(TenantRowFactory):
    class Meta:
        model = IdentityAspect

    agent = factory.SubFactory(AgentFactory)
    kind = AspectKind.PURPOSE
    content = factory.Sequence(lambda n: f"I am there to find ford {n}.")
    content_hash = factory.LazyAttribute(lambda o: content_hash(o.content))
    stability = 0.8
    source = "operator"


def a_step(sequence: int, at: datetime, *, changed: Sequence[str] = ()) -> dict[str, Any]:
    """Return one step of a heartbeat's trace, as its row keeps it."""
    return {
        "sequence": sequence,
        "node": "observe",
        "handler": "observe",
        "phase": "inside",
        "outcome": "success",
        "changed": list(changed),
        "started_at": at.isoformat(),
        "duration_ms": 1.5,
    }


class HeartbeatFactory(TenantRowFactory):
    class Meta:
        model = Heartbeat

    agent = factory.SubFactory(AgentFactory)
    number = factory.Sequence(lambda n: n + 1)
    slot_at = factory.Sequence(lambda n: timezone.now() - timedelta(minutes=5000 - n))
    trigger = Trigger.TIMER
    status = HeartbeatStatus.DONE
    mode = "goal_pursuit"
    epoch = factory.Sequence(lambda n: n + 1)
    energy_start = 10.0
    energy_end = 14.0
    reasoning = "The map is not finished, so I look at what I know of the river."
    actions = factory.LazyFunction(
        lambda: [
            {
                "action": "recall",
                "params": {"query": "the river"},
                "verdict": "run",
                "reason": "",
                "cost": 1,
                "outcome": "success",
                "summary": "2 memories about 'the river'",
            },
            {
                "action": "deploy",
                "params": {},
                "verdict": "not_permitted",
                "reason": "the template does not allow deploy",
                "cost": 0,
                "outcome": "blocked",
                "summary": "not done: the template does not allow deploy",
            },
        ]
    )
    goal_changes = factory.LazyFunction(list)
    dropped = factory.LazyFunction(
        lambda: [{"path": "goal_updates[0].progress", "value": 7, "reason": "progress is 0 to 1, got 7"}]
    )
    narrative = "I recalled the river and noted a new path."
    model = "openai/gpt-5-mini"
    own_ms = 18.4
    trace = factory.LazyAttribute(lambda o: [a_step(1, o.started_at)])
    started_at = factory.LazyAttribute(lambda o: o.slot_at + timedelta(seconds=1))
    ended_at = factory.LazyAttribute(lambda o: o.started_at + timedelta(seconds=2))


class ExternalCallFactory(TenantRowFactory):
    class Meta:
        model = ExternalCall

    agent = factory.SelfAttribute("heartbeat.agent")
    heartbeat = factory.SubFactory(HeartbeatFactory)
    purpose = "think"
    status = CallStatus.COMPLETE
    model = "openai/gpt-5-mini"
    request = factory.LazyFunction(
        lambda: {"purpose": "think", "system": "You are Scout.", "messages": [], "max_tokens": 2048}
    )
    sections = factory.LazyFunction(
        lambda: [
            {"name": "character", "text": "You are Scout.", "tokens": 4},
            {"name": "goals", "text": "1. Map the river.", "tokens": 6},
        ]
    )
    reply = '{"thinking": "The map is not finished."}'
    attempts = 1
    requested_at = factory.LazyAttribute(lambda o: o.heartbeat.started_at)
    started_at = factory.LazyAttribute(lambda o: o.heartbeat.started_at)
    ended_at = factory.LazyAttribute(lambda o: o.heartbeat.started_at + timedelta(milliseconds=900))


class ErrandFactory(TenantRowFactory):
    """A call that maintenance makes."""

    class Meta:
        model = ExternalCall

    agent = factory.SubFactory(AgentFactory)
    purpose = "summarize"
    status = CallStatus.FAILED
    model = "openai/gpt-5-mini"
    subject = factory.LazyFunction(lambda: {"episode": str(uuid7()), "size": 3})
    subject_key = factory.LazyAttribute(lambda o: f"episode:{o.subject['episode']}")
    request = factory.LazyFunction(lambda: {"purpose": "summarize", "system": "Sum up.", "messages": []})
    reply = "I would rather sing."
    error = "expected a JSON object"
    error_kind = "ReplyInvalid"
    attempts = 4
    failures = 4
    requested_at = factory.LazyFunction(lambda: _ago(40))


class LedgerEntryFactory(TenantRowFactory):
    class Meta:
        model = LedgerEntry

    agent = factory.SelfAttribute("call.agent")
    call = factory.SubFactory(ExternalCallFactory)
    purpose = "think"
    provider = "openai"
    model = "gpt-5-mini"
    input_tokens = 1200
    output_tokens = 240
    cost_usd = "0.00078"
    latency_ms = 900.0


class PerceptFactory(TenantRowFactory):
    class Meta:
        model = Percept

    agent = factory.SubFactory(AgentFactory)
    kind = PerceptKind.USER_MESSAGE
    content = "Is the river frozen?"


class ChannelFactory(TenantRowFactory):
    class Meta:
        model = Channel

    name = factory.Sequence(lambda n: f"channel-{n}")
    kind = "webhook"
    audience = "user"
    target = "https://example.org/hook"
    sealed_secret = factory.LazyFunction(
        lambda: {"v": 1, "ct": "Y2lwaGVydGV4dA==", "iv": "aXY=", "tag": "dGFn"}
    )


class OutboxMessageFactory(TenantRowFactory):
    class Meta:
        model = OutboxMessage

    agent = factory.SubFactory(AgentFactory)
    kind = "inbox"
    audience = "user"
    subject = factory.Sequence(lambda n: f"The river, day {n}")
    content = "It froze over night."
    idempotency_key = factory.LazyFunction(lambda: str(uuid7()))
    status = "sent"
    due_at = factory.LazyFunction(lambda: _ago(10))
    sent_at = factory.LazyFunction(lambda: _ago(10))


class AgentPolicyFactory(TenantRowFactory):
    class Meta:
        model = AgentPolicy

    agent = factory.SubFactory(AgentFactory)
    daily_beats = 24


class DailyUsageFactory(TenantRowFactory):
    class Meta:
        model = DailyUsage

    agent = factory.SubFactory(AgentFactory)
    day = factory.LazyFunction(lambda: timezone.now().date())
    beats = 3
    calls = 4
    tokens = 5_200
    cost_usd = "0.0125"


class ProcessFactory(DjangoModelFactory[Process]):
    class Meta:
        model = Process

    name = factory.Sequence(lambda n: f"host:{1000 + n}")
    kind = "worker"
    queues = "heartbeat"
    pool = "prefork"
    concurrency = 2
    started_at = factory.LazyFunction(lambda: _ago(90))
    seen_at = factory.LazyFunction(timezone.now)
