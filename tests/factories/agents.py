"""Agents and templates for tests."""

from __future__ import annotations

import hashlib
from typing import Any

import factory
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db.models import Model
from django.utils import timezone

from apps.agents.models import Agent, AgentPolicy, AgentState, Template
from apps.agents.services.identity_creation import NewIdentity, create_identities
from apps.authority.services.grants import grant_actions
from arbor.agents.identity import KeyPair, PrivateKey
from arbor.agents.lifecycle import AgentStatus
from tests.factories.rows import TenantRowFactory, minutes_ago


def key_pair(name: str) -> KeyPair:
    """Return the key pair of an agent, derived from its name."""
    private = PrivateKey(raw=hashlib.sha256(name.encode()).digest())
    public = Ed25519PrivateKey.from_private_bytes(private.raw).public_key().public_bytes_raw()
    return KeyPair(public=public, private=private)


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
    public_id = factory.LazyAttribute(lambda o: key_pair(o.name).public_id)
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
    #: Granted, not a column.
    allowed_actions = factory.LazyFunction(lambda: ["recall", "remember", "reflect", "rest"])

    @classmethod
    def _create(cls, model_class: type[Agent], *args: Any, **fields: Any) -> Agent:
        actions = fields.pop("allowed_actions")
        agent: Agent = super()._create(model_class, *args, **fields)  # type: ignore[no-untyped-call]  # of factory-boy
        pair = key_pair(agent.name)
        if agent.public_id == pair.public_id:
            create_identities([NewIdentity(agent=agent, pair=pair)], now=timezone.now())
        grant_actions(agents=[agent], actions=actions, actor="test")
        return agent


class AgentRowFactory[M: Model](TenantRowFactory[M]):
    class Meta:
        abstract = True

    agent = factory.SubFactory(AgentFactory)


class AgentStateFactory(AgentRowFactory[AgentState]):
    class Meta:
        model = AgentState

    energy = 12.0
    heartbeats = 7
    working_memory = factory.LazyFunction(
        lambda: {
            "thoughts": [{"text": "The archive has no index.", "at": timezone.now().isoformat()}],
            "concerns": ["Nobody answered the last question."],
            "curiosity": ["Who wrote the first entry?"],
            "engagement": 0.6,
        }
    )
    last_heartbeat_at = factory.LazyFunction(lambda: minutes_ago(5))


class AgentPolicyFactory(AgentRowFactory[AgentPolicy]):
    class Meta:
        model = AgentPolicy

    daily_heartbeats = 24
