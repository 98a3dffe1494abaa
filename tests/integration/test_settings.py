"""Settings whose effects show only in rows: each is changed, and a service obeys it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.db.models import F

from apps import web
from apps.agents.models import Agent, HeartbeatSchedule
from apps.agents.services.templates import add_template
from apps.contacts.models import ChatSession
from apps.contacts.services.chat import end_session, exchange_turns, open_session
from apps.fleet.creation import create_agent
from apps.heartbeats.services.calls import calls
from apps.memories.models import Memory
from apps.memories.services.recall.recaller import recall
from apps.memories.services.store.remember import remember
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.memory.recall.recall_request import RecallRequest
from arbor.models.ports import CallPurpose, ModelRequest
from arbor.web.plan import Depth
from arbor.web.ports import ScriptedPages, SearchResult
from config.cli.installation import prepare
from tests.integration.heartbeats.conftest import agent, fleet, make_due, new_agent, scripted
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.memories.chosen_vectors import DIMENSION, refresh_all, store_with_vectors, upkeep_of
from tests.integration.memories.conftest import a_memory

__all__ = ["agent", "fleet", "new_agent", "scripted"]

TEMPLATE = """---
name: Pebble
version: "1"
character:
  name: Pebble
  description: You are brief.
actions: [rest]
---
## Instructions

- Rest.
"""


@pytest.mark.parametrize("minutes", [10, 90])
def test_a_new_agent_has_the_interval_of_the_installation(
    minutes: int, tenant: Tenant, settings: Any
) -> None:
    settings.ARBOR_HEARTBEAT_INTERVAL = timedelta(minutes=minutes)
    with tenant_transaction(tenant.id):
        add_template(text=TEMPLATE, actor="test")
        agent = create_agent(name="Pebble", template_name="Pebble", actor="test")
        assert HeartbeatSchedule.objects.get(agent_id=agent.id).interval_s == minutes * 60


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_heartbeats_are_claimed_than_may_be_in_flight(
    limit: int, tenant: Tenant, fleet: Fleet, new_agent: Callable[..., Agent], settings: Any
) -> None:
    settings.ARBOR_MAX_IN_FLIGHT = limit
    for number in range(4):
        make_due(new_agent(tenant, name=f"agent {number}"))
    assert fleet.dispatch().due == limit
    assert fleet.dispatch().due == 0


@pytest.mark.parametrize(("idle_s", "goes_on"), [(60, False), (600, True)])
def test_a_conversation_goes_on_until_it_is_idle(
    idle_s: int, goes_on: bool, agent: Agent, settings: Any
) -> None:
    settings.ARBOR_CHAT_IDLE = timedelta(seconds=idle_s)
    with tenant_transaction(agent.tenant_id):
        first = open_session(agent_id=agent.id, person="cli:nora")
        ChatSession.objects.update(last_at=F("last_at") - timedelta(seconds=300))
        assert (open_session(agent_id=agent.id, person="cli:nora").id == first.id) is goes_on


@pytest.mark.parametrize(("limit", "follows"), [(0.0, True), (1.1, False)])
def test_a_conversation_is_significant_from_the_limit_on(
    limit: float, follows: bool, agent: Agent, settings: Any
) -> None:
    settings.ARBOR_CHAT_SIGNIFICANT = limit
    with tenant_transaction(agent.tenant_id):
        session = open_session(agent_id=agent.id, person="cli:nora")
    exchange_turns(tenant_id=agent.tenant_id, session_id=session.id, text="Hello", execute=calls.execute_call)
    with tenant_transaction(agent.tenant_id):
        assert end_session(session_id=session.id).heartbeat_follows is follows


@pytest.mark.parametrize("name", ["ada", "grace"])
def test_the_first_operator_has_the_configured_name(
    name: str, database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARBOR_OPERATOR", name)
    monkeypatch.setenv("ARBOR_OPERATOR_PASSWORD", "correct horse battery")
    assert prepare._create_operator() == (name, True)
    assert get_user_model().objects.filter(username=name).exists()
    assert prepare._create_operator() == (name, False)


def test_activation_fades_by_the_configured_half_life(agent: Agent, settings: Any) -> None:
    (memory_id,) = remember(
        tenant_id=agent.tenant_id, agent_id=agent.id, memories=[a_memory("The anchor is rusty.")]
    ).ids
    recall(tenant_id=agent.tenant_id, request=RecallRequest(agent_id=agent.id, text="anchor"), counts=True)
    later = datetime.now(UTC) + timedelta(hours=2)

    def activation(half_life: timedelta) -> float:
        settings.ARBOR_ACTIVATION_HALF_LIFE = half_life
        recalled = recall(
            tenant_id=agent.tenant_id, request=RecallRequest(agent_id=agent.id, text="anchor", now=later)
        )
        return next(memory for memory in recalled if memory.id == memory_id).components.activation

    assert activation(timedelta(hours=1)) < activation(timedelta(hours=10))


@pytest.mark.parametrize(("similarity", "is_neighbor"), [(0.99, False), (0.5, True)])
def test_neighbors_have_at_least_the_configured_similarity(
    similarity: float, is_neighbor: bool, agent: Agent, settings: Any
) -> None:
    settings.ARBOR_NEIGHBOR_SIMILARITY = similarity
    with tenant_transaction(agent.tenant_id):
        Memory.objects.filter(agent_id=agent.id).delete()
    first, other = np.zeros(DIMENSION, dtype=np.float32), np.zeros(DIMENSION, dtype=np.float32)
    # A cosine of 0.8.
    first[0], other[0], other[1] = 1.0, 0.8, 0.6
    ids = store_with_vectors(agent, [first, other])
    refresh_all(agent)
    assert (str(ids[1]) in (upkeep_of(agent)[ids[0]].neighbors or {})) is is_neighbor


class _RecordingSearch:
    """A web search that records its time limit."""

    deadline_s = 0.0

    def search(self, query: str, limit: int, *, deadline_s: float) -> list[SearchResult]:
        self.deadline_s = deadline_s
        return [SearchResult(url="https://reef.example/depth")]


@pytest.mark.parametrize("deadline_s", [3.0, 9.0])
def test_an_inquiry_ends_within_the_configured_time(
    deadline_s: float, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ARBOR_WEB_DEADLINE_S = deadline_s
    search = _RecordingSearch()
    monkeypatch.setattr(web, "search", lambda: search)
    monkeypatch.setattr(web, "fetch", lambda: ScriptedPages({"https://reef.example/depth": "Deep."}))
    request = ModelRequest(
        purpose=CallPurpose.WEB,
        system="",
        messages=(),
        context={"question": "How deep?", "queries": ["reef"], "depth": Depth.SHALLOW.value},
    )
    calls._ask_web(request, deadline_s=60)
    assert deadline_s - 1 < search.deadline_s <= deadline_s
