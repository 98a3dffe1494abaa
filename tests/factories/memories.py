"""Memories, the rows that maintenance derives from them, buffer items and code snippets, for tests."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import factory
from django.utils import timezone
from pgvector import HalfVector

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
    Pin,
    Practice,
    Upkeep,
)
from arbor.memory.values import MemoryStatus, MemoryType
from tests.factories.agents import AgentRowFactory
from tests.factories.rows import TenantRowFactory, minutes_ago


class MemoryFactory(AgentRowFactory[Memory]):
    class Meta:
        model = Memory

    type = MemoryType.EPISODIC
    status = MemoryStatus.ACTIVE
    content = factory.Sequence(lambda n: f"On day {n} the river was frozen.")
    content_hash = factory.LazyAttribute(lambda o: hashlib.sha256(o.content.encode()).digest())
    importance = 0.6
    role = "user"
    session = "session-1"
    position = factory.Sequence(int)
    source = "operator"
    occurred_at = factory.LazyFunction(lambda: minutes_ago(60))


class MemoryAccessFactory(TenantRowFactory[MemoryAccess]):
    class Meta:
        model = MemoryAccess

    memory = factory.SubFactory(MemoryFactory)
    count = 3
    last_at = factory.LazyFunction(lambda: minutes_ago(30))


class PinFactory(TenantRowFactory[Pin]):
    class Meta:
        model = Pin

    memory = factory.SubFactory(MemoryFactory)
    agent = factory.SelfAttribute("memory.agent")
    pinned_by = "user:ann"
    decay_rate = 0.01
    retention = "lasting"


class PracticeFactory(TenantRowFactory[Practice]):
    class Meta:
        model = Practice

    memory = factory.SubFactory(MemoryFactory, type=MemoryType.PROCEDURAL)
    successes = 3
    failures = 1
    last_at = factory.LazyFunction(lambda: minutes_ago(30))


class MindFactory(AgentRowFactory[Mind]):
    class Meta:
        model = Mind

    embedding_model = "fake"
    embedding_dimension = 3


class UpkeepFactory(TenantRowFactory[Upkeep]):
    class Meta:
        model = Upkeep

    memory = factory.SubFactory(MemoryFactory)
    agent = factory.SelfAttribute("memory.agent")


class ActivationFactory(TenantRowFactory[Activation]):
    class Meta:
        model = Activation

    memory = factory.SubFactory(MemoryFactory)
    agent = factory.SelfAttribute("memory.agent")
    level = 0.7
    at = factory.LazyFunction(lambda: minutes_ago(3))


class NextEmbeddingFactory(TenantRowFactory[NextEmbedding]):
    class Meta:
        model = NextEmbedding

    memory = factory.SubFactory(MemoryFactory)
    agent = factory.SelfAttribute("memory.agent")
    embedding_model = "fake-2"
    embedding = factory.LazyFunction(lambda: HalfVector([1.0, 0.0, 0.0]))


class EpisodeFactory(AgentRowFactory[Episode]):
    class Meta:
        model = Episode

    session = factory.Sequence(lambda n: f"session-{n}")
    started_at = factory.LazyFunction(lambda: minutes_ago(90))
    last_at = factory.LazyFunction(lambda: minutes_ago(60))
    ended_at = factory.LazyFunction(lambda: minutes_ago(20))
    size = 2
    summary = "They spoke about the river and its fords."
    summarized_by = "rules"
    summarized_at = factory.LazyFunction(lambda: minutes_ago(10))


class ClusterFactory(AgentRowFactory[Cluster]):
    class Meta:
        model = Cluster

    name = factory.Sequence(lambda n: f"river, ford, ice {n}")
    keywords = factory.LazyFunction(lambda: ["river", "ford", "ice"])
    emotional_valence = 0.3
    emotional_intensity = 0.4
    importance = 0.6
    size = 1
    stale = False
    activations = 2
    activated_at = factory.LazyFunction(lambda: minutes_ago(15))


class ClusterMemberFactory(TenantRowFactory[ClusterMember]):
    class Meta:
        model = ClusterMember

    cluster = factory.SubFactory(ClusterFactory)
    memory = factory.SubFactory(MemoryFactory, agent=factory.SelfAttribute("..cluster.agent"))
    strength = 0.8


class ClusterRelationFactory(TenantRowFactory[ClusterRelation]):
    class Meta:
        model = ClusterRelation

    source = factory.SubFactory(ClusterFactory)
    target = factory.SubFactory(ClusterFactory, agent=factory.SelfAttribute("..source.agent"))
    relation = "similar"
    strength = 0.75


class ConceptFactory(AgentRowFactory[Concept]):
    class Meta:
        model = Concept

    name = factory.Sequence(lambda n: f"Water {n}")
    key = factory.LazyAttribute(lambda concept: concept.name.casefold())
    description = "What flows."


class MemoryConceptFactory(TenantRowFactory[MemoryConcept]):
    class Meta:
        model = MemoryConcept

    concept = factory.SubFactory(ConceptFactory)
    memory = factory.SubFactory(MemoryFactory, agent=factory.SelfAttribute("..concept.agent"))
    strength = 0.9


class BufferItemFactory(AgentRowFactory[BufferItem]):
    class Meta:
        model = BufferItem

    content = factory.Sequence(lambda n: f"The ferryman coughed {n} times.")
    content_hash = factory.LazyAttribute(lambda o: hashlib.sha256(o.content.encode()).digest())
    source = "operator"
    expires_at = factory.LazyFunction(lambda: timezone.now() + timedelta(hours=1))


class EdgeFactory(AgentRowFactory[Edge]):
    class Meta:
        model = Edge

    source_kind = "memory"
    source_id = factory.LazyAttribute(lambda edge: MemoryFactory(agent=edge.agent).id)
    target_kind = "memory"
    target_id = factory.LazyAttribute(lambda edge: MemoryFactory(agent=edge.agent).id)
    relation = "associated"


class CodeSnippetFactory(AgentRowFactory[CodeSnippet]):
    class Meta:
        model = CodeSnippet

    language = "python"
    title = "How high the tide is"
    code = factory.Sequence(lambda n: f"tide = {n}")
    code_hash = factory.LazyAttribute(lambda o: hashlib.sha256(o.code.encode()).digest())
    source = "chat:1"
