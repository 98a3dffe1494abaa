"""Agents and templates for tests."""

from __future__ import annotations

import hashlib

import factory
from django.utils import timezone

from apps.agents.models import Agent, AgentKey, AgentPolicy, AgentState, Template
from arbor.agents.lifecycle import AgentStatus
from tests.factories.rows import TenantRowFactory, minutes_ago


class TemplateFactory(TenantRowFactory[Template]):
    class Meta:
        model = Template

    name = factory.Sequence(lambda n: f"Template {n}")
    version = "1.0.0"
    description = "An archetype."
    source_text = "---\nname: Scout\n---\n"
    spec = factory.LazyFunction(dict)
    content_hash = factory.Sequence(lambda n: hashlib.sha256(str(n).encode()).hexdigest())


class AgentFactory(TenantRowFactory[Agent]):
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


class AgentStateFactory(TenantRowFactory[AgentState]):
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
    last_beat_at = factory.LazyFunction(lambda: minutes_ago(5))


class AgentKeyFactory(TenantRowFactory[AgentKey]):
    class Meta:
        model = AgentKey

    agent = factory.SubFactory(AgentFactory)
    public_key = factory.LazyAttribute(lambda o: hashlib.sha256(o.agent.name.encode()).digest())
    sealed_private_key = factory.LazyFunction(
        lambda: {"v": 1, "ct": "Y2lwaGVydGV4dA==", "iv": "aXY=", "tag": "dGFn"}
    )


class AgentPolicyFactory(TenantRowFactory[AgentPolicy]):
    class Meta:
        model = AgentPolicy

    agent = factory.SubFactory(AgentFactory)
    daily_beats = 24
