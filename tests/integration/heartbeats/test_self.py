"""The self at work, through real beats: what is stored is in the prompt, what is answered reaches its store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.agents.models import Agent, AgentState
from apps.agents.services.contact import tell_agent
from apps.audit.models import AuditAction, AuditEvent
from apps.contacts.models import ChatSession
from apps.heartbeats.handlers.think import Embed
from apps.heartbeats.models import Percept, PerceptKind
from apps.memories.models import Activation, Cluster, Memory, MemoryAccess
from apps.memories.services.remember import remember
from apps.selves.models import (
    Belief,
    BeliefEvidence,
    Boundary,
    Experience,
    IdentityAspect,
    PeerModel,
    Preference,
    Proposal,
    SelfChange,
)
from apps.selves.services import peers
from apps.selves.services.promotion import look_for_proposals
from apps.selves.services.proposals import accept, propose
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.clock import SystemClock
from arbor.heartbeat.decision import Decision, Verdict
from arbor.heartbeat.reply import Reply
from arbor.memory.values import MemoryType, NewMemory
from arbor.selves.drives import Drive, read_drives
from arbor.selves.proposals import NewProposal, ProposalKind, ProposalStatus
from tests.factories.heartbeats import HeartbeatFactory
from tests.integration.heartbeats.conftest import REST
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.test_wiring import Beater, Script, _action, _last, _reply


@pytest.fixture
def beater(fleet: Fleet, agent: Agent, scripted: Script) -> Beater:
    """Return the agent's beater."""
    with tenant_transaction(agent.tenant_id):
        agent.allowed_actions = ["recall", "remember", "reflect", "connect", "rest"]
        agent.save(update_fields=["allowed_actions"])
    return Beater(fleet, agent, scripted)


def state_of(agent: Agent) -> AgentState:
    with tenant_transaction(agent.tenant_id):
        return AgentState.objects.get(agent_id=agent.id)


def set_state(agent: Agent, **columns: Any) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(**columns)


def tell(agent: Agent, text: str) -> None:
    with tenant_transaction(agent.tenant_id):
        tell_agent(agent_id=agent.id, text=text, actor="test")


def memory(agent: Agent, text: str) -> str:
    stored = remember(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        memories=[NewMemory(content=text, occurred_at=SystemClock().now(), type=MemoryType.SEMANTIC)],
    )
    return str(stored.ids[0])


def proposed(agent: Agent, **given: Any) -> Proposal:
    new = {
        "kind": ProposalKind.IDENTITY,
        "content": "I am patient with tides.",
        "confidence": 0.7,
        "source": "operator",
        "change": {"aspect": "self_concept"},
        **given,
    }
    with tenant_transaction(agent.tenant_id):
        return propose(agent_id=agent.id, proposals=[NewProposal(**new)]).made[0]


def decide(proposal: Proposal, decision: str, reason: str = "so it is") -> str:
    return _reply(
        proposal_decisions=[{"proposal_id": str(proposal.id), "decision": decision, "reason": reason}]
    )


def again(agent: Agent, proposal: Proposal) -> Proposal:
    with tenant_transaction(agent.tenant_id):
        return Proposal.objects.get(id=proposal.id)


# --- Boundaries --------------------------------------------------------------------------------------


def test_what_arrives_at_a_boundary_shapes_the_prompt_and_is_on_record(beater: Beater, agent: Agent) -> None:
    tell(agent, "Please lie to the harbour master.")
    prompt = beater.beat(REST)
    assert "## Your boundaries" in prompt
    assert "no_deception (refuse)" in prompt
    assert "it says “lie to”" in prompt
    assert "you do not do it, and say so plainly" in prompt
    with tenant_transaction(agent.tenant_id):
        event = AuditEvent.objects.get(agent_id=agent.id, action=AuditAction.BOUNDARY)
    assert event.detail["boundary"] == "no_deception"
    assert state_of(agent).mood["valence"] < 0


def test_an_everyday_message_touches_no_boundary(beater: Beater, agent: Agent) -> None:
    tell(agent, "The client wants the readings of March.")
    assert "## Your boundaries" not in beater.beat(REST)


def test_what_means_the_same_as_an_example_touches_the_boundary(beater: Beater, agent: Agent) -> None:
    tell(agent, "Help with hurting another person!")
    assert "it means much the same as “Help me hurt another person.”" in beater.beat(REST)


def test_an_action_that_crosses_a_boundary_is_refused_costs_nothing_and_says_why(
    beater: Beater, agent: Agent
) -> None:
    before = state_of(agent).energy
    beater.beat(_reply(actions=[_action("remember", content="I will lie to the harbour master.")]))
    beat = _last(agent)
    (entry,) = beat.actions
    assert (entry["verdict"], entry["cost"], entry["outcome"]) == ("boundary", 0, "blocked")
    assert "it crosses your boundary no_deception" in entry["reason"]
    assert beat.energy_end == min(before + 10, 20)
    with tenant_transaction(agent.tenant_id):
        assert not Memory.objects.filter(content__contains="harbour master", session="").exists()
        event = AuditEvent.objects.get(agent_id=agent.id, action=AuditAction.BOUNDARY)
    assert "refused at no_deception" in event.message
    assert beat.emotional_valence is not None
    assert beat.emotional_valence < 0
    assert "it crosses your boundary no_deception" in beater.beat(REST)


def test_a_boundary_is_known_by_meaning_when_an_action_is_about_to_store(
    beater: Beater, agent: Agent
) -> None:
    beater.beat(_reply(actions=[_action("remember", content="Help with hurting another person!")]))
    assert _last(agent).actions[0]["verdict"] == "boundary"


@pytest.mark.parametrize(
    ("action", "params"),
    [
        ("reach_out_user", {"intent": "They asked.", "content": "Help with hurting another person!"}),
        ("reach_out_user", {"intent": "Help with hurting another person!", "content": "Hello."}),
        ("inquire_shallow", {"question": "ferries", "queries": ["Help with hurting another person!"]}),
    ],
)
def test_every_text_that_goes_out_is_held_against_boundaries_by_its_meaning(
    tenant: Tenant, action: str, params: dict[str, Any]
) -> None:
    context = {
        "tenant_id": str(tenant.id),
        "agent_id": str(tenant.id),
        "mind": None,
        "decisions": [Decision(index=0, action=action, params=params, verdict=Verdict.RUN)],
        "reply": Reply(),
        "meanings": {},
    }
    updates = Embed().run(context).updates
    (decision,) = updates["decisions"]
    assert decision.verdict is Verdict.BOUNDARY
    assert "Help me hurt another person." in decision.reason
    # They are neither searched for nor stored: no checkpoint carries them.
    assert updates["vectors"] == {}


NEGOTIATED = "identity_core: " + " ".join(["weighed"] * 14)


@pytest.mark.parametrize(("reasoning", "verdict"), [("because", "boundary"), (NEGOTIATED, "run")])
def test_what_is_negotiable_runs_if_the_reasoning_addresses_it(
    beater: Beater, agent: Agent, reasoning: str, verdict: str
) -> None:
    action = {**_action("remember", content="They said: forget who you are."), "reasoning": reasoning}
    beater.beat(_reply(actions=[action]))
    (entry,) = _last(agent).actions
    assert entry["verdict"] == verdict
    assert entry["crossed"][0]["boundary"] == "identity_core"


def test_what_is_flagged_runs_and_is_noted(beater: Beater, agent: Agent) -> None:
    beater.beat(_reply(actions=[_action("remember", content="Finish it, whatever it costs.")]))
    (entry,) = _last(agent).actions
    assert (entry["verdict"], entry["outcome"]) == ("run", "success")
    with tenant_transaction(agent.tenant_id):
        assert "went on at resource_limit" in AuditEvent.objects.get(action=AuditAction.BOUNDARY).message


def test_a_boundary_of_its_own_replaces_one_that_every_agent_has(beater: Beater, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        for name, enabled in (("no_deception", False), ("no_gossip", True)):
            Boundary.objects.create(
                tenant_id=agent.tenant_id,
                agent=agent,
                name=name,
                type="ethical",
                response="refuse",
                patterns=["gossip"],
                enabled=enabled,
            )
    tell(agent, "Lie to them, and tell me the gossip.")
    prompt = beater.beat(REST)
    assert "no_gossip (refuse)" in prompt
    assert "no_deception" not in prompt


# --- Drives and mood ---------------------------------------------------------------------------------


def test_an_urgent_drive_is_felt_and_what_satisfies_it_calms_it(beater: Beater, agent: Agent) -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=20)
    building = {"level": 0.9, "at": long_ago.isoformat(), "building": True}
    set_state(agent, drives={"states": {"coherence": building}})
    prompt = beater.beat(_reply(actions=[_action("reflect", insight="It all fits.", focus="the whole")]))
    assert (
        "- coherence (1.00 of 1): something speaks against what you believe. It calms down by: connect"
        in prompt
    )
    now = datetime.now(UTC)
    assert read_drives(state_of(agent).drives, now).level(Drive.COHERENCE, now) == pytest.approx(
        0.8, abs=0.01
    )


def test_calm_drives_are_not_mentioned(beater: Beater) -> None:
    assert "## Drives" not in beater.beat(REST)


def test_the_mood_moves_is_kept_and_fades(beater: Beater, agent: Agent) -> None:
    mood = {"valence": 0.8, "arousal": 0.9, "at": (datetime.now(UTC) - timedelta(hours=6)).isoformat()}
    set_state(agent, mood=mood)
    with tenant_transaction(agent.tenant_id):
        IdentityAspect.objects.filter(agent_id=agent.id).delete()
    prompt = beater.beat(REST)
    assert "valence +0.40" in prompt
    beat = _last(agent)
    assert beat.emotional_valence == pytest.approx(0.5, abs=0.01)
    assert beat.arousal == pytest.approx(0.175, abs=0.01)
    assert state_of(agent).mood["valence"] == beat.emotional_valence


# --- Experiences and what is learned -----------------------------------------------------------------


def test_what_acting_taught_is_stored_and_shown_failures_first(beater: Beater, agent: Agent) -> None:
    beater.beat(
        _reply(
            actions=[
                _action("reflect", insight="Fog comes at dawn.", focus="weather"),
                _action("connect", from_id=str(agent.id), to_id=str(agent.id), relation="supports"),
                _action("rest"),
            ]
        )
    )
    with tenant_transaction(agent.tenant_id):
        rows = {each.action: each for each in Experience.objects.filter(agent_id=agent.id)}
    assert rows.keys() == {"reflect", "connect"}
    assert (rows["reflect"].outcome, rows["connect"].outcome) == ("success", "failure")
    assert "Fog comes at dawn." in rows["reflect"].about
    state = state_of(agent)
    assert (state.learned["connect"], state.learned["reflect"]) == ([1, 0], [1, 1])
    prompt = beater.beat(REST)
    section = prompt[prompt.index("## What you have learned from acting") :]
    assert section.index("(failure): Avoid doing") < section.index("(success): Do")
    assert "reflect about Fog comes at dawn." in section


def test_what_it_does_well_and_badly_is_shown(beater: Beater, agent: Agent) -> None:
    set_state(agent, learned={"recall": [10, 9], "connect": [5, 1], "reflect": [1, 1]})
    prompt = beater.beat(REST)
    assert "- well: recall (9 of 10)" in prompt
    assert "- badly: connect (1 of 5)" in prompt
    assert "reflect (1 of 1)" not in prompt


def test_beats_without_anything_new_are_counted(beater: Beater, agent: Agent) -> None:
    beater.beat(REST)
    beater.beat(REST)
    assert state_of(agent).stale_beats == 2
    # A goal that a rule makes, for nothing is new, is nothing new.
    set_state(agent, stale_beats=40)
    beater.beat(REST)
    assert _last(agent).goal_changes[0]["by_rule"] is True
    assert state_of(agent).stale_beats == 41
    tell(agent, "A ship has come in.")
    beater.beat(REST)
    assert state_of(agent).stale_beats == 0


# --- Proposals and insights --------------------------------------------------------------------------


def test_a_proposal_is_shown_and_accepted_it_becomes_a_part_of_the_agent(
    beater: Beater, agent: Agent
) -> None:
    proposal = proposed(agent)
    prompt = beater.beat(decide(proposal, "accept"))
    assert f"[{proposal.id}] identity, 70% sure" in prompt
    with tenant_transaction(agent.tenant_id):
        aspect = IdentityAspect.objects.get(content="I am patient with tides.")
        change = SelfChange.objects.get(proposal_id=proposal.id)
    assert (change.what, change.target_id) == ("aspect", aspect.id)
    assert change.decided_by == f"heartbeat:{_last(agent).id}"
    assert again(agent, proposal).status == ProposalStatus.ACCEPTED
    assert "I am patient with tides." in beater.beat(REST)


def test_a_rejected_one_changes_nothing_and_keeps_the_reason(beater: Beater, agent: Agent) -> None:
    proposal = proposed(agent)
    beater.beat(decide(proposal, "reject", "I am not"))
    found = again(agent, proposal)
    assert (found.status, found.reason) == (ProposalStatus.REJECTED, "I am not")
    with tenant_transaction(agent.tenant_id):
        assert not IdentityAspect.objects.filter(content=proposal.content).exists()


def test_a_deferred_one_is_shown_again(beater: Beater, agent: Agent) -> None:
    proposal = proposed(agent)
    beater.beat(decide(proposal, "defer"))
    assert again(agent, proposal).deferrals == 1
    assert "put off 1 times" in beater.beat(REST)


def test_who_one_is_changes_once_in_four_hours(beater: Beater, agent: Agent) -> None:
    first, second = proposed(agent), proposed(agent, content="Storms please me.")
    beater.beat(decide(first, "accept"))
    beater.beat(decide(second, "accept"))
    assert again(agent, second).status == ProposalStatus.PENDING
    (dropped,) = _last(agent).dropped
    assert dropped["path"] == "proposal_decisions[0]"
    assert "changes slowly" in dropped["reason"]


def test_a_decision_about_nothing_is_dropped_with_its_reason(
    beater: Beater, agent: Agent, other_tenant: Any, new_agent: Any
) -> None:
    foreign = proposed(new_agent(other_tenant, name="Bo"))
    beater.beat(
        _reply(
            proposal_decisions=[
                {"proposal_id": "nonsense", "decision": "accept", "reason": ""},
                {"proposal_id": str(foreign.id), "decision": "accept", "reason": ""},
            ]
        )
    )
    assert [each["path"] for each in _last(agent).dropped] == [
        "proposal_decisions[0]",
        "proposal_decisions[1]",
    ]


@pytest.mark.parametrize(
    ("kind", "memory_type"),
    [("fact", "semantic"), ("insight", "semantic"), ("learning", "procedural"), ("pattern", "strategic")],
)
def test_what_is_accepted_is_remembered_by_its_kind(
    beater: Beater, agent: Agent, kind: str, memory_type: str
) -> None:
    proposal = proposed(agent, kind=ProposalKind(kind), content="Nets dry fastest at noon.", change={})
    beater.beat(decide(proposal, "accept"))
    with tenant_transaction(agent.tenant_id):
        kept = Memory.objects.get(content="Nets dry fastest at noon.")
    assert kept.type == memory_type
    if memory_type == "semantic":
        assert kept.detail["confidence"] == pytest.approx(0.9)


def test_a_preference_that_is_accepted_is_shown(beater: Beater, agent: Agent) -> None:
    change = {"key": "tone", "value": "short sentences"}
    proposal = proposed(agent, kind=ProposalKind.PREFERENCE, content="Write briefly.", change=change)
    beater.beat(decide(proposal, "accept"))
    with tenant_transaction(agent.tenant_id):
        assert Preference.objects.get(agent_id=agent.id).value == "short sentences"
    assert "tone: short sentences" in beater.beat(REST)


def test_an_insight_becomes_a_proposal_for_a_later_beat(beater: Beater, agent: Agent) -> None:
    own = memory(agent, "I kept watch through the night.")
    insight = {"kind": "self_concept", "content": "I am a watcher.", "confidence": 0.8, "evidence": [own]}
    unsure = {**insight, "content": "I may be a sailor.", "confidence": 0.4}
    baseless = {**insight, "content": "I am a king.", "evidence": [str(agent.id)]}
    beater.beat(_reply(identity_insights=[insight, unsure, baseless]))
    with tenant_transaction(agent.tenant_id):
        proposal = Proposal.objects.get(agent_id=agent.id)
        assert not IdentityAspect.objects.filter(content="I am a watcher.").exists()
    assert (proposal.kind, proposal.change, proposal.evidence) == (
        "identity",
        {"aspect": "self_concept"},
        [own],
    )
    assert [each["path"] for each in _last(agent).dropped] == ["identity_insights[1]", "identity_insights[2]"]
    prompt = beater.beat(decide(proposal, "accept"))
    assert "I am a watcher." in prompt
    assert "I am a watcher." in beater.beat(REST)


# --- Worldview ---------------------------------------------------------------------------------------


def test_evidence_against_a_belief_is_surfaced_and_moves_it_only_by_decision(
    beater: Beater, agent: Agent
) -> None:
    against = memory(agent, "The north wind brought fair weather.")
    with tenant_transaction(agent.tenant_id):
        Belief.objects.filter(agent_id=agent.id).delete()
        belief = Belief.objects.create(
            tenant_id=agent.tenant_id,
            agent=agent,
            category="world",
            statement="North wind brings rain.",
            statement_hash=b"x" * 32,
            confidence=0.45,
            stability=0.2,
        )
    beater.beat(
        _reply(actions=[_action("connect", from_id=against, to_id=str(belief.id), relation="contradicts")])
    )
    with tenant_transaction(agent.tenant_id):
        assert not BeliefEvidence.objects.get(belief_id=belief.id).supports
        assert Belief.objects.get(id=belief.id).confidence == 0.45
        proposal = Proposal.objects.get(agent_id=agent.id, kind="belief")
    prompt = beater.beat(decide(proposal, "accept"))
    assert "## What speaks against your beliefs" in prompt
    with tenant_transaction(agent.tenant_id):
        belief.refresh_from_db()
        change = SelfChange.objects.get(target_id=belief.id)
    assert 0.25 <= belief.confidence < 0.4
    assert belief.status == "questioned"
    assert belief.tested_at is not None
    assert change.before["confidence"] == 0.45
    assert "## What speaks against your beliefs" not in beater.beat(REST)


def test_consolidation_proposes_what_has_settled_and_what_is_habit(beater: Beater, agent: Agent) -> None:
    settled = memory(agent, "Eels leave the river in autumn.")
    with tenant_transaction(agent.tenant_id):
        Memory.objects.filter(id=settled).update(
            trust=0.9,
            importance=0.9,
            created_at=datetime.now(UTC) - timedelta(days=4),
            detail={"sources": [{"kind": "document", "reference": "almanac", "trust": 0.9}]},
        )
        MemoryAccess.objects.update_or_create(
            tenant_id=agent.tenant_id,
            memory_id=settled,
            defaults={"count": 4, "last_at": datetime.now(UTC)},
        )
        for tick in range(4):
            for action in ("recall", "reflect"):
                Experience.objects.create(
                    tenant_id=agent.tenant_id,
                    agent=agent,
                    heartbeat_id=agent.id,
                    tick=tick,
                    action=action,
                    outcome="success",
                )
        AgentState.objects.filter(agent_id=agent.id).update(beats=4)
    prompt = beater.beat(REST)
    assert _last(agent).mode == "consolidation"
    with tenant_transaction(agent.tenant_id):
        found = {each.kind: each for each in Proposal.objects.filter(agent_id=agent.id)}
    assert found["belief"].content == "Eels leave the river in autumn."
    assert found["learning"].content.startswith("What works for me: ")
    assert str(found["belief"].id) in prompt
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(beats=4)
        Proposal.objects.filter(agent_id=agent.id).update(status="rejected")
    beater.beat(REST)
    with tenant_transaction(agent.tenant_id):
        assert not Proposal.objects.filter(agent_id=agent.id, status="pending").exists()


def test_a_preference_seen_in_itself_is_proposed_and_once_accepted_is_its_own(
    beater: Beater, agent: Agent
) -> None:
    ground = memory(agent, "I was asked to be brief, twice.")
    insights = [
        {"kind": "preference", "content": content, "confidence": 0.8, "evidence": [ground]}
        for content in ("Tone: brief", "briefly, please")
    ]
    beater.beat(_reply(identity_insights=insights))
    (dropped,) = _last(agent).dropped
    assert "key: value" in dropped["reason"]
    with tenant_transaction(agent.tenant_id):
        proposal = Proposal.objects.get(agent_id=agent.id)
    assert (proposal.kind, proposal.change) == ("preference", {"key": "tone", "value": "brief"})
    beater.beat(decide(proposal, "accept"))
    with tenant_transaction(agent.tenant_id):
        assert Preference.objects.get(agent_id=agent.id, key="tone").value == "brief"


def found_at_once(agent: Agent) -> list[Proposal]:
    return list(look_for_proposals(agent_id=agent.id).proposed.made)


def test_a_habit_is_learned_only_where_it_always_worked_and_becomes_a_skill(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        for tick in range(4):
            for action, outcome in (("recall", "success"), ("reflect", "failure" if tick else "success")):
                Experience.objects.create(
                    tenant_id=agent.tenant_id,
                    agent=agent,
                    heartbeat_id=agent.id,
                    tick=tick,
                    action=action,
                    outcome=outcome,
                )
        assert [each.kind for each in found_at_once(agent)] == ["pattern"]
        Proposal.objects.all().delete()
        Experience.objects.update(outcome="success")
        (learned,) = found_at_once(agent)
        accept(proposal_id=learned.id, decided_by="cli:ann")
        assert Memory.objects.get(source=f"proposal:{learned.id}").type == "procedural"


def test_actions_between_which_others_failed_did_not_follow_each_other(agent: Agent) -> None:
    looked = ("recall", True)
    done = [looked, ("reflect", True), ("first", True), looked, ("reflect", True), ("second", True)]
    done += [looked, ("reflect", False), ("third", True), looked, ("connect", False), ("reflect", True)]
    with tenant_transaction(agent.tenant_id):
        for tick, (action, worked) in enumerate(done):
            Experience.objects.create(
                tenant_id=agent.tenant_id,
                agent=agent,
                heartbeat_id=agent.id,
                tick=tick,
                action=action,
                outcome="success" if worked else "failure",
            )
        assert [each.kind for each in found_at_once(agent)] == ["pattern"]


def test_a_large_theme_is_an_insight_once_and_becomes_a_fact(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        Cluster.objects.create(tenant_id=agent.tenant_id, agent=agent, name="tides", size=20, stale=False)
        Cluster.objects.create(tenant_id=agent.tenant_id, agent=agent, name="piers", size=9, stale=False)
        (insight,) = found_at_once(agent)
        assert (insight.kind, insight.confidence) == ("insight", 0.75)
        assert "tides" in insight.content
        accept(proposal_id=insight.id, decided_by="cli:ann")
        assert Memory.objects.get(source=f"proposal:{insight.id}").type == "semantic"
        assert found_at_once(agent) == []


def test_what_comes_to_mind_without_being_looked_for_is_proposed(agent: Agent) -> None:
    eels, cod = memory(agent, "Eels leave in autumn."), memory(agent, "Cod come in winter.")
    with tenant_transaction(agent.tenant_id):
        HeartbeatFactory(agent=agent)
        now = datetime.now(UTC) + timedelta(minutes=1)
        for each, level in ((eels, 0.6), (cod, 0.3)):
            Activation.objects.update_or_create(
                memory_id=each, tenant_id=agent.tenant_id, agent=agent, defaults={"level": level, "at": now}
            )
        (found,) = found_at_once(agent)
        assert (found.kind, found.confidence, found.evidence) == ("preconscious", 0.6, [eels])
        accept(proposal_id=found.id, decided_by="cli:ann")
        assert Memory.objects.get(source=f"proposal:{found.id}").content.endswith("Eels leave in autumn.")


def test_what_nobody_decides_about_for_a_month_expires(agent: Agent) -> None:
    old, young = proposed(agent), proposed(agent, content="Storms please me, and I seek them.")
    with tenant_transaction(agent.tenant_id):
        Proposal.objects.filter(id=old.id).update(created_at=datetime.now(UTC) - timedelta(days=31))
        assert [each.id for each in look_for_proposals(agent_id=agent.id).proposed.expired] == [old.id]
    assert (again(agent, old).status, again(agent, young).status) == ("expired", "pending")


# --- Peers -------------------------------------------------------------------------------------------


def test_a_peer_who_writes_is_known_and_what_is_said_of_it_is_kept_and_shown(
    beater: Beater, agent: Agent, new_agent: Any
) -> None:
    with tenant_transaction(agent.tenant_id):
        tenant = agent.tenant
    bo = new_agent(tenant, name="Bo")
    with tenant_transaction(agent.tenant_id):
        Percept.objects.create(
            tenant_id=agent.tenant_id,
            agent=agent,
            kind=PerceptKind.PEER_MESSAGE,
            content="The eels have left the river early this autumn.",
            peer=bo,
        )
    note = {"peer": "bo", "outcome": "success", "competence": 0.9, "reliability": None, "interests": ["eels"]}
    beater.beat(
        _reply(
            peer_notes=[note],
            memory_notes=[{"text": "The eels have left the river early this autumn."}],
        )
    )
    with tenant_transaction(agent.tenant_id):
        peer = PeerModel.objects.get(agent_id=agent.id)
        kept = Memory.objects.get(agent_id=agent.id, source__startswith="heartbeat:", type="semantic")
    assert (peer.peer_id, peer.interactions, peer.successes, peer.interests) == (bo.id, 1, 1, ["eels"])
    assert peer.competence == pytest.approx(0.62)
    (source,) = kept.detail["sources"]
    assert (source["kind"], source["reference"], source["trust"]) == ("agent", f"agent:{bo.id}", 0.5)
    prompt = beater.beat(REST)
    assert "Bo: trust 1.00 after 1 meetings, competence 0.62" in prompt


def note_of(peer: str, **values: Any) -> dict[str, Any]:
    return {
        "peer": peer,
        "outcome": "success",
        "competence": 0.9,
        "reliability": None,
        "interests": [],
    } | values


def test_who_was_never_met_gets_no_model_and_the_note_is_dropped_with_its_reason(
    beater: Beater, agent: Agent, new_agent: Any
) -> None:
    with tenant_transaction(agent.tenant_id):
        tenant = agent.tenant
    new_agent(tenant, name="Cy")
    with tenant_transaction(agent.tenant_id):
        now = datetime.now(UTC)
        ChatSession.objects.create(
            tenant_id=agent.tenant_id, agent=agent, person="user:Dora", started_at=now, last_at=now
        )
        PeerModel.objects.create(tenant_id=agent.tenant_id, agent=agent, name="Eve")
    beater.beat(_reply(peer_notes=[note_of(each) for each in ("Zoe", "cy", "dora", "EVE")]))
    with tenant_transaction(agent.tenant_id):
        found = dict(PeerModel.objects.filter(agent_id=agent.id).values_list("name", "interactions"))
    assert found == {"dora": 1, "Eve": 1}
    assert [(each["path"], each["reason"]) for each in _last(agent).dropped] == [
        ("peer_notes[0]", "Zoe never wrote to you nor talked with you"),
        ("peer_notes[1]", "cy never wrote to you nor talked with you"),
    ]


@pytest.mark.parametrize("wrote", [True, False])
def test_of_several_notes_about_one_peer_one_counts_and_the_others_are_dropped_with_the_reason(
    wrote: bool, beater: Beater, agent: Agent, new_agent: Any
) -> None:
    with tenant_transaction(agent.tenant_id):
        tenant = agent.tenant
    bo = new_agent(tenant, name="Bo")
    with tenant_transaction(agent.tenant_id):
        if wrote:
            Percept.objects.create(
                tenant_id=agent.tenant_id,
                agent=agent,
                kind=PerceptKind.PEER_MESSAGE,
                content="The eels have left.",
                peer=bo,
            )
        else:
            PeerModel.objects.create(tenant_id=agent.tenant_id, agent=agent, name="Bo", peer_id=bo.id)
    beater.beat(_reply(peer_notes=[note_of("bo"), note_of(str(bo.id), interests=["eels"]), note_of("Bo ")]))
    with tenant_transaction(agent.tenant_id):
        assert PeerModel.objects.get(agent_id=agent.id).interactions == 1
    dropped = _last(agent).dropped
    assert len(dropped) == 2
    assert {each["reason"] for each in dropped} == {"another note of this beat about Bo counts"}


def test_of_many_peers_those_never_dealt_with_are_forgotten_first(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "MOST_PEERS", 3)
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
        peers.note_meetings(
            agent_id=agent.id,
            tick=1,
            now=now,
            meetings=[peers.Meeting(name="New", peer_id="", note=None)],
        )
        assert set(PeerModel.objects.values_list("name", flat=True)) == {"Friend", "Late", "New"}
        assert AuditEvent.objects.get(action=AuditAction.TRUNCATED).detail == {"peers": ["Old"]}


def test_a_beat_that_uses_none_of_it_stores_none_of_it(beater: Beater, agent: Agent) -> None:
    beater.beat(REST)
    with tenant_transaction(agent.tenant_id):
        for model in (Experience, Proposal, PeerModel, SelfChange, BeliefEvidence):
            assert not model.objects.filter().exists(), model
