"""Peers of an agent: stored and judged by dealings, and deleted when there are too many."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.agents.services.sealed_percepts import seal_percept
from apps.audit.models import AuditAction, AuditEvent
from apps.contacts.models import ChatSession
from apps.memories.models import Memory
from apps.selves.models import (
    BeliefEvidence,
    Experience,
    PeerModel,
    Proposal,
    SelfChange,
)
from apps.selves.services import peers
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.heartbeat.needs import Meeting
from tests.integration.heartbeats.conftest import REST, last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, reply_of


def note_of(peer: str, **values: Any) -> dict[str, Any]:
    return {
        "peer": peer,
        "outcome": "success",
        "competence": 0.9,
        "reliability": None,
        "interests": [],
    } | values


def send_sealed(agent: Agent, sender: Agent, text: str = "The eels have left.") -> None:
    """Send the agent a sealed message of another one."""
    with tenant_transaction(agent.tenant_id):
        seal_percept(sender_id=sender.id, receiver_id=agent.id, content=text, detail={}).save(
            force_insert=True
        )


def peers_of(agent: Agent) -> list[tuple[str, int, int]]:
    """Return the name, the interactions and the successes of each peer, oldest first."""
    with tenant_transaction(agent.tenant_id):
        rows = PeerModel.objects.filter(agent_id=agent.id).order_by("id")
        return list(rows.values_list("name", "interactions", "successes"))


def open_chat_as(agent: Agent, person: str) -> None:
    now = datetime.now(UTC)
    with tenant_transaction(agent.tenant_id):
        ChatSession.objects.create(
            tenant_id=agent.tenant_id, agent=agent, person=person, started_at=now, last_at=now
        )


def test_a_note_about_a_peer_is_stored_and_shown(
    heartbeats: HeartbeatRunner, agent: Agent, tenant: Tenant, new_agent: Any
) -> None:
    bo = new_agent(tenant, name="Bo")
    send_sealed(agent, bo, "The eels have left the river early this autumn.")
    heartbeats.run(
        reply_of(
            peer_notes=[note_of("bo", interests=["eels"])],
            memory_notes=[{"text": "The eels have left the river early this autumn."}],
        )
    )
    with tenant_transaction(agent.tenant_id):
        peer = PeerModel.objects.get(agent_id=agent.id)
        memory = Memory.objects.get(agent_id=agent.id, source__startswith="heartbeat:", type="semantic")
    assert (peer.peer_id, peer.interactions, peer.successes, peer.interests) == (bo.id, 1, 1, ["eels"])
    assert peer.competence == pytest.approx(0.62)
    (source,) = memory.detail["sources"]
    assert (source["kind"], source["reference"], source["trust"]) == ("agent", f"agent:{bo.id}", 0.5)
    prompt = heartbeats.run(REST)
    assert "Bo: trust 1.00 after 1 judged meeting, competence 0.62" in prompt


def test_a_note_about_an_unknown_peer_is_dropped_with_the_reason(
    heartbeats: HeartbeatRunner, agent: Agent, tenant: Tenant, new_agent: Any
) -> None:
    new_agent(tenant, name="Cy")
    open_chat_as(agent, "user:Dora")
    with tenant_transaction(agent.tenant_id):
        PeerModel.objects.create(tenant_id=agent.tenant_id, agent=agent, name="Eve")
    heartbeats.run(reply_of(peer_notes=[note_of(name) for name in ("Zoe", "cy", "dora", "EVE")]))
    with tenant_transaction(agent.tenant_id):
        interactions = dict(PeerModel.objects.filter(agent_id=agent.id).values_list("name", "interactions"))
    # A note about somebody who is known, and did nothing, is no meeting.
    assert interactions == {"dora": 1, "Eve": 0}
    assert [(item["path"], item["reason"]) for item in last_heartbeat(agent).dropped] == [
        ("peer_notes[0]", "Zoe never wrote to you nor talked with you"),
        ("peer_notes[1]", "cy never wrote to you nor talked with you"),
    ]


@pytest.mark.parametrize("wrote", [True, False])
def test_one_note_about_each_peer_counts_and_the_others_are_dropped(
    wrote: bool, heartbeats: HeartbeatRunner, agent: Agent, tenant: Tenant, new_agent: Any
) -> None:
    bo = new_agent(tenant, name="Bo")
    if wrote:
        send_sealed(agent, bo)
    else:
        with tenant_transaction(agent.tenant_id):
            PeerModel.objects.create(tenant_id=agent.tenant_id, agent=agent, name="Bo", peer_id=bo.id)
    heartbeats.run(
        reply_of(peer_notes=[note_of("bo"), note_of(str(bo.id), interests=["eels"]), note_of("Bo ")])
    )
    with tenant_transaction(agent.tenant_id):
        assert PeerModel.objects.get(agent_id=agent.id).interactions == wrote
    dropped = last_heartbeat(agent).dropped
    # Of a peer who wrote, the note by id counts before one by name.
    first = "peer_notes[0]" if wrote else "peer_notes[1]"
    assert [item["path"] for item in dropped] == [first, "peer_notes[2]"]
    assert {item["reason"] for item in dropped} == {"another note of this heartbeat about Bo counts"}


def test_the_oldest_peer_without_interactions_is_deleted_first(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "MAX_PEERS", 3)
    now = datetime.now(UTC)
    with tenant_transaction(agent.tenant_id):
        for place, (name, interactions) in enumerate({"Old": 0, "Friend": 4, "Late": 0}.items()):
            PeerModel.objects.create(
                tenant_id=agent.tenant_id,
                agent=agent,
                name=name,
                interactions=interactions,
                last_at=now - timedelta(days=9 - place),
            )
        peers.record_meetings(
            agent_id=agent.id,
            heartbeat_number=1,
            now=now,
            dealings=peers.Dealings(met=[Meeting(name="New", peer_id="", note=None)]),
        )
        assert set(PeerModel.objects.values_list("name", flat=True)) == {"Friend", "Late", "New"}
        event = AuditEvent.objects.get(action=AuditAction.TRUNCATED)
        assert event.detail == {"peers": ["Old"]}
        assert event.message == "forgot 1 peer: an agent has models of at most 3"


def test_notes_about_a_silent_peer_count_no_further_meeting(
    heartbeats: HeartbeatRunner, agent: Agent, tenant: Tenant, new_agent: Any
) -> None:
    bo = new_agent(tenant, name="Bo")
    send_sealed(agent, bo)
    heartbeats.run(reply_of(peer_notes=[note_of("Bo")]))
    for _ in range(3):
        heartbeats.run(reply_of(peer_notes=[note_of("Bo", competence=1.0, interests=["eels"])]))
    assert peers_of(agent) == [("Bo", 1, 1)]
    with tenant_transaction(agent.tenant_id):
        peer = PeerModel.objects.get(agent_id=agent.id)
    assert (peer.last_heartbeat_number, peer.interests) == (1, ["eels"])
    assert peer.competence > 0.8


@pytest.mark.parametrize("kind", ["user", "cli", "api", "token", "mcp"])
def test_one_conversation_is_one_meeting(heartbeats: HeartbeatRunner, agent: Agent, kind: str) -> None:
    for talks, interactions in ((True, 1), (False, 1), (True, 2), (False, 2)):
        if talks:
            open_chat_as(agent, f"{kind}:Dora")
        heartbeats.run(reply_of(peer_notes=[note_of("Dora")]))
        assert peers_of(agent) == [("Dora", interactions, interactions)]


@pytest.mark.parametrize("name", ["Weiß", "İpek"])
def test_a_person_is_known_by_a_name_in_any_script(
    heartbeats: HeartbeatRunner, agent: Agent, name: str
) -> None:
    for interactions in (1, 2):
        open_chat_as(agent, f"user:{name}")
        heartbeats.run(reply_of(peer_notes=[note_of(name)]))
        assert peers_of(agent) == [(name, interactions, interactions)]


@pytest.mark.parametrize("heir", ["agent", "person"])
@pytest.mark.parametrize("gone", [True, False])
def test_nobody_of_the_same_name_inherits_trust(
    heartbeats: HeartbeatRunner, agent: Agent, tenant: Tenant, new_agent: Any, heir: str, gone: bool
) -> None:
    bo = new_agent(tenant, name="Bo")
    send_sealed(agent, bo)
    heartbeats.run(reply_of(peer_notes=[note_of("Bo")]))
    with tenant_transaction(agent.tenant_id):
        if gone:
            PeerModel.objects.filter(agent_id=agent.id).update(peer=None)
        Agent.objects.filter(id=bo.id).update(name="Old Bo")
    if heir == "agent":
        send_sealed(agent, new_agent(tenant, name="Bo"))
    else:
        open_chat_as(agent, "user:Bo")
    heartbeats.run(reply_of(peer_notes=[note_of("Bo", outcome="failure")]))
    assert peers_of(agent) == [("Bo", 1, 1), ("Bo", 1, 0)]


def test_a_person_is_no_agent_of_the_same_name(
    heartbeats: HeartbeatRunner, agent: Agent, tenant: Tenant, new_agent: Any
) -> None:
    open_chat_as(agent, "user:Bo")
    heartbeats.run(reply_of(peer_notes=[note_of("Bo")]))
    send_sealed(agent, new_agent(tenant, name="Bo"))
    prompt = heartbeats.run(reply_of(peer_notes=[note_of("Bo", outcome="failure")]))
    assert peers_of(agent) == [("Bo", 1, 1), ("Bo", 1, 0)]
    assert "Bo, who has just written" not in prompt


def test_a_renamed_agent_stays_who_it_is(
    heartbeats: HeartbeatRunner, agent: Agent, tenant: Tenant, new_agent: Any
) -> None:
    bo = new_agent(tenant, name="Bo")
    for name in ("Bo", "Beau"):
        with tenant_transaction(agent.tenant_id):
            Agent.objects.filter(id=bo.id).update(name=name)
        send_sealed(agent, bo)
        heartbeats.run(reply_of(peer_notes=[note_of(name)]))
    assert peers_of(agent) == [("Beau", 2, 2)]


def test_a_resting_heartbeat_writes_no_rows_of_the_self(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(REST)
    with tenant_transaction(agent.tenant_id):
        for model in (Experience, Proposal, PeerModel, BeliefEvidence):
            assert not model.objects.exists(), model
        assert SelfChange.objects.get().what == "birth"
