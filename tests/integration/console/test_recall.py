"""The recall explorer, which shows score components, explains absences, and changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.ids import uuid7
from arbor.memory.values import MemoryType, NewMemory
from tests.factories.agents import AgentFactory
from tests.support.console import World
from tests.support.console_crawls import snapshot

TEXTS = (
    "The ferry stopped for nine days because the river froze.",
    "The harbour master asked for the depth readings twice.",
    "Ben plays chess on Sundays.",
)


@pytest.fixture
def thinker(world: World) -> Agent:
    """Return an agent whose memories are embedded by the installation's embedder."""
    with tenant_transaction(world.tenant.id):
        agent: Agent = AgentFactory(name="Thinker")
    return agent


@pytest.fixture
def memories(world: World, thinker: Agent) -> list[UUID]:
    remember(
        tenant_id=world.tenant.id,
        agent_id=thinker.id,
        memories=[
            NewMemory(
                content=text, type=MemoryType.SEMANTIC, occurred_at=datetime.now(UTC) - timedelta(days=10)
            )
            for text in TEXTS
        ],
    )
    with tenant_transaction(world.tenant.id):
        ids = dict(Memory.objects.filter(content__in=TEXTS).values_list("content", "id"))
    return [ids[text] for text in TEXTS]


def explore(client: Client, agent: Agent, **parameters: Any) -> str:
    query = {"agent": str(agent.id), "q": "the ferry on the river", **parameters}
    response = client.get(reverse("admin:recall"), query)
    assert response.status_code == 200
    return response.content.decode()


def test_memories_are_ranked_with_their_score_components(
    viewer: Client, thinker: Agent, memories: list[UUID]
) -> None:
    text = explore(viewer, thinker)
    first = text.partition("<li data-memory")[2].partition("</li>")[0]
    assert str(memories[0]) in first
    for component in ("words", "meaning", "importance"):
        assert f'data-component="{component}"' in first
    assert "Words alone were compared" not in text


def test_exploring_changes_no_row(viewer: Client, thinker: Agent, memories: list[UUID]) -> None:
    before = snapshot()
    explore(viewer, thinker, missing=str(memories[2]))
    assert snapshot() == before


def test_filters_narrow_the_recall(viewer: Client, thinker: Agent, memories: list[UUID]) -> None:
    assert f'data-memory="{memories[0]}"' in explore(viewer, thinker, days="30", type=["semantic"])
    for narrowed in ({"days": "7"}, {"type": ["strategic"]}, {"importance": "1"}):
        text = explore(viewer, thinker, missing=str(memories[0]), **narrowed)
        assert f'data-memory="{memories[0]}"' not in text, narrowed
        reasons = text.partition('class="ar-reasons"')[2].partition("</ul>")[0]
        assert any(words in reasons for words in ("older than", "asks for", "below")), narrowed


def test_the_absence_of_a_memory_is_explained(viewer: Client, thinker: Agent, memories: list[UUID]) -> None:
    assert "it is recalled, as number 1" in explore(viewer, thinker, missing=str(memories[0]))
    assert "this agent has no memory with that id" in explore(viewer, thinker, missing=str(uuid7()))
    assert "is no id of a memory" in explore(viewer, thinker, missing="nonsense")
    with tenant_transaction(thinker.tenant_id):
        Memory.objects.filter(id=memories[0]).update(status="archived")
    assert "it is archived" in explore(viewer, thinker, missing=str(memories[0]))


def test_an_outranked_memory_shows_its_place_and_score(viewer: Client, world: World, thinker: Agent) -> None:
    now = datetime.now(UTC)
    remember(
        tenant_id=world.tenant.id,
        agent_id=thinker.id,
        memories=[
            NewMemory(content=f"The ferry crossed the river on day {day}.", occurred_at=now)
            for day in range(12)
        ]
        + [NewMemory(content="Chess is played on Sundays.", occurred_at=now)],
    )
    with tenant_transaction(world.tenant.id):
        chess = Memory.objects.get(content__startswith="Chess").id
    text = explore(viewer, thinker, missing=str(chess))
    reasons = text.partition('id="absence"')[2].partition("</section>")[0]
    assert "its score is" in reasons
    assert "data-component=" in reasons


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"q": "a\0b"}, "Nothing was recalled"),
        ({"importance": "high"}, "the least importance must be a number"),
        ({"trust": "7"}, "min_trust must be 0 to 1"),
    ],
)
def test_an_invalid_query_is_explained(
    viewer: Client, thinker: Agent, parameters: dict[str, str], words: str
) -> None:
    assert words in explore(viewer, thinker, **parameters)


def test_another_tenants_agent_cannot_be_explored(viewer: Client, thinker: Agent, other_world: World) -> None:
    text = explore(viewer, other_world.agent)
    assert "Choose an agent first." in text
    assert "globex secret" not in text


def test_the_explorer_needs_a_tenant(root: Client, world: World) -> None:
    assert root.get(reverse("admin:recall")).status_code == 403


def test_an_embedder_over_the_network_is_not_awaited(viewer: Client, world: World) -> None:
    # The vectors of the world's agent are of a model that needs the network.
    text = explore(viewer, world.agent, q="the river")
    assert "Words alone were compared" in text
    assert "or cannot be used" in text
