"""The heartbeats of one agent, and its state, messages and proposals as rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.agents.models import Agent, AgentState
from apps.fleet.contact import message_agent
from apps.heartbeats.services.legs.promotion import propose_settled_changes
from apps.memories.models import Memory, MemoryAccess
from apps.selves.models import Proposal
from apps.selves.services.proposals import propose
from apps.tenants.scope import tenant_transaction
from arbor.selves.proposals import NewProposal, ProposalKind
from tests.factories.authority import allow
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, Script, reply_of

#: A source of facts.
ALMANAC = {"kind": "document", "reference": "almanac", "trust": 0.9}


@pytest.fixture
def heartbeats(fleet: Fleet, agent: Agent, scripted: Script) -> HeartbeatRunner:
    """Return the runner of the agent's heartbeats."""
    with tenant_transaction(agent.tenant_id):
        allow(agent, "recall", "remember", "reflect", "connect", "rest")
    return HeartbeatRunner(fleet, agent, scripted)


def set_state(agent: Agent, **columns: Any) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(**columns)


def send_message(agent: Agent, text: str) -> None:
    """Send a person's message to the agent."""
    with tenant_transaction(agent.tenant_id):
        message_agent(agent_id=agent.id, text=text, actor="test")


def propose_change(agent: Agent, **fields: Any) -> Proposal:
    """Store an operator's proposal of an aspect, or one with these fields; return it."""
    new = {
        "kind": ProposalKind.IDENTITY,
        "content": "I am patient with tides.",
        "confidence": 0.7,
        "source": "operator",
        "change": {"aspect": "self_concept"},
        **fields,
    }
    with tenant_transaction(agent.tenant_id):
        return propose(agent_id=agent.id, proposals=[NewProposal(**new)]).made[0]


def reply_deciding(proposal: Proposal, decision: str, reason: str = "so it is") -> str:
    """Return a reply that decides the proposal."""
    return reply_of(
        proposal_decisions=[{"proposal_id": str(proposal.id), "decision": decision, "reason": reason}]
    )


def settle(
    agent: Agent,
    memory_id: str,
    *,
    trust: float,
    sources: list[dict[str, Any]],
    importance: float = 0.9,
    days: int = 4,
    recalls: int = 4,
) -> None:
    """Give a memory this trust, these sources, this importance, this age and this number of recalls."""
    with tenant_transaction(agent.tenant_id):
        Memory.objects.filter(id=memory_id).update(
            trust=trust,
            importance=importance,
            created_at=datetime.now(UTC) - timedelta(days=days),
            detail={"sources": sources},
        )
        MemoryAccess.objects.update_or_create(
            tenant_id=agent.tenant_id,
            memory_id=memory_id,
            defaults={"count": recalls, "last_at": datetime.now(UTC)},
        )


def propose_now(agent: Agent) -> list[Proposal]:
    """Propose settled changes as a consolidation does; return the new proposals."""
    return list(propose_settled_changes(agent_id=agent.id).proposed.made)
