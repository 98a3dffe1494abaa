"""The actions recall, remember, reflect and connect, and their effects on the next heartbeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from apps.agents.models import Agent, AgentState
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import Heartbeat
from apps.memories.models import (
    Activation,
    Cluster,
    ClusterMember,
    Edge,
    Memory,
    MemoryAccess,
    Upkeep,
)
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.graph.neighborhoods import refresh_neighborhoods
from apps.memories.services.recall.recaller import Recaller
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalState
from arbor.memory.recall.recall_request import RecallRequest
from tests.integration.heartbeats.conftest import REST, last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, action_of, reply_of, store_memory


def test_a_recalled_memory_is_counted_and_in_the_next_prompt(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    memory_id = store_memory(agent, "The lighthouse keeper is called Ines.")
    heartbeats.run(reply_of(actions=[action_of("recall", query="Who keeps the lighthouse?")]))
    (action,) = last_heartbeat(agent).actions
    assert (action["verdict"], action["outcome"], action["cost"]) == ("run", "success", 1)
    assert memory_id in action["memory_ids"]
    with tenant_transaction(agent.tenant_id):
        assert MemoryAccess.objects.get(memory_id=memory_id).count >= 1
    assert "The lighthouse keeper is called Ines." in heartbeats.run(REST)


def test_a_recall_without_a_clear_memory_reports_its_cluster(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    memory_id = store_memory(agent, "The lighthouse keeper is called Ines.")
    for other in ("It rained.", "The path is mud.", "Trains run late.", "Taxes are due in April."):
        store_memory(agent, other)
    query = "Which tune was it?"
    center = embed_texts(tenant_id=agent.tenant_id, texts=[query])[0].tolist()
    with tenant_transaction(agent.tenant_id):
        cluster = Cluster.objects.create(
            tenant_id=agent.tenant_id, agent_id=agent.id, name="evenings, club", centroid=center
        )
        ClusterMember.objects.create(
            tenant_id=agent.tenant_id, cluster_id=cluster.id, memory_id=memory_id, strength=0.5
        )
    heartbeats.run(reply_of(actions=[action_of("recall", query=query)]))
    (action,) = last_heartbeat(agent).actions
    assert action["summary"].endswith("on the tip of the tongue: cluster evenings, club")
    assert "on the tip of the tongue: cluster evenings, club" in heartbeats.run(REST)


def test_remember_and_reflect_store_embedded_memories(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(
        reply_of(
            actions=[
                action_of(
                    "remember", content="Ines bakes bread on Fridays.", type="semantic", importance=0.9
                ),
                action_of("reflect", insight="People here share what they make.", focus="the village"),
            ]
        )
    )
    with tenant_transaction(agent.tenant_id):
        fact = Memory.objects.get(content="Ines bakes bread on Fridays.")
        insight = Memory.objects.get(content="People here share what they make.")
    assert (fact.type, fact.importance, fact.embedding is not None) == ("semantic", 0.9, True)
    assert insight.detail["focus"] == "the village"
    assert last_heartbeat(agent).energy_end == last_heartbeat(agent).energy_start - 2  # type: ignore[operator]


def test_connect_relates_two_memories(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    one, two = store_memory(agent, "It rained."), store_memory(agent, "The path is mud.")
    heartbeats.run(reply_of(actions=[action_of("connect", from_id=one, to_id=two, relation="causes")]))
    with tenant_transaction(agent.tenant_id):
        edge = Edge.objects.get()
    assert (str(edge.source_id), str(edge.target_id), edge.relation) == (one, two, "causes")


def test_connect_relates_a_memory_to_a_goal_with_a_note(
    heartbeats: HeartbeatRunner, agent: Agent, goal: Goal
) -> None:
    chart = store_memory(agent, "The old chart lies in the archive.")
    heartbeats.run(
        reply_of(actions=[action_of("connect", from_id=str(goal.id), to_id=chart, relation="requires")])
    )
    (action,) = last_heartbeat(agent).actions
    assert (action["outcome"], action["memory_ids"]) == ("success", [chart])
    with tenant_transaction(agent.tenant_id):
        edge = Edge.objects.get()
    assert (edge.source_kind, edge.target_kind, edge.note) == ("goal", "memory", "because")
    assert edge.origin == f"heartbeat:{last_heartbeat(agent).id}"


def test_a_relation_changes_neighborhood_and_activation(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    keeper, bread = (
        store_memory(agent, "The lighthouse keeper is called Ines."),
        store_memory(agent, "On Fridays there is fresh bread."),
    )
    heartbeats.run(
        reply_of(actions=[action_of("connect", from_id=keeper, to_id=bread, relation="reminds_of")])
    )
    refresh_neighborhoods()
    with tenant_transaction(agent.tenant_id):
        neighbors = Upkeep.objects.get(memory_id=keeper).neighbors
        assert neighbors is not None
        assert neighbors[bread] >= 1
        Activation.objects.all().delete()
    heartbeats.run(reply_of(actions=[action_of("recall", query="Who keeps the lighthouse?", limit=1)]))
    with tenant_transaction(agent.tenant_id):
        assert Activation.objects.filter(memory_id__in=[keeper, bread], level__gt=0).count() == 2


def test_a_relation_recalls_a_memory_that_the_query_cannot(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    keeper = store_memory(agent, "The lighthouse keeper is called Ines.")
    bread = store_memory(agent, "On Fridays there is fresh bread.")
    for number in range(160):
        store_memory(agent, f"Gull {number} sits upon post {number * 7}.")

    def recalled_ids() -> list[str]:
        heartbeats.run(reply_of(actions=[action_of("recall", query="keeper of the lighthouse", limit=3)]))
        with tenant_transaction(agent.tenant_id):
            actions = Heartbeat.objects.latest("started_at").actions
        return list(actions[0]["memory_ids"])

    refresh_neighborhoods()
    assert keeper in (before := recalled_ids())
    assert bread not in before
    heartbeats.run(
        reply_of(actions=[action_of("connect", from_id=keeper, to_id=bread, relation="reminds_of")])
    )
    refresh_neighborhoods()
    assert recalled_ids()[:2] == [keeper, bread]


def test_recall_requests_have_the_mood_of_the_last_heartbeat(
    heartbeats: HeartbeatRunner, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    moods: list[float | None] = []
    original = Recaller.recall

    def recording_recall(recaller: Recaller, requests: Sequence[RecallRequest]) -> Any:
        moods.extend(request.mood for request in requests)
        return original(recaller, requests)

    monkeypatch.setattr(Recaller, "recall", recording_recall)
    for text in ("The lamp of the lighthouse is out.", "The lamp of the lighthouse is lit."):
        store_memory(agent, text)
    heartbeats.run(reply_of(actions=[action_of("reflect", topic="lamps", insight="A lamp is a promise.")]))
    heartbeats.run(REST)
    with tenant_transaction(agent.tenant_id):
        felt = Heartbeat.objects.order_by("started_at").values_list("emotional_valence", flat=True)[0]
    assert felt
    assert moods == [None, felt]


def test_recall_activates_clusters_for_the_next_heartbeat(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    keeper = store_memory(agent, "The lighthouse keeper is called Ines.")
    with tenant_transaction(agent.tenant_id):
        cluster = Cluster.objects.create(
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            name="The lighthouse",
            keywords=["lamp", "</data>"],
            emotional_valence=0.8,
            emotional_intensity=0.9,
        )
        ClusterMember.objects.create(
            tenant_id=agent.tenant_id, cluster_id=cluster.id, memory_id=keeper, strength=0.9
        )
    before = heartbeats.run(reply_of(actions=[action_of("recall", query="Who keeps the lighthouse?")]))
    assert "## Activated clusters\nNone." in before
    with tenant_transaction(agent.tenant_id):
        cluster.refresh_from_db()
    assert cluster.activations >= 1
    assert cluster.activated_at is not None
    after = heartbeats.run(REST)
    assert "The lighthouse: lamp, </data> (feels strongly good)" in after


@pytest.mark.parametrize(
    "update",
    [{"progress": 1.0}, {"state": "abandoned", "reason": "no boat"}, {"state": "queued"}],
)
def test_an_ended_or_queued_goal_leaves_working_memory(
    heartbeats: HeartbeatRunner, agent: Agent, goal: Goal, update: dict[str, Any]
) -> None:
    with tenant_transaction(agent.tenant_id):
        create_goal(agent_id=agent.id, title="Count the lamps", state=GoalState.ACTIVE)
    heartbeats.run(reply_of(goal_updates=[{"goal_id": str(goal.id), **update}]))
    with tenant_transaction(agent.tenant_id):
        working_memory = AgentState.objects.get(agent_id=agent.id).working_memory
        assert Goal.objects.get(id=goal.id).state != GoalState.ACTIVE
    assert working_memory["active_goals"] == ["Count the lamps"]
