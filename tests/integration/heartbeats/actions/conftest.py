"""An agent with all actions allowed, and heartbeats of one action."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from apps.agents.models import Agent, AgentState
from apps.contacts.models import Channel
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.schedule import claim_now
from apps.memories.models import Cluster, ClusterMember
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.clock import SystemClock
from arbor.contacts.values import Audience, ChannelKind
from arbor.heartbeat.actions import ACTIONS
from arbor.memory.values import MemoryType, NewMemory
from arbor.models.ports import ScriptedModel
from tests.factories.authority import allow
from tests.integration.heartbeats.conftest import last_heartbeat
from tests.integration.heartbeats.fleet import Fleet

type Script = Callable[..., ScriptedModel]
type RunReplies = Callable[..., ScriptedModel]


def reply(*actions: dict[str, Any]) -> str:
    """Return a reply with these actions."""
    return json.dumps({"thinking": "", "actions": list(actions), "memory_notes": [], "goal_updates": []})


def act(name: str, **params: Any) -> dict[str, Any]:
    """Return an action as a model writes it."""
    return {"action": name, "params": params, "reasoning": "because"}


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
def run_replies(fleet: Fleet, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch) -> RunReplies:
    """Return a function that runs one heartbeat with an action, and a further turn that rests."""

    def run(*replies: str) -> ScriptedModel:
        model = scripted(*replies, reply(), reply())
        with tenant_transaction(agent.tenant_id):
            claim_now(agent_id=agent.id)
        fleet.run()
        return model

    return run


def outcome_of(agent: Agent) -> dict[str, Any]:
    last = last_heartbeat(agent)
    assert last.status == HeartbeatStatus.DONE, last.reason
    action: dict[str, Any] = last.actions[0]
    return action


def memory_of(agent: Agent, text: str, kind: MemoryType = MemoryType.SEMANTIC) -> str:
    memory = NewMemory(content=text, occurred_at=SystemClock().now(), type=kind, importance=0.5)
    return str(remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=[memory]).ids[0])


def cluster_of(agent: Agent, memory_id: str) -> str:
    with tenant_transaction(agent.tenant_id):
        cluster = Cluster.objects.create(
            tenant_id=agent.tenant_id, agent_id=agent.id, name="reef, depth", stale=False
        )
        ClusterMember.objects.create(
            tenant_id=agent.tenant_id, cluster_id=cluster.id, memory_id=memory_id, strength=0.9
        )
    return str(cluster.id)
