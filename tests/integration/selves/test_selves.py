"""Changes of beliefs, aspects, preferences and boundaries, audited, and their effect on memories."""

from __future__ import annotations

import math
from typing import Any
from uuid import uuid4

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.selves.models import Belief, IdentityAspect, SelfChange
from apps.selves.services import aspects, beliefs
from apps.selves.services.aspects import add_aspect, drop_aspect, revise_aspect
from apps.selves.services.beliefs import add_belief, change_filters, drop_belief, revise_belief
from apps.selves.services.boundaries import add_boundary, remove_boundary
from apps.selves.services.preferences import set_preference, unset_preference
from apps.selves.services.proposals import accept, propose
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import AlreadyExists, Invalid, LimitReached, NotFound
from arbor.selves.boundaries import BoundaryResponse, BoundaryType, NewBoundary
from arbor.selves.proposals import NewProposal, ProposalKind
from arbor.selves.values import (
    AspectKind,
    AspectRevision,
    BeliefCategory,
    BeliefRevision,
    BeliefStatus,
    NewAspect,
    NewBelief,
)
from tests.factories.selves import BeliefFactory, IdentityAspectFactory
from tests.integration.selves.conftest import ACTOR, ICE

MAPS = NewAspect(content="I draw maps.", kind=AspectKind.AGENCY)


def audit_messages(agent: Agent) -> list[str]:
    with tenant_transaction(agent.tenant_id):
        return list(AuditEvent.objects.order_by("id").values_list("message", flat=True))


def test_every_change_of_a_belief_is_audited(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        revise_belief(
            belief_id=belief.id,
            actor=ACTOR,
            revision=BeliefRevision(confidence=0.3, status=BeliefStatus.QUESTIONED),
        )
        revise_belief(belief_id=belief.id, actor=ACTOR, revision=BeliefRevision(confidence=0.3))
        drop_belief(belief_id=belief.id, actor=ACTOR, reason="it broke")
        again = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        assert again.id == belief.id
        assert (again.status, again.confidence) == ("held", 0.8)
        revised, dropped = AuditEvent.objects.order_by("id")[1:3]
    assert audit_messages(agent) == [
        f"{verb}: {ICE.statement}"
        for verb in (
            "let the agent believe",
            "revised the belief",
            "dropped the belief",
            "let the agent believe",
        )
    ]
    assert revised.detail["changes"]["confidence"] == {"from": 0.8, "to": 0.3}
    assert dropped.detail["reason"] == "it broke"


def test_every_change_of_an_aspect_is_audited(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        aspect = add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR)
        revise_aspect(aspect_id=aspect.id, actor=ACTOR, revision=AspectRevision(stability=0.9))
        drop_aspect(aspect_id=aspect.id, actor=ACTOR)
        assert add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR).id == aspect.id
        with pytest.raises(AlreadyExists, match="aspect already"):
            add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR)
    assert len(audit_messages(agent)) == 4


def test_an_aspect_deleted_meanwhile_is_not_found(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aspects, "lock_agent_row", lambda _: IdentityAspect.objects.all().delete())
    with tenant_transaction(agent.tenant_id):
        aspect = IdentityAspectFactory(agent=agent)
        with pytest.raises(NotFound, match="there is no aspect"):
            drop_aspect(aspect_id=aspect.id, actor=ACTOR)


def _accept_preference(agent: Agent, actor: str) -> None:
    change = {"key": "tone", "value": "brief"}
    new = NewProposal(
        kind=ProposalKind.PREFERENCE, content="Be brief.", confidence=0.6, source="operator", change=change
    )
    (proposal,) = propose(agent_id=agent.id, proposals=[new]).made
    accept(proposal_id=proposal.id, decided_by=actor)


def _add_boundary(agent: Agent, actor: str) -> None:
    gossip = NewBoundary(
        name="no_gossip", type=BoundaryType.ETHICAL, response=BoundaryResponse.REFUSE, patterns=["gossip"]
    )
    add_boundary(tenant_id=agent.tenant_id, agent_id=agent.id, boundary=gossip, actor=actor)


CHANGES: list[tuple[str, Any]] = [
    ("belief", lambda agent, actor: add_belief(agent_id=agent.id, belief=ICE, actor=actor)),
    ("aspect", lambda agent, actor: add_aspect(agent_id=agent.id, aspect=MAPS, actor=actor)),
    (
        "preference",
        lambda agent, actor: set_preference(agent_id=agent.id, key="tone", value="brief", actor=actor),
    ),
    ("preference", _accept_preference),
    ("boundary", _add_boundary),
    (
        "boundary",
        lambda agent, actor: remove_boundary(agent_id=agent.id, name="no_harm", actor=actor),
    ),
]


@pytest.mark.parametrize("actor", ["user:ann", "cli:ann", "heartbeat:1"])
@pytest.mark.parametrize(("what", "change"), CHANGES)
def test_each_change_leaves_one_complete_record(agent: Agent, what: str, change: Any, actor: str) -> None:
    if change is _add_boundary:
        change(agent, actor)
    else:
        with tenant_transaction(agent.tenant_id):
            change(agent, actor)
    with tenant_transaction(agent.tenant_id):
        stored = SelfChange.objects.get(agent_id=agent.id)
        event = AuditEvent.objects.get(agent_id=agent.id)
    assert (stored.what, stored.before, stored.decided_by) == (what, {}, actor)
    assert stored.after
    assert (event.action, event.before, event.after) == ("self.changed", {}, stored.after)
    assert event.detail[f"{what}_id"] == str(stored.target_id)
    own = actor.startswith("heartbeat:")
    assert event.actor == (f"agent:{agent.public_id}" if own else actor)
    assert event.detail.get("heartbeat_id") == ("1" if own else None)


def test_the_removal_of_a_part_is_recorded(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        set_preference(agent_id=agent.id, key="tone", value="brief", actor=ACTOR)
        set_preference(agent_id=agent.id, key="tone", value="brief", actor=ACTOR)
        set_preference(agent_id=agent.id, key="tone", value="dry", actor=ACTOR)
        unset_preference(agent_id=agent.id, key="tone", actor=ACTOR)
        changes = list(SelfChange.objects.order_by("id").values_list("before", "after"))
    brief, dry = ({"key": "tone", "value": value} for value in ("brief", "dry"))
    assert changes == [({}, brief), (brief, dry), (dry, {})]


def test_an_equal_belief_is_refused(agent: Agent) -> None:
    same = NewBelief(statement=" Ice  holds after a week. ", category=BeliefCategory.TIME)
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        with pytest.raises(AlreadyExists, match=str(belief.id)):
            add_belief(agent_id=agent.id, belief=same, actor=ACTOR)
        assert Belief.objects.get().category == "world"


def test_wrong_input_changes_nothing(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        for wrong in (math.nan, -0.1, 1.5, math.inf):
            with pytest.raises(Invalid, match="0 to 1"):
                revise_belief(belief_id=belief.id, actor=ACTOR, revision=BeliefRevision(confidence=wrong))
        for unknown in (uuid4(), agent.id):
            with pytest.raises(NotFound, match="no belief"):
                drop_belief(belief_id=unknown, actor=ACTOR)
            with pytest.raises(NotFound, match="no aspect"):
                drop_aspect(aspect_id=unknown, actor=ACTOR)
        with pytest.raises(NotFound, match="no agent"):
            add_belief(agent_id=uuid4(), belief=ICE, actor=ACTOR)
        assert Belief.objects.get().confidence == 0.8
    assert len(audit_messages(agent)) == 1


@pytest.mark.parametrize("reason", ["x" * 501, "no\0"])
def test_a_reason_that_no_record_stores_is_refused(agent: Agent, reason: str) -> None:
    with tenant_transaction(agent.tenant_id):
        belief, aspect = BeliefFactory(agent=agent), IdentityAspectFactory(agent=agent)
        with pytest.raises(Invalid, match="a reason must"):
            drop_belief(belief_id=belief.id, actor=ACTOR, reason=reason)
        with pytest.raises(Invalid, match="a reason must"):
            drop_aspect(aspect_id=aspect.id, actor=ACTOR, reason=reason)
        with pytest.raises(Invalid, match="a reason must"):
            change_filters(belief_id=belief.id, added=None, actor=ACTOR, reason=reason)
        assert Belief.objects.get(id=belief.id).status == BeliefStatus.HELD


def test_a_self_is_bounded(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beliefs, "MAX_BELIEFS", 1)
    monkeypatch.setattr(aspects, "MAX_ASPECTS", 1)
    with tenant_transaction(agent.tenant_id):
        BeliefFactory(agent=agent)
        BeliefFactory(agent=agent, status=BeliefStatus.DROPPED)
        IdentityAspectFactory(agent=agent)
        with pytest.raises(LimitReached, match="at most 1 beliefs"):
            add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        with pytest.raises(LimitReached, match="at most 1 aspects besides traits, values and capabilities"):
            add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR)


def test_a_dropped_part_comes_back_only_where_there_is_room(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beliefs, "MAX_BELIEFS", 1)
    monkeypatch.setattr(aspects, "MAX_ASPECTS", 1)
    for status in (BeliefStatus.HELD, BeliefStatus.QUESTIONED):
        with tenant_transaction(agent.tenant_id):
            belief = BeliefFactory(agent=agent, status=BeliefStatus.DROPPED)
            aspect = IdentityAspectFactory(agent=agent, status=BeliefStatus.DROPPED)
            others = BeliefFactory(agent=agent), IdentityAspectFactory(agent=agent)
            with pytest.raises(LimitReached, match="at most 1 beliefs"):
                revise_belief(belief_id=belief.id, revision=BeliefRevision(status=status), actor=ACTOR)
            with pytest.raises(LimitReached, match="at most 1 aspects"):
                revise_aspect(aspect_id=aspect.id, revision=AspectRevision(status=status), actor=ACTOR)
            drop_belief(belief_id=others[0].id, actor=ACTOR)
            drop_aspect(aspect_id=others[1].id, actor=ACTOR)
            revised = revise_belief(belief_id=belief.id, revision=BeliefRevision(status=status), actor=ACTOR)
            assert revised.status == status
            drop_belief(belief_id=belief.id, actor=ACTOR)


def test_the_self_of_another_tenant_is_not_found(agent: Agent, other_tenant: Tenant) -> None:
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        aspect = add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR)
    with tenant_transaction(other_tenant.id):
        assert not Belief.objects.exists()
        assert not IdentityAspect.objects.exists()
        for change in (
            lambda: add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR),
            lambda: drop_belief(belief_id=belief.id, actor=ACTOR),
            lambda: add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR),
            lambda: drop_aspect(aspect_id=aspect.id, actor=ACTOR),
        ):
            with pytest.raises(NotFound):
                change()
