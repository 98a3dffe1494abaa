"""Invariants of a mind, true after each call of a service, even before its transaction commits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from apps.agents.models import Agent
from apps.memories.models import Cluster, ClusterMember, Concept, Edge, Memory, MemoryConcept, Upkeep
from apps.memories.services.embedding.embedding import embed_query
from apps.memories.services.embedding.minds import model_of
from apps.tenants.scope import tenant_transaction
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.relations import GraphNodeKind
from arbor.memory.values import MemoryStatus
from tests.integration.memories.conftest import term_counts, true_counts
from tests.integration.memories.recall.cache_and_scan import recall_both_ways

QUERY = "Who pays for the rusty anchor of the ship?"

type Memories = Mapping[UUID, Memory]


def assert_mind_is_consistent(agent: Agent, *, neighbors_are_active: bool = True) -> None:
    """Check that the rows of a mind are consistent, and that recall by cache and by scan agree."""
    with tenant_transaction(agent.tenant_id):
        memories = {memory.id: memory for memory in Memory.objects.filter(agent_id=agent.id)}
        active = {memory_id for memory_id, memory in memories.items() if memory.status == MemoryStatus.ACTIVE}
        for memory in memories.values():
            assert 0 <= memory.importance <= 1
            assert 0 <= memory.trust <= 1
        assert term_counts(agent) == true_counts(agent)
        _assert_recall_is_exact(agent, memories)
        _assert_edges_have_both_ends(agent, memories)
        _assert_archived_have_no_flags(agent, active)
        if neighbors_are_active:
            _assert_neighbors_are_active(agent, active)
        _assert_clusters_fit(agent, active)


def tables_with(superuser: psycopg.Connection[Any], tenant_id: UUID, text: str) -> set[str]:
    """Return the tables with a row of this tenant that contains the text, except in packed columns."""
    tables = superuser.execute(
        "SELECT table_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND column_name = 'tenant_id' AND table_name <> 'tenants_tenant'"
    ).fetchall()
    searches = [_search(name) for (name,) in tables]
    values = {"tenant": tenant_id, "text": text}
    return {name for (name,) in superuser.execute(SQL(" UNION ALL ").join(searches), values)}


def _search(table: str) -> Composed:
    return SQL(
        "SELECT {name} WHERE EXISTS (SELECT FROM {table} t WHERE tenant_id = %(tenant)s AND strpos(t::text, %(text)s) > 0)"
    ).format(name=table, table=Identifier(table))


def _assert_recall_is_exact(agent: Agent, memories: Memories) -> None:
    model = model_of(agent.id)
    (vector,) = embed_query(tenant_id=agent.tenant_id, texts=[QUERY], model=model)
    request = RecallRequest(
        agent_id=agent.id, text=QUERY, limit=20, now=datetime.now(UTC), vector=vector.tolist(), model=model
    )
    cached, _ = recall_both_ways(request)
    for recalled in cached:
        memory = memories[recalled.id]
        assert memory.status == MemoryStatus.ACTIVE
        assert recalled.content == memory.content
    for memory in memories.values():
        if memory.embedding is not None:
            assert len(memory.embedding) == model.dimension


def _assert_edges_have_both_ends(agent: Agent, memories: Memories) -> None:
    concepts = set(Concept.objects.filter(agent_id=agent.id).values_list("id", flat=True))
    nodes = {GraphNodeKind.MEMORY: memories.keys(), GraphNodeKind.CONCEPT: concepts}
    for edge in Edge.objects.filter(agent_id=agent.id):
        assert edge.source_id in nodes[GraphNodeKind(edge.source_kind)]
        assert edge.target_id in nodes[GraphNodeKind(edge.target_kind)]
    for link in MemoryConcept.objects.filter(concept__agent_id=agent.id):
        assert link.memory_id in memories


def _assert_archived_have_no_flags(agent: Agent, active: set[UUID]) -> None:
    """Check that archived memories have no maintenance flag, except the one to empty their neighborhood."""
    for row in Upkeep.objects.filter(agent_id=agent.id).exclude(memory_id__in=active):
        assert not any((row.unclustered, row.unextracted, row.unweighed))


def _assert_neighbors_are_active(agent: Agent, active: set[UUID]) -> None:
    for row in Upkeep.objects.filter(agent_id=agent.id, memory_id__in=active, stale=False):
        assert {UUID(neighbor) for neighbor in row.neighbors or {}} <= active


def _assert_clusters_fit(agent: Agent, active: set[UUID]) -> None:
    members: dict[UUID, set[UUID]] = {}
    for cluster_id, memory_id in ClusterMember.objects.filter(cluster__agent_id=agent.id).values_list(
        "cluster_id", "memory_id"
    ):
        members.setdefault(cluster_id, set()).add(memory_id)
    for cluster in Cluster.objects.filter(agent_id=agent.id):
        if not cluster.stale:
            assert members.get(cluster.id, set()) <= active
            assert cluster.size == len(members.get(cluster.id, ()))
