"""Proposals decided by a heartbeat, and their effects on the self."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from apps.agents.models import Agent
from apps.heartbeats.services.situations.situation import load_situation
from apps.memories.models import Memory
from apps.memories.services.retention.archive import archive
from apps.selves.models import (
    Belief,
    IdentityAspect,
    Preference,
    Proposal,
    SelfChange,
)
from apps.selves.services.proposals import accept, find_proposals_too_soon
from apps.tenants.scope import tenant_transaction
from arbor.errors import LimitReached
from arbor.selves.proposals import MAX_DEFERRALS, ProposalKind, ProposalStatus
from arbor.selves.values import MAX_OF_KIND, AspectKind
from tests.factories.selves import BeliefFactory, IdentityAspectFactory, PreferenceFactory, SelfChangeFactory
from tests.integration.heartbeats.conftest import REST, last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, reply_of, store_fact
from tests.integration.heartbeats.selves.conftest import propose_change, reply_deciding, send_message
from tests.support.rows import reload


def test_an_accepted_proposal_becomes_an_aspect(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    proposal = propose_change(agent)
    prompt = heartbeats.run(reply_deciding(proposal, "accept"))
    assert re.search(rf"\[{proposal.id}\] identity \([\w ]+\), 70% sure", prompt)
    with tenant_transaction(agent.tenant_id):
        aspect = IdentityAspect.objects.get(content="I am patient with tides.")
        change = SelfChange.objects.get(proposal_id=proposal.id)
    assert (change.what, change.target_id) == ("aspect", aspect.id)
    assert change.decided_by == f"heartbeat:{last_heartbeat(agent).id}"
    assert reload(proposal).status == ProposalStatus.ACCEPTED
    assert "I am patient with tides." in heartbeats.run(REST)


def test_a_rejected_proposal_changes_no_row_and_stores_the_reason(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    proposal = propose_change(agent)
    heartbeats.run(reply_deciding(proposal, "reject", "I am not"))
    rejected = reload(proposal)
    assert (rejected.status, rejected.reason) == (ProposalStatus.REJECTED, "I am not")
    with tenant_transaction(agent.tenant_id):
        assert not IdentityAspect.objects.filter(content=proposal.content).exists()


def test_a_deferred_proposal_is_shown_again(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    proposal = propose_change(agent)
    heartbeats.run(reply_deciding(proposal, "defer"))
    assert reload(proposal).deferrals == 1
    assert "put off once" in heartbeats.run(REST)


def test_an_agent_accepts_one_aspect_in_four_hours(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    first, second = propose_change(agent), propose_change(agent, content="Storms please me.")
    heartbeats.run(reply_deciding(first, "accept"))
    heartbeats.run(reply_deciding(second, "accept"))
    later = reload(second)
    assert (later.status, later.deferrals) == (ProposalStatus.PENDING, 0)
    (dropped,) = last_heartbeat(agent).dropped
    assert dropped["path"] == "proposal_decisions[0]"
    assert "changes slowly" in dropped["reason"]


def test_a_proposal_without_room_expires_when_accepted_in_vain(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    with tenant_transaction(agent.tenant_id):
        for number in range(MAX_OF_KIND):
            IdentityAspectFactory(agent=agent, kind=AspectKind.TRAIT, content=f"Trait {number}")
    proposal = propose_change(agent, content="tidal", change={"aspect": "trait"})
    for _ in range(MAX_DEFERRALS):
        heartbeats.run(reply_deciding(proposal, "accept"))
    (dropped,) = last_heartbeat(agent).dropped
    assert "at most 15 of the kind trait" in dropped["reason"]
    expired = reload(proposal)
    assert expired.status == ProposalStatus.EXPIRED
    assert expired.reason.startswith("put off 5 times; an agent has at most 15")


def store_past_change(
    agent: Agent, what: str, *, hours: float, by: str = "heartbeat:1", **fields: Any
) -> None:
    """Store a change of the self that was decided some hours ago."""
    at = datetime.now(UTC) - timedelta(hours=hours)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timezone, "now", lambda: at)
        SelfChangeFactory(agent=agent, what=what, decided_by=by, **fields)


PREFERENCE = {"key": "tone", "value": "brief"}


@pytest.mark.parametrize(
    ("kind", "changes", "is_shown"),
    [
        ("identity", [("aspect", 1, "heartbeat:1")], False),
        ("identity", [("aspect", 5, "heartbeat:1")], True),
        ("identity", [("aspect", 1, "cli:ann")], True),
        ("identity", [("belief", 1, "heartbeat:1")], True),
        ("identity", [("belief", hours, "heartbeat:1") for hours in (5, 10, 23)], False),
        ("preference", [("preference", 1, "heartbeat:1")], False),
        ("preference", [("preference", 5, "heartbeat:1")], True),
        ("belief", [("belief", 1, "heartbeat:1")], False),
        ("belief", [("belief", 5, "heartbeat:1")], True),
        ("fact", [("aspect", hours, "heartbeat:1") for hours in (1, 2, 3)], True),
    ],
)
def test_only_acceptable_proposals_are_shown(
    heartbeats: HeartbeatRunner,
    agent: Agent,
    kind: str,
    changes: list[tuple[str, float, str]],
    is_shown: bool,
) -> None:
    with tenant_transaction(agent.tenant_id):
        belief = BeliefFactory(agent=agent, confidence=0.7)
        preference = PreferenceFactory(agent=agent, key=PREFERENCE["key"])
        targets = {"belief": {"target_id": belief.id}, "preference": {"target_id": preference.id}}
        for what, hours, by in changes:
            store_past_change(agent, what, hours=hours, by=by, **targets.get(what, {}))
    by_kind: dict[str, dict[str, Any]] = {
        "belief": {"belief": str(belief.id), "confidence": 0.6},
        "preference": PREFERENCE,
    }
    change = by_kind.get(kind, {})
    proposal = propose_change(agent, kind=ProposalKind(kind), change=change)
    assert (str(proposal.id) in heartbeats.run(REST)) is is_shown
    with tenant_transaction(agent.tenant_id):
        shown = load_situation(agent.id)["proposals"]
        # The rule is the one that a decision obeys.
        assert [found["id"] for found in shown] == [str(proposal.id)] * is_shown
        assert bool(find_proposals_too_soon(agent_id=agent.id, proposals=[proposal])) is not is_shown
        try:
            accept(proposal_id=proposal.id, decided_by="heartbeat:2")
        except LimitReached:
            assert not is_shown
        else:
            assert is_shown


def test_a_decision_about_an_unknown_proposal_is_dropped(
    heartbeats: HeartbeatRunner, agent: Agent, other_tenant: Any, new_agent: Any
) -> None:
    foreign = propose_change(new_agent(other_tenant, name="Bo"))
    heartbeats.run(
        reply_of(
            proposal_decisions=[
                {"proposal_id": "nonsense", "decision": "accept", "reason": ""},
                {"proposal_id": str(foreign.id), "decision": "accept", "reason": ""},
            ]
        )
    )
    assert [item["path"] for item in last_heartbeat(agent).dropped] == [
        "proposal_decisions[0]",
        "proposal_decisions[1]",
    ]


@pytest.mark.parametrize(
    ("kind", "memory_type"),
    [("fact", "semantic"), ("insight", "semantic"), ("learning", "procedural"), ("pattern", "strategic")],
)
def test_an_accepted_proposal_is_remembered_by_its_kind(
    heartbeats: HeartbeatRunner, agent: Agent, kind: str, memory_type: str
) -> None:
    proposal = propose_change(agent, kind=ProposalKind(kind), content="Nets dry fastest at noon.", change={})
    heartbeats.run(reply_deciding(proposal, "accept"))
    with tenant_transaction(agent.tenant_id):
        memory = Memory.objects.get(content="Nets dry fastest at noon.")
    assert memory.type == memory_type
    if memory_type == "semantic":
        assert memory.detail["confidence"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("sources", "role", "trust", "believed"),
    [
        # Four memories of one stranger are one source.
        ([[{"kind": "agent", "reference": "agent:v", "trust": 0.5}]] * 4, "", 0.575, 0.575),
        ([[{"kind": "url", "reference": name, "trust": 0.5}] for name in "ab"], "", 0.575, 0.7875),
        # A doubted memory carries no further than it is trusted, however many sources it has.
        ([[{"kind": "url", "reference": name, "trust": 0.7} for name in "ab"]], "", 0.46, 0.46),
        ([None] * 3, "Vega", 0.405, 0.405),
        # The agent's own notes are one source, its own.
        ([None] * 3, "agent", 1.0, 0.83),
    ],
)
@pytest.mark.parametrize("kind", ["fact", "insight", "preconscious"])
def test_an_accepted_fact_is_trusted_as_its_evidence(
    agent: Agent, kind: str, sources: list[Any], role: str, trust: float, believed: float
) -> None:
    ids = [store_fact(agent, f"Sign {number} of rain.") for number in range(len(sources))]
    with tenant_transaction(agent.tenant_id):
        for memory_id, own in zip(ids, sources, strict=True):
            detail = {"sources": own} if own else {}
            Memory.objects.filter(id=memory_id).update(trust=trust, role=role, detail=detail)
    proposal = propose_change(
        agent, kind=ProposalKind(kind), content="It rains.", change={}, evidence=ids, confidence=0.9
    )
    assert accept_and_trust(agent, proposal) == pytest.approx(believed)


def test_a_retired_memory_is_no_evidence(agent: Agent) -> None:
    ids = [store_fact(agent, "A sign of rain.")]
    proposal = propose_change(
        agent, kind=ProposalKind.FACT, content="It rains.", change={}, evidence=ids, source="consolidation"
    )
    with tenant_transaction(agent.tenant_id):
        archive(memory_ids=[UUID(text) for text in ids], reason="a test", actor="test")
    assert accept_and_trust(agent, proposal) == pytest.approx(0.15)


def test_a_fact_that_a_person_proposes_is_trusted_as_a_users(agent: Agent) -> None:
    proposal = propose_change(agent, kind=ProposalKind.FACT, content="It rains.", change={})
    assert accept_and_trust(agent, proposal) == pytest.approx(0.745)


def accept_and_trust(agent: Agent, proposal: Proposal) -> float:
    """Accept the proposal; return the trust of the memory that it becomes."""
    with tenant_transaction(agent.tenant_id):
        accept(proposal_id=proposal.id, decided_by="cli:ann")
        stored: Memory = Memory.objects.get(source=f"proposal:{proposal.id}")
    return stored.trust


def test_a_preference_that_is_accepted_is_shown(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    change = {"key": "tone", "value": "short sentences"}
    proposal = propose_change(agent, kind=ProposalKind.PREFERENCE, content="Write briefly.", change=change)
    heartbeats.run(reply_deciding(proposal, "accept"))
    with tenant_transaction(agent.tenant_id):
        assert Preference.objects.get(agent_id=agent.id).value == "short sentences"
    assert "tone: short sentences" in heartbeats.run(REST)


def fill_self(agent: Agent) -> None:
    """Give the agent more of everything than its prompt shows, all of it firm and long ago."""
    for number in range(16):
        IdentityAspectFactory(agent=agent, content=f"I keep the log of pier {number}.", stability=0.6)
        BeliefFactory(agent=agent, statement=f"Pier {number} is sound.", stability=0.9, confidence=0.9)
        PreferenceFactory(agent=agent, key=f"a{number}", value="as always")
    IdentityAspectFactory(agent=agent, content="I fear the deep water.", stability=0.1)
    BeliefFactory(agent=agent, statement="Deep water hides wrecks.", stability=0.1, confidence=0.2)
    PreferenceFactory(agent=agent, key="swim", value="never in deep water")
    long_ago = datetime.now(UTC) - timedelta(days=90)
    for model in (IdentityAspect, Belief, Preference):
        model.objects.filter(agent_id=agent.id).update(updated_at=long_ago)


RELEVANT = ("I fear the deep water.", "Deep water hides wrecks.", "swim: never in deep water")


def test_accepted_changes_are_shown_beside_a_firm_self(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        fill_self(agent)
    new: list[tuple[str, dict[str, Any]]] = [
        ("I am patient with tides.", {}),
        (
            "Storms end at dawn.",
            {"kind": ProposalKind.BELIEF, "change": {"category": "world"}, "confidence": 0.5},
        ),
        (
            "Write briefly.",
            {"kind": ProposalKind.PREFERENCE, "change": {"key": "tone", "value": "short sentences"}},
        ),
    ]
    for content, given in new:
        heartbeats.run(reply_deciding(propose_change(agent, content=content, **given), "accept"))
    prompt = heartbeats.run(REST)
    for shown in ("I am patient with tides.", "Storms end at dawn.", "tone: short sentences"):
        assert shown in prompt
    assert not [shown for shown in RELEVANT if shown in prompt]


def test_a_relevant_part_of_the_self_is_shown(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        fill_self(agent)
    send_message(agent, "Do you dare to swim in deep water among wrecks, or do you fear it?")
    prompt = heartbeats.run(REST)
    assert [shown for shown in RELEVANT if shown in prompt] == [*RELEVANT]


def test_an_insight_becomes_a_proposal_for_a_later_heartbeat(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    own = store_fact(agent, "I kept watch through the night.")
    insight = {"kind": "self_concept", "content": "I am a watcher.", "confidence": 0.8, "evidence": [own]}
    unsure = {**insight, "content": "I may be a sailor.", "confidence": 0.4}
    baseless = {**insight, "content": "I am a king.", "evidence": [str(agent.id)]}
    heartbeats.run(reply_of(identity_insights=[insight, unsure, baseless]))
    with tenant_transaction(agent.tenant_id):
        proposal = Proposal.objects.get(agent_id=agent.id)
        assert not IdentityAspect.objects.filter(content="I am a watcher.").exists()
    assert (proposal.kind, proposal.change, proposal.evidence) == (
        "identity",
        {"aspect": "self_concept"},
        [own],
    )
    assert [item["path"] for item in last_heartbeat(agent).dropped] == [
        "identity_insights[1]",
        "identity_insights[2]",
    ]
    prompt = heartbeats.run(reply_deciding(proposal, "accept"))
    assert "I am a watcher." in prompt
    assert "I am a watcher." in heartbeats.run(REST)
