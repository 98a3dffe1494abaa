"""The actions that search: their results come in the next round trip, cited, and with what was not searched."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.services.grants import grant_capability
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.authority.grants import AUDIT_RESOURCE
from arbor.memory.values import NewMemory
from tests.factories.knowledge import published_passage
from tests.factories.rows import minutes_ago
from tests.integration.heartbeats.actions.conftest import RunReplies
from tests.integration.heartbeats.conftest import last_heartbeat, replay_of
from tests.integration.heartbeats.heartbeat_runner import action_of, reply_of, text_of
from tests.support.embedders import RemoteEmbedder

PASSAGE = "Flights need the approval of a manager."
MEMORY = "Nora asked about flights to Lisbon."


@pytest.fixture
def library(agent: Agent) -> None:
    """Store a published passage, a memory and an act about flights."""
    published_passage(agent.tenant_id, PASSAGE)
    with tenant_transaction(agent.tenant_id):
        record(action=AuditAction.OPERATOR_ACT, actor="user:eve", message="paid the flights")
    memory = NewMemory(content=MEMORY, occurred_at=minutes_ago(60))
    remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=[memory])


@pytest.mark.usefixtures("library")
def test_documents_are_searched_and_cited_in_the_next_round_trip(
    run_replies: RunReplies, agent: Agent
) -> None:
    model = run_replies(reply_of(action_of("search_knowledge", query="flights")), reply_of(action_of("rest")))
    assert "search_knowledge (1)" in text_of(model.requests[0])
    second = text_of(model.requests[1])
    assert PASSAGE in second
    assert "Travel, version 1" in second
    heartbeat = last_heartbeat(agent)
    assert heartbeat.actions[0]["outcome"] == "success"
    assert replay_of(heartbeat).differences == []


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("granted", [True, False])
def test_all_sources_are_searched_that_the_agent_may_read(
    run_replies: RunReplies, agent: Agent, granted: bool
) -> None:
    if granted:
        with tenant_transaction(agent.tenant_id):
            grant_capability(agent_id=agent.id, resource=AUDIT_RESOURCE, actor="user:eve")
    model = run_replies(
        reply_of(action_of("search_my_memories", query="flights")), reply_of(action_of("rest"))
    )
    second = text_of(model.requests[1])
    assert PASSAGE in second
    assert MEMORY in second
    assert ("paid the flights" in second) is granted


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("action", ["search_knowledge", "search_my_memories"])
def test_a_search_by_words_alone_says_so(
    run_replies: RunReplies, agent: Agent, remote: RemoteEmbedder, action: str
) -> None:
    remote.away = True
    model = run_replies(reply_of(action_of(action, query="flights")), reply_of(action_of("rest")))
    second = text_of(model.requests[1])
    assert PASSAGE in second
    assert "documents were searched by words alone: the embedder did not answer" in second
    heartbeat = last_heartbeat(agent)
    assert heartbeat.actions[0]["outcome"] == "partial"
    assert replay_of(heartbeat).differences == []
