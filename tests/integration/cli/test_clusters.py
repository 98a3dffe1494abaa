"""Commands for clusters and concepts: name, refresh, assign, link, place, merge, and partial recall."""

from __future__ import annotations

import math
from uuid import UUID

import numpy as np
import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.memories.models import Cluster
from apps.memories.services.clusters.job import recluster_mind
from apps.memories.services.recall import search
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from tests.integration.cli.conftest import Arbor
from tests.integration.memories.conftest import a_memory

AXES = np.eye(256)
MEMBERS, OTHERS = 10, 100


@pytest.fixture
def clustered_vega(vega: str, one_tenant: str) -> Agent:
    """Return an agent with one cluster of ten memories, and a hundred memories outside the cluster."""
    tenant_id = tenant_by_slug(one_tenant).id
    texts = [f"Coltrane and saxophone {number}" for number in range(MEMBERS)]
    texts += [f"Something else {number}" for number in range(OTHERS)]
    cosines = [0.65] * MEMBERS + [0.0] * OTHERS
    rows = [
        cosine * AXES[0] + math.sqrt(1 - cosine**2) * AXES[place + 1] for place, cosine in enumerate(cosines)
    ]
    with tenant_transaction(tenant_id):
        agent: Agent = Agent.objects.get(name=vega)
        store(
            agent_id=agent.id,
            memories=[a_memory(text, session="talk", position=place) for place, text in enumerate(texts)],
            vectors=np.asarray(rows, dtype=np.float32),
        )
    recluster_mind(tenant_id=tenant_id, agent_id=agent.id)
    return agent


def cluster_of(agent: Agent) -> Cluster:
    with tenant_transaction(agent.tenant_id):
        return Cluster.objects.get(agent_id=agent.id)


def member_of(agent: Agent) -> UUID:
    with tenant_transaction(agent.tenant_id):
        memory_id: UUID = cluster_of(agent).members.values_list("memory_id", flat=True)[0]
        return memory_id


@pytest.fixture
def _query_near_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every text a vector that is near the center of the cluster, but near none of its memories."""
    monkeypatch.setattr(search, "embed_query", lambda **_: np.asarray([0.6 * AXES[0] + 0.8 * AXES[255]]))


@pytest.mark.usefixtures("_query_near_cluster")
def test_a_recall_without_a_clear_memory_shows_clusters(arbor: Arbor, clustered_vega: Agent) -> None:
    output = arbor("recall", "Vega", "who was it again", "--json").json
    (cluster,) = output["tip_of_the_tongue"]
    assert cluster["name"] == cluster_of(clustered_vega).name
    assert "on the tip of the tongue: coltrane" in arbor("recall", "Vega", "who was it again").out
    assert arbor("recall", "Vega", "coltrane saxophone", "--json").json["tip_of_the_tongue"] == []
    (found,) = arbor("memory", "cluster", "tip", "Vega", "coltrane saxophone", "--json").json["clusters"]
    assert found["cluster_id"] == cluster["cluster_id"]


def test_a_cluster_is_renamed_and_refreshed(arbor: Arbor, clustered_vega: Agent) -> None:
    cluster_id = str(cluster_of(clustered_vega).id)
    assert arbor("memory", "cluster", "name", "Vega", cluster_id, "Evenings at the club", "--json").json[
        "name"
    ]
    with tenant_transaction(clustered_vega.tenant_id):
        Cluster.objects.update(stale=True, keywords=[])
    assert arbor("memory", "cluster", "refresh", "Vega", cluster_id[-8:], "--json").code == 0
    cluster = cluster_of(clustered_vega)
    assert (cluster.name, cluster.stale, cluster.size) == ("Evenings at the club", False, MEMBERS)
    assert {"coltrane", "saxophone"} <= set(cluster.keywords)
    with tenant_transaction(clustered_vega.tenant_id):
        assert AuditEvent.objects.filter(message__contains="named the cluster").count() == 1
    refused = arbor("memory", "cluster", "name", "Vega", cluster_id, " ")
    assert refused.code == 1
    assert "1 to 200" in refused.err


def test_a_memory_is_assigned_to_clusters_and_linked(arbor: Arbor, clustered_vega: Agent) -> None:
    memory_id = str(member_of(clustered_vega))
    clusters = arbor("memory", "cluster", "assign", "Vega", memory_id, "--most", "3", "--json").json[
        "clusters"
    ]
    assert list(clusters) == [str(cluster_of(clustered_vega).id)]
    output = arbor("memory", "concept", "link", "Vega", memory_id, "Jazz", "--strength", "0.8", "--json").json
    assert output["concepts"]["Jazz"] == 0.8


def test_concepts_are_placed_and_merged(arbor: Arbor, clustered_vega: Agent) -> None:
    memory_id = str(member_of(clustered_vega))
    for name in ("jazz", "music", "jazz music"):
        assert arbor("memory", "concept", "link", "Vega", memory_id, name).code == 0
    assert arbor("memory", "concept", "place", "Vega", "jazz", "--below", "music").code == 0
    cycle = arbor("memory", "concept", "place", "Vega", "music", "--below", "jazz")
    assert cycle.code == 1
    assert "cannot be broader than itself" in cycle.err
    assert arbor("memory", "concept", "merge", "Vega", "jazz", "jazz music").code == 0
    tree = arbor("memory", "concept", "list", "Vega", "--json").out
    assert "jazz music" not in tree
