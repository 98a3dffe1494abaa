"""An agent with all actions allowed, and heartbeats of one action."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.agents.models import Agent, AgentState
from apps.contacts.models import Channel
from apps.memories.models import Memory
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Audience, ChannelKind
from arbor.heartbeat.actions import ACTIONS
from arbor.models.ports import ScriptedModel
from tests.factories.authority import allow
from tests.factories.memories import ClusterFactory, ClusterMemberFactory
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, reply_of, store_fact

type RunReplies = Callable[..., ScriptedModel]


@pytest.fixture
def agent(agent: Agent) -> Agent:
    """Return an agent with all actions allowed, and a public channel."""
    with tenant_transaction(agent.tenant_id):
        allow(agent, *ACTIONS)
        AgentState.objects.filter(agent_id=agent.id).update(energy=10)
        Channel.objects.create(
            tenant_id=agent.tenant_id, name="board", kind=ChannelKind.INBOX, audience=Audience.PUBLIC
        )
    return agent


@pytest.fixture
def run_replies(fleet: Fleet, agent: Agent, scripted: Script) -> RunReplies:
    """Return a function that runs one heartbeat with these replies and then empty ones, and returns its model."""

    def run(*replies: str) -> ScriptedModel:
        model = scripted(*replies, reply_of(), reply_of())
        fleet.claim(agent)
        fleet.run()
        return model

    return run


def store_medium_fact(agent: Agent, text: str) -> str:
    """Store a fact of medium importance; return its id."""
    return store_fact(agent, text, importance=0.5)


def store_cluster(agent: Agent, memory_id: str) -> str:
    """Store a cluster with this memory; return its id."""
    with tenant_transaction(agent.tenant_id):
        cluster = ClusterFactory(agent=agent, name="reef, depth")
        ClusterMemberFactory(cluster=cluster, memory=Memory.objects.get(id=memory_id), strength=0.9)
    return str(cluster.id)
