"""The picture of the knowledge graph, which leads from node to node."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.console.pages import graph_explorer
from apps.memories.models import Memory
from apps.tenants.scope import tenant_transaction
from arbor.ids import uuid7
from tests.factories.agents import AgentFactory
from tests.factories.memories import ConceptFactory, EdgeFactory, MemoryFactory
from tests.support.console import World, page_of
from tests.support.console_crawls import snapshot

PAGE = "admin:graph"


def graph(client: Client, address: str) -> str:
    response = client.get(reverse(PAGE) + address)
    assert response.status_code == 200
    return str(response.content.decode())


def node_addresses(text: str) -> list[str]:
    return [unescape(address) for address in re.findall(r'<a href="([^"]*)" data-node', text)]


def relate_memories(world: World) -> list[Memory]:
    """Create an agent whose three memories cause one another in a chain, the first with a concept; return the memories."""
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory(name="Walker")
        memories: list[Memory] = [
            MemoryFactory(agent=agent, content=f"Memory number {place}.") for place in range(3)
        ]
        for source, target in pairwise(memories):
            EdgeFactory(agent=agent, source_id=source.id, target_id=target.id, relation="causes")
        concept = ConceptFactory(agent=agent, name="tide")
        EdgeFactory(
            agent=agent,
            source_id=memories[0].id,
            target_id=concept.id,
            target_kind="concept",
            relation="instance_of",
        )
    return memories


def test_a_click_puts_another_node_in_the_middle(viewer: Client, world: World) -> None:
    first, second, third = relate_memories(world)
    start = f"?agent={first.agent_id}&node={first.id}"
    text = graph(viewer, start)
    assert f'id="center" href="{page_of(first)}"' in text
    assert "tide" in text
    (onward,) = [address for address in node_addresses(text) if str(second.id) in address]
    text = graph(viewer, onward)
    assert f'id="center" href="{page_of(second)}"' in text
    assert {str(node.id) in " ".join(node_addresses(text)) for node in (first, third)} == {True}


def test_relations_that_are_not_listed_are_mentioned(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = relate_memories(world)
    address = f"?agent={first.agent_id}&node={first.id}"
    assert "with the highest weights" not in graph(viewer, address)
    monkeypatch.setattr(graph_explorer, "RELATIONS_SHOWN", 1)
    assert "the 1 with the highest weights" in graph(viewer, address)


def test_a_node_whose_relations_lead_to_deleted_nodes_says_so(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        memory = MemoryFactory(agent=world.agent)
        EdgeFactory(agent=world.agent, source_id=memory.id, target_id=uuid7())
    text = graph(viewer, f"?agent={world.agent.id}&node={memory.id}")
    assert "The nodes related to this one are deleted" in text
    assert "has no relations yet" not in text


def test_a_view_of_the_graph_changes_no_row(viewer: Client, world: World) -> None:
    first, *_ = relate_memories(world)
    before = snapshot()
    graph(viewer, f"?agent={first.agent_id}&node={first.id}")
    assert snapshot() == before


def test_a_page_without_a_node_offers_nodes_to_begin_with(viewer: Client, world: World) -> None:
    first, *_ = relate_memories(world)
    text = graph(viewer, f"?agent={first.agent_id}")
    assert text.count("data-beginning") == 4
    with tenant_transaction(world.tenant.id):
        quiet = AgentFactory(name="Quiet")
    assert "Quiet knows no relations yet" in graph(viewer, f"?agent={quiet.id}")


def test_a_missing_node_is_reported(viewer: Client, world: World, other_world: World) -> None:
    first, *_ = relate_memories(world)
    for node in (str(uuid7()), "nonsense"):
        assert "has no such node" in graph(viewer, f"?agent={first.agent_id}&node={node}")
    foreign = f"?agent={other_world.agent.id}&node={other_world.rows[0].pk}"
    assert "Choose an agent" in graph(viewer, foreign)


def test_queries_do_not_grow_with_the_relations(viewer: Client, world: World) -> None:
    first, *_ = relate_memories(world)
    address = f"?agent={first.agent_id}&node={first.id}"

    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            graph(viewer, address)
        return len(queries)

    count()
    few = count()
    with tenant_transaction(world.tenant.id):
        for place in range(30):
            memory = MemoryFactory(agent_id=first.agent_id, content=f"Another {place}")
            EdgeFactory(agent_id=first.agent_id, source_id=memory.id, target_id=first.id)
    assert count() == few
    assert "more in the table" in graph(viewer, address)
