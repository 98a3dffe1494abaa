"""Subscriptions of agents: their signals are in the next prompt, coalesced, each once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.agents.services.templates import add_template
from apps.audit.models import AuditAction, AuditEvent
from apps.fleet.creation import create_agent
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import Heartbeat
from apps.knowledge.models import SignalSubscription
from apps.knowledge.services import signal_reading
from apps.knowledge.services.documents import NewDocument, add_document
from apps.knowledge.services.subscriptions import (
    NewSubscription,
    source_of,
    subscribe,
    subscriptions_of,
    unsubscribe,
)
from apps.queues import captured
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, LimitReached, ModelUnavailable, NotFound, TemplateInvalid
from arbor.knowledge.subscriptions import MAX_SUBSCRIPTIONS, SignalSource
from tests.integration.heartbeats.batch import heartbeat_statements
from tests.integration.heartbeats.conftest import REST, run_at_once, run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.integration.skills.conftest import ACTOR
from tests.integration.workflows.workflow_setup import start_new_workflow


@pytest.fixture
def peer(tenant: Tenant, agent: Agent, new_agent: Callable[..., Agent]) -> Agent:
    return new_agent(tenant, name="Ben")


def follow(agent: Agent, *names: str, peer: Agent | None = None, own: bool = False) -> SignalSubscription:
    source = SignalSource.OWN if own else SignalSource.PEER
    wanted = NewSubscription(names=names, source=source, peer_id=peer.id if peer else None)
    with tenant_transaction(agent.tenant_id):
        return subscribe(agent_id=agent.id, wanted=wanted, actor=ACTOR)


def add_goals(agent: Agent, *titles: str) -> None:
    for title in titles:
        with tenant_transaction(agent.tenant_id):
            create_goal(agent_id=agent.id, title=title)


def signals_of(heartbeat: Heartbeat) -> list[tuple[str, str, int]]:
    return [
        (entry["name"], entry["source"], entry["count"]) for entry in heartbeat.situation.get("signals", [])
    ]


def test_the_next_prompt_has_the_signals_of_a_peer_once(
    fleet: Fleet, agent: Agent, peer: Agent, scripted: Script
) -> None:
    model = scripted(REST, repeat=True)
    add_goals(peer, "Before the subscription")
    follow(agent, "memory.goal_*", peer=peer)
    add_goals(peer, "Chart the reef", "Count the lamps")
    add_goals(agent, "Its own goal")
    assert signals_of(run_at_once(fleet, agent)) == [("memory.goal_created", "Ben", 2)]
    assert "A goal was added to the backlog: “Count the lamps”, “Chart the reef”" in (
        model.requests[-1].messages[0].content
    )
    assert signals_of(run_at_once(fleet, agent)) == []
    add_goals(peer, "Polish the brass")
    assert signals_of(run_at_once(fleet, agent)) == [("memory.goal_created", "Ben", 1)]


def test_a_failed_heartbeat_has_read_nothing(
    fleet: Fleet, agent: Agent, peer: Agent, scripted: Script
) -> None:
    follow(agent, "memory.goal_created", peer=peer)
    add_goals(peer, "Chart the reef")
    scripted(ModelUnavailable("down"), repeat=True)
    failed = run_at_once(fleet, agent)
    assert (failed.status, signals_of(failed)) == ("failed", [("memory.goal_created", "Ben", 1)])
    scripted(REST, repeat=True)
    assert signals_of(run_at_once(fleet, agent)) == [("memory.goal_created", "Ben", 1)]
    assert signals_of(run_at_once(fleet, agent)) == []


def test_an_agent_reads_signals_about_itself(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    scripted(REST, repeat=True)
    follow(agent, "memory.heartbeat", "memory.goal_created", own=True)
    add_goals(agent, "Its own goal")
    assert signals_of(run_at_once(fleet, agent)) == [("memory.goal_created", "you", 1)]
    assert signals_of(run_at_once(fleet, agent)) == [("memory.heartbeat", "you", 1)]


def publish(tenant: Tenant, *names: str) -> None:
    """Publish documents, whose signals are about what the tenant's agents share; no worker indexes them."""
    for name in names:
        with captured(), tenant_transaction(tenant.id):
            content = f"# {name}".encode()
            add_document(new=NewDocument(name=f"{name}.md", content=content, publish=True), actor=ACTOR)


def follow_documents(agent: Agent) -> None:
    wanted = NewSubscription(names=["document.published"], source=SignalSource.SHARED)
    with tenant_transaction(agent.tenant_id):
        subscribe(agent_id=agent.id, wanted=wanted, actor=ACTOR)


def test_a_published_document_wakes_an_idle_agent(fleet: Fleet, tenant: Tenant, idle_agent: Agent) -> None:
    run_at_once(fleet, idle_agent)
    assert run_heartbeat(fleet, idle_agent).status == "skipped"
    follow_documents(idle_agent)
    publish(tenant, "tides", "lamps")
    woken = run_heartbeat(fleet, idle_agent)
    assert (woken.status, signals_of(woken)) == ("done", [("document.published", "", 2)])
    assert woken.situation["signals"][0]["subjects"] == ["lamps", "tides"]
    assert run_heartbeat(fleet, idle_agent).status == "skipped"


def test_the_runs_of_a_workflow_reach_subscribers(
    fleet: Fleet, tenant: Tenant, agent: Agent, peer: Agent, scripted: Script
) -> None:
    scripted(REST, repeat=True)
    wanted = NewSubscription(names=["workflow.started"], source=SignalSource.SHARED)
    with tenant_transaction(tenant.id):
        subscribe(agent_id=agent.id, wanted=wanted, actor=ACTOR)
    start_new_workflow(tenant, 'a [type=note, text="x"]; start -> a -> done', agent=peer)
    heartbeat = run_at_once(fleet, agent)
    assert signals_of(heartbeat) == [("workflow.started", "", 1)]
    assert heartbeat.situation["signals"][0]["subjects"] == ["report"]


def test_signals_of_another_tenant_are_never_read(
    fleet: Fleet, agent: Agent, other_tenant: Tenant, scripted: Script
) -> None:
    scripted(REST, repeat=True)
    follow_documents(agent)
    publish(other_tenant, "tides")
    assert signals_of(run_at_once(fleet, agent)) == []


def test_many_signals_are_read_in_several_prompts(
    fleet: Fleet, agent: Agent, peer: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal_reading, "MAX_BATCHES", 2)
    scripted(REST, repeat=True)
    follow(agent, "memory.goal_created", peer=peer)
    add_goals(peer, "One reef", "Two lamps", "Three ropes")
    assert [signals_of(run_at_once(fleet, agent)) for _ in range(3)] == [
        [("memory.goal_created", "Ben", 2)],
        [("memory.goal_created", "Ben", 1)],
        [],
    ]


def test_signals_without_room_wait_for_the_next_heartbeat(
    fleet: Fleet,
    tenant: Tenant,
    agent: Agent,
    peer: Agent,
    new_agent: Callable[..., Agent],
    scripted: Script,
    settings: Any,
) -> None:
    model = scripted(REST, repeat=True)
    later = new_agent(tenant, name="Cleo")
    for other in (peer, later):
        follow(agent, "memory.goal_created", peer=other)
        add_goals(other, *(f"{number} {'reef ' * 20}" for number in range(3)))
    settings.ARBOR_MODEL_CONTEXT = 4_096

    def sources_shown() -> list[bool]:
        run_at_once(fleet, agent)
        text = model.requests[-1].messages[0].content
        return [f"memory.goal_created (about {name})" in text for name in ("Ben", "Cleo")]

    assert sources_shown() == [True, False]
    with tenant_transaction(agent.tenant_id):
        (cut,) = AuditEvent.objects.filter(agent_id=agent.id, action=AuditAction.TRUNCATED)
    assert cut.detail["sources"]["signals"]["entries"] == 1
    assert sources_shown() == [False, True]
    assert sources_shown() == [False, False]


def test_unwanted_signals_are_skipped_for_good(
    fleet: Fleet, agent: Agent, peer: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal_reading, "_UNWANTED_BATCHES", 3)
    scripted(REST, repeat=True)
    row = follow(agent, "memory.recalled", peer=peer)
    add_goals(peer, "One reef", "Two lamps", "Three ropes")
    assert signals_of(run_at_once(fleet, agent)) == []
    with tenant_transaction(agent.tenant_id):
        assert SignalSubscription.objects.get(id=row.id).position > row.position


def test_subscriptions_cost_two_statements(fleet: Fleet, agent: Agent, peer: Agent, scripted: Script) -> None:
    scripted(REST, repeat=True)

    heartbeat_statements(fleet, agent)
    without = heartbeat_statements(fleet, agent)
    follow(agent, "memory.goal_created", peer=peer)
    nothing_new = heartbeat_statements(fleet, agent)
    add_goals(peer, "Chart the reef")
    with_news = heartbeat_statements(fleet, agent)
    assert len(nothing_new) == len(without) + 1
    assert len(with_news) == len(without) + 2


@pytest.mark.parametrize(
    ("wanted", "fault"),
    [
        (NewSubscription(names=[], source=SignalSource.OWN), "has 1 to 20 names"),
        (NewSubscription(names=["m" * 1_000], source=SignalSource.OWN), "characters, got 1,000$"),
        (NewSubscription(names=["memory.nothing"], source=SignalSource.OWN), "there is no signal"),
        (NewSubscription(names=["memory.goal_*"], source=SignalSource.SHARED), "all others about one agent"),
        (
            NewSubscription(names=["memory.goal_*"], source=SignalSource.PEER),
            "name another agent as the peer",
        ),
        (
            NewSubscription(names=["memory.goal_*"], source=SignalSource.OWN, peer_id=UUID(int=1)),
            "a peer is named with the source peer only",
        ),
    ],
)
def test_wrong_subscriptions_are_refused(agent: Agent, wanted: NewSubscription, fault: str) -> None:
    with tenant_transaction(agent.tenant_id), pytest.raises(Invalid, match=fault):
        subscribe(agent_id=agent.id, wanted=wanted, actor=ACTOR)


def test_the_order_of_its_names_makes_no_other_subscription(agent: Agent) -> None:
    names = ["memory.goal_created", "memory.goal_progress"]
    follow(agent, *names, own=True)
    with pytest.raises(
        Invalid, match=r"is subscribed to memory\.goal_progress, memory\.goal_created already"
    ):
        follow(agent, *reversed(names), own=True)


def test_a_subscription_is_unique_bounded_and_audited(agent: Agent, peer: Agent) -> None:
    row = follow(agent, "memory.goal_created", peer=peer)
    with pytest.raises(Invalid, match=r"is subscribed to memory\.goal_created already"):
        follow(agent, "memory.goal_created", peer=peer)
    with tenant_transaction(agent.tenant_id):
        for _ in range(MAX_SUBSCRIPTIONS - 1):
            SignalSubscription.objects.create(
                tenant_id=agent.tenant_id, agent=agent, names=["x"], position=UUID(int=0), created_by=ACTOR
            )
    with pytest.raises(LimitReached, match="at most 20 subscriptions, and Ada has them"):
        follow(agent, "memory.recalled", own=True)
    with tenant_transaction(agent.tenant_id):
        unsubscribe(agent_id=agent.id, subscription_id=row.id, actor=ACTOR)
        with pytest.raises(NotFound, match="has no subscription"):
            unsubscribe(agent_id=agent.id, subscription_id=row.id, actor=ACTOR)
        events = AuditEvent.objects.filter(action=AuditAction.SUBSCRIPTION_CHANGED).order_by("id")
        assert [event.message for event in events] == [
            "subscribed Ada: memory.goal_created about Ben",
            "unsubscribed Ada: memory.goal_created about Ben",
        ]


def test_a_peer_of_another_tenant_does_not_exist(
    agent: Agent, other_tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    stranger = new_agent(other_tenant, name="Eve")
    with pytest.raises(NotFound, match="there is no agent"):
        follow(agent, "memory.goal_created", peer=stranger)


TEMPLATE = """---
name: Watcher
version: "1"
character: {{name: Watcher}}
actions: [rest]
subscriptions: [{{signals: ["{names}"], source: self}}]
---
"""


def test_agents_begin_with_the_subscriptions_of_their_template(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        add_template(text=TEMPLATE.format(names="memory.goal_*"), actor=ACTOR)
        watcher = create_agent(name="Ines", template_name="Watcher", actor=ACTOR)
        (row,) = subscriptions_of(watcher.id)
        assert (row.names, source_of(row)) == (["memory.goal_*"], SignalSource.OWN)
        with pytest.raises(TemplateInvalid, match="subscriptions: there is no signal"):
            add_template(text=TEMPLATE.format(names="memory.nothing"), actor=ACTOR)
