"""Show and edit the clusters of an agent."""

from __future__ import annotations

from rich.console import Group
from rich.markup import escape

from apps.memories.models import Cluster, Memory
from apps.memories.services.clusters.clusters import (
    assign_memory_to_clusters,
    cluster_members,
    find_related_clusters,
    name_cluster,
    recalculate_cluster,
)
from apps.memories.services.recall.activation import activated_clusters
from apps.memories.services.recall.partial_recall import partial_recall_about
from arbor.memory.activation import MAX_ACTIVE
from arbor.memory.recall.recall_request import check_query
from arbor.quotations import counted
from config.cli.kit.columns import OutputColumn, listing, number, row_to_dict, signed, table_of
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_id
from config.cli.kit.output import cut, short
from config.cli.kit.tenancy import ChosenAgent, audit_act, in_agent_transaction, with_agent
from config.cli.memory.archive import counted_memories
from config.cli.memory.recall import cluster_value


def _keywords(cluster: Cluster) -> list[str]:
    return [str(word) for word in cluster.keywords] if isinstance(cluster.keywords, list) else []


CLUSTER_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("size", "memories"),
    OutputColumn("importance", "imp", cell=number),
    OutputColumn("emotional_valence", "feeling", cell=signed),
    OutputColumn("name", "cluster", cell=lambda name: cut(name, 40)),
    OutputColumn("keywords", "about", value=_keywords, cell=lambda words: cut(", ".join(words), 60)),
    *(OutputColumn(key) for key in ("emotional_intensity", "activations", "activated_at")),
)
MEMBER_COLUMNS = (
    OutputColumn("strength", "fits", cell=number),
    OutputColumn("id", "id", value=lambda member: member.memory_id, cell=short),
    OutputColumn("content", "memory", cell=cut),
)
RELATED_COLUMNS = (
    OutputColumn("strength", "strength", cell=number),
    OutputColumn("id", "id", cell=short),
    OutputColumn("relation", "relation"),
    OutputColumn("name", "related cluster"),
)


@in_agent_transaction
def list_clusters(agent: ChosenAgent, *, limit: int) -> Output:
    """List an agent's clusters, the most important first."""
    active = {
        cluster.id: cluster.activation for cluster in activated_clusters(agent_id=agent.id, limit=MAX_ACTIVE)
    }
    activation_column = OutputColumn(
        "activation",
        "activation",
        value=lambda cluster: active.get(cluster.id, 0.0),
        cell=lambda activation: number(activation) if activation else "",
    )
    clusters = (
        Cluster.objects.filter(agent_id=agent.id).defer("centroid").order_by("-importance", "-size", "id")
    )
    return listing(
        "clusters",
        list(clusters[:limit]),
        (*CLUSTER_COLUMNS, activation_column),
        about={"agent": agent.name},
        empty=f"{agent.name} has no cluster yet: maintenance finds them among memories that have a vector.",
    )


@in_agent_transaction
def show_cluster(agent: ChosenAgent, *, reference: str, limit: int) -> Output:
    """Show a cluster with its memories and related clusters."""
    cluster = Cluster.objects.defer("centroid").get(id=find_id(agent, Cluster, reference))
    members = cluster_members(cluster_id=cluster.id, limit=limit)
    related = find_related_clusters(cluster_id=cluster.id, limit=limit)
    value = {
        **row_to_dict(cluster, CLUSTER_COLUMNS),
        "agent": agent.name,
        "memories": [row_to_dict(member, MEMBER_COLUMNS) for member in members],
        "related": [row_to_dict(other, RELATED_COLUMNS) for other in related],
    }
    about = escape(", ".join(_keywords(cluster))) or "nothing in particular"
    text = Group(
        f"[bold]{escape(cluster.name)}[/bold]  [dim]{cluster.id}[/dim]",
        f"about {about}; {counted_memories(cluster.size)}, feeling {cluster.emotional_valence:+.2f}",
        table_of(members, MEMBER_COLUMNS),
        table_of(related, RELATED_COLUMNS) if related else "",
    )
    return Output(value, text=text)


@with_agent
def show_partial_recall(agent: ChosenAgent, *, text: str) -> Output:
    """Show the clusters that TEXT brings to mind while no memory of them is clear."""
    check_query(text, 1)
    clusters = partial_recall_about(tenant_id=agent.tenant_id, agent_id=agent.id, text=text)
    value = {"agent": agent.name, "text": text, "clusters": [cluster_value(cluster) for cluster in clusters]}
    names = "; ".join(f"{cluster.name} ({cluster.strength:.2f})" for cluster in clusters)
    return Output(value, text=escape(names) or "Nothing is on the tip of the tongue.")


@in_agent_transaction
def rename_cluster(agent: ChosenAgent, *, reference: str, name: str) -> Output:
    """Name a cluster. A named cluster stays while it has a memory."""
    cluster_id = find_id(agent, Cluster, reference)
    stored = name_cluster(cluster_id=cluster_id, name=name)
    audit_act(agent, f"named the cluster {cluster_id} {stored!r}")
    return Output({"agent": agent.name, "cluster": cluster_id, "name": stored}, text="Named.")


@in_agent_transaction
def refresh_cluster(agent: ChosenAgent, *, reference: str) -> Output:
    """Recompute a cluster's center, keywords and feeling from its memories."""
    cluster_id = find_id(agent, Cluster, reference)
    recalculate_cluster(cluster_id=cluster_id)
    return Output({"agent": agent.name, "cluster": cluster_id}, text="Recomputed the cluster.")


@in_agent_transaction
def assign_memory(agent: ChosenAgent, *, memory_id: str, most: int) -> Output:
    """Assign a memory to its clusters now, before maintenance does."""
    memory_row_id = find_id(agent, Memory, memory_id)
    clusters = assign_memory_to_clusters(memory_id=memory_row_id, max_clusters=most)
    value = {
        "agent": agent.name,
        "id": memory_row_id,
        "clusters": {str(cluster_id): fit for cluster_id, fit in clusters.items()},
    }
    return Output(value, text=f"The memory is in {counted(len(clusters), 'cluster')}.")
