"""Summaries of episodes and clusters in the prompts of heartbeats and conversations."""

from __future__ import annotations

from apps.agents.models import Agent
from apps.contacts.models import ChatSession
from apps.contacts.services.chat import exchange_turns, open_session
from apps.fleet.contact import message_agent
from apps.heartbeats.services.calls.calls import execute_call
from apps.maintenance.services.consolidation import maintain_episodes
from apps.memories.models import Activation, Cluster, ClusterMember, ClusterRelation, Memory
from apps.tenants.scope import tenant_transaction
from tests.integration.heartbeats.conftest import REST, last_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import (
    HeartbeatRunner,
    Script,
    action_of,
    reply_of,
    store_memory,
)
from tests.integration.maintenance.maintenance_setup import TALK, close_and_settle, episodes_of, remember_talk

QUESTION = "What was the talk about the Heron about?"


def summarize_talk(agent: Agent, fleet: Fleet) -> str:
    """Store a talk of long ago and its summary; return how a prompt names the summary."""
    remember_talk(agent)
    close_and_settle(agent)
    maintain_episodes()
    fleet.run()
    maintain_episodes()
    (episode,) = [episode for episode in episodes_of(agent) if episode.session == "talk"]
    return f"summary of the episode {episode.id}: {episode.summary}"


def test_a_heartbeat_recalls_a_summary_and_reads_its_turns(
    heartbeats: HeartbeatRunner, agent: Agent, fleet: Fleet
) -> None:
    summary = summarize_talk(agent, fleet)
    with tenant_transaction(agent.tenant_id):
        message_agent(agent_id=agent.id, text=QUESTION, actor="user:ann")
    prompt = heartbeats.run(REST)
    assert summary in prompt.split("## Memories that may matter now")[1].split("\n## ")[0]
    # The summary is not listed as an event among the latest ones.
    assert summary not in prompt.split("## Recent experience")[1].split("\n## ")[0]
    episode = summary.split()[4].rstrip(":")
    heartbeats.run(reply_of(actions=[action_of("recall", query="breakfast", episode=episode)]))
    (action,) = last_heartbeat(agent).actions
    with tenant_transaction(agent.tenant_id):
        found = Memory.objects.filter(id__in=action["memory_ids"], sequence__gt=0)
        assert set(found.values_list("content", flat=True)) == set(TALK)


def test_a_conversation_recalls_a_summary(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    summary = summarize_talk(agent, fleet)
    model = scripted('{"thinking": "", "reply": "About the Heron."}')
    with tenant_transaction(agent.tenant_id):
        session: ChatSession = open_session(agent_id=agent.id, person="cli:nora")
    exchange_turns(tenant_id=agent.tenant_id, session_id=session.id, text=QUESTION, execute=execute_call)
    assert summary in model.requests[-1].messages[0].content


def test_a_recalled_cluster_leads_to_related_clusters(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    ids = [store_memory(agent, text) for text in ("The oak is old.", "The tulip is red.", "The boat leaks.")]
    with tenant_transaction(agent.tenant_id):
        garden, sea = (
            Cluster.objects.create(tenant_id=agent.tenant_id, agent_id=agent.id, name=name)
            for name in ("garden, trees", "sea, boats")
        )
        for memory_id, cluster in zip(ids, (garden, garden, sea), strict=True):
            ClusterMember.objects.create(
                tenant_id=agent.tenant_id, cluster_id=cluster.id, memory_id=memory_id, strength=0.9
            )
        ClusterRelation.objects.create(
            tenant_id=agent.tenant_id, source=sea, target=garden, relation="evolves", strength=0.5
        )
        Activation.objects.all().delete()
    heartbeats.run(reply_of(actions=[action_of("recall", query="what grows", cluster="Garden, trees")]))
    (action,) = last_heartbeat(agent).actions
    assert set(action["memory_ids"]) == set(ids[:2])
    prompt = heartbeats.run(REST)
    assert "related clusters: sea, boats" in prompt.split("## Activated clusters")[1].split("\n## ")[0]
