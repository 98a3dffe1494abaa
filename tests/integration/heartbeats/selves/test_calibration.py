"""Judged proposals, the thresholds that they move, and the drift of a self since its birth."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from apps.agents.models import Agent
from apps.heartbeats.services.legs.promotion import propose_settled_changes
from apps.memories.models import Cluster, Memory, MemoryAccess
from apps.selves.models import Belief, Proposal
from apps.selves.services.aspects import add_aspect
from apps.selves.services.beliefs import drop_belief
from apps.selves.services.calibration import calibrate, calibrations_of
from apps.selves.services.drift import measure_self_drift
from apps.selves.services.proposals import accept, propose, reject
from apps.tenants.scope import tenant_transaction
from arbor.selves.calibration import Calibration
from arbor.selves.proposals import NewProposal, ProposalKind
from arbor.selves.values import AspectKind, NewAspect
from tests.factories.memories import ClusterFactory

NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=20)
SUBJECTS = [
    "tide",
    "reef",
    "gull",
    "cedar",
    "lantern",
    "harbour",
    "pebble",
    "orchard",
    "thunder",
    "violin",
    "marble",
    "copper",
]


def _accept_changes(agent: Agent, kind: ProposalKind, number: int) -> list[Proposal]:
    """Propose a number of distinct changes, and accept them as a person does; return the proposals."""
    accepted = []
    for subject in SUBJECTS[:number]:
        change = {"category": "world"} if kind is ProposalKind.BELIEF else {"cluster": subject}
        new = NewProposal(
            kind=kind, content=f"{subject} {subject[::-1]}", confidence=0.6, source="operator", change=change
        )
        (proposal,) = propose(agent_id=agent.id, proposals=[new]).made
        accepted.append(accept(proposal_id=proposal.id, decided_by="user:ann", now=NOW))
    return accepted


def _mark_recalled(memories: Iterable[Memory]) -> None:
    """Count one recall of each memory."""
    for memory in memories:
        MemoryAccess.objects.update_or_create(
            memory=memory, defaults={"tenant_id": memory.tenant_id, "count": 1, "last_at": NOW}
        )


@pytest.mark.parametrize(("recalled", "threshold", "proposed"), [(True, 0.4, True), (False, 0.6, False)])
def test_judged_insights_move_the_threshold_of_later_ones(
    agent: Agent, recalled: bool, threshold: float, proposed: bool
) -> None:
    with tenant_transaction(agent.tenant_id):
        Cluster.objects.filter(agent_id=agent.id).delete()
        accepted = _accept_changes(agent, ProposalKind.INSIGHT, 10)
        insights = Memory.objects.filter(source__in=[f"proposal:{proposal.id}" for proposal in accepted])
        assert insights.count() == 10
        if recalled:
            _mark_recalled(insights)
        else:
            insights.update(status="archived", archived_at=NOW)
        found = calibrate(agent_id=agent.id, now=LATER)
        assert found[ProposalKind.INSIGHT] == Calibration(right=10 * recalled, wrong=10 * (not recalled))
        (row,) = calibrations_of(agent.id)
        assert row.threshold == pytest.approx(threshold)
        # Nine memories are too few for the base threshold of 0.5.
        ClusterFactory(agent=agent, size=9, stale=False)
        proposals = propose_settled_changes(agent_id=agent.id).proposed.made
        assert [proposal.kind for proposal in proposals] == ["insight"] * proposed


def test_beliefs_prove_wrong_by_being_dropped(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        accepted = _accept_changes(agent, ProposalKind.BELIEF, 2)
        dropped = Belief.objects.get(source=f"proposal:{accepted[0].id}")
        drop_belief(belief_id=dropped.id, actor="user:ann")
        Belief.objects.filter(source=f"proposal:{accepted[1].id}").update(tested_at=LATER)
        (pending,) = propose(
            agent_id=agent.id,
            proposals=[
                NewProposal(
                    kind=ProposalKind.BELIEF, content="Fog never lifts.", confidence=0.6, source="operator"
                )
            ],
        ).made
        reject(proposal_id=pending.id, decided_by="user:ann", now=NOW)
        found = calibrate(agent_id=agent.id, now=LATER)[ProposalKind.BELIEF]
    assert found == Calibration(right=1, wrong=1, rejected=1)


def test_acceptance_is_not_judged_before_two_weeks(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        _accept_changes(agent, ProposalKind.INSIGHT, 2)
        _mark_recalled(Memory.objects.filter(agent_id=agent.id, source__startswith="proposal:"))
        found = calibrate(agent_id=agent.id, now=NOW + timedelta(days=13))
    assert found[ProposalKind.INSIGHT] == Calibration()


def test_a_new_value_is_drift_since_birth(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        assert measure_self_drift(agent.id).share == 0
        value = NewAspect(content="Speed above all", kind=AspectKind.VALUE, strength=0.9)
        add_aspect(agent_id=agent.id, aspect=value, actor="user:ann")
        drift = measure_self_drift(agent.id)
    assert 0 < drift.values.share <= 1
    assert drift.traits.share == 0
    assert drift.share == drift.values.share
    assert drift.values.parts[0].name == "Speed above all"
