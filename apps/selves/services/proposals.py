"""Create proposals of changes to the self, and decide about them.

Heartbeats and consolidation propose; later heartbeats or people decide. Other changes come only from an agent's creation
or from people. Whoever decides has locked the agent's schedule: acceptance changes the self and the memories in any order, and `propose`
closes or renews pending proposals meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction

from apps.agents.services.locks import lock_schedule
from apps.selves.models import Belief, Proposal
from apps.selves.services import beliefs
from apps.selves.services.acceptance import apply_proposal
from apps.selves.services.changes import require_pace
from apps.selves.services.queries import (
    LOCK_AGENT_TO_PROPOSE,
    PENDING_PROPOSALS,
    PROPOSAL_COLUMNS,
    PROPOSALS_TOO_SOON,
)
from apps.selves.services.redundancy import find_redundant
from apps.signals.services.emission import emit
from apps.tenants.scope import APP, current_tenant
from apps.tenants.statements import fetch, insert_rows
from arbor.errors import AlreadyExists, Invalid, NotFound
from arbor.ids import uuid7
from arbor.quotations import shorten
from arbor.selves.evidence import check_step, status_at
from arbor.selves.history import PartKind
from arbor.selves.proposals import (
    MAX_DEFERRALS,
    PENDING_FOR,
    NewProposal,
    ProposalKind,
    ProposalStatus,
    duplicate_of,
    proposals_to_evict,
    transition,
)
from arbor.selves.values import BeliefRevision, BeliefStatus
from arbor.signals import Signal, SignalName, signal

#: Characters of a proposal in an error.
_ERROR_LENGTH = 120


@dataclass(frozen=True, kw_only=True)
class ProposalResult:
    """The result of proposing: new, already pending and evicted proposals, and those that would change nothing."""

    made: tuple[Proposal, ...] = ()
    known: tuple[Proposal, ...] = ()
    expired: tuple[Proposal, ...] = ()
    redundant: tuple[NewProposal, ...] = ()


def propose(*, agent_id: UUID, proposals: Sequence[NewProposal]) -> ProposalResult:
    """Add proposals to an agent's queue; duplicates and what the agent has already are dropped, and a full queue evicts its weakest.

    A proposal about a belief replaces the pending one about the same belief. In the open transaction, whose caller has locked the
    agent's schedule; three statements besides the signals, up to three more for proposals about parts of the self, and one for each that
    expires or is replaced. Raises NotFound for the agent.
    """
    if not proposals:
        return ProposalResult()
    pending = _lock_pending(agent_id)
    redundant = find_redundant(agent_id=agent_id, proposals=proposals)
    made, known, expired = [], [], []
    for new in proposals:
        if new in redundant:
            continue
        same_belief = _about_same_belief(new, pending)
        if same_belief is not None:
            known.append(_renew(same_belief, new))
            continue
        duplicate = duplicate_of(new, pending)
        if duplicate is not None:
            known.append(duplicate)
            continue
        for weakest in proposals_to_evict(pending):
            pending.remove(weakest)
            expired.append(weakest)
        row = _new_row(agent_id, new)
        pending.append(row)
        made.append(row)
    # A proposal that this call both created and evicted is never stored.
    evicted = {proposal.id for proposal in expired}
    to_insert = [proposal for proposal in made if proposal.id not in evicted]
    insert_rows(to_insert)
    emit(*(_signal_of(proposal, SignalName.PROPOSAL_CREATED, proposal.source) for proposal in to_insert))
    for proposal in expired:
        if proposal not in made:
            _close(
                proposal,
                ProposalStatus.EXPIRED,
                by="queue",
                reason="the queue was full",
                now=datetime.now(UTC),
            )
    return ProposalResult(
        made=tuple(to_insert), known=tuple(known), expired=tuple(expired), redundant=redundant
    )


def expire_unfounded(*, agent_id: UUID, belief_id: UUID, reason: str) -> tuple[Proposal, ...]:
    """Expire the pending proposals to change a belief's confidence, which the evidence no longer supports.

    In the open transaction, whose caller has locked the agent's schedule. Raises NotFound for the agent.
    """
    now = datetime.now(UTC)
    return tuple(
        _close(proposal, ProposalStatus.EXPIRED, by="evidence", reason=reason, now=now)
        for proposal in _lock_pending(agent_id)
        if proposal.change.get("belief") == str(belief_id)
    )


def propose_by_person(*, agent_id: UUID, new: NewProposal) -> ProposalResult:
    """Add a proposal of a person to an agent's queue, as `propose` does, in the open transaction.

    Raises NotFound for the agent, AlreadyExists for a proposal that would change nothing.
    """
    lock_schedule(agent_id)
    result = propose(agent_id=agent_id, proposals=[new])
    if result.redundant:
        raise AlreadyExists(f"the agent has this already: {shorten(new.content, _ERROR_LENGTH)}")
    return result


def find_proposals_too_soon(*, agent_id: UUID, proposals: Sequence[Proposal]) -> frozenset[UUID]:
    """Return the ids of proposals that the agent may not accept yet, by its pace. One statement; none without proposals."""
    if not proposals:
        return frozenset()
    ids = [proposal.id for proposal in proposals]
    return frozenset(row[0] for row in fetch(PROPOSALS_TOO_SOON, agent=agent_id, proposals=ids))


@transaction.atomic
def expire_overdue(*, agent_id: UUID) -> tuple[Proposal, ...]:
    """Expire the proposals that have been pending for 30 days; return them."""
    now = datetime.now(UTC)
    rows = Proposal.objects.select_for_update().filter(
        agent_id=agent_id, status=ProposalStatus.PENDING, created_at__lt=now - PENDING_FOR
    )
    why = f"pending for {PENDING_FOR.days} days"
    return tuple(
        _close(proposal, ProposalStatus.EXPIRED, by="consolidation", reason=why, now=now) for proposal in rows
    )


@transaction.atomic
def accept(
    *,
    proposal_id: UUID,
    decided_by: str,
    agent_id: UUID | None = None,
    reason: str = "",
    now: datetime | None = None,
) -> Proposal:
    """Accept a proposal and apply it; idempotent.

    `decided_by` is `heartbeat:ID`, `user:NAME`, `cli:NAME` or `token:NAME`. An agent can only accept its own proposals, and
    not too many at once. Raises NotFound, TransitionIllegal for a rejected or expired proposal, LimitReached.
    """
    now = now or datetime.now(UTC)
    proposal = _lock_proposal(proposal_id, agent_id)
    if proposal.status == ProposalStatus.ACCEPTED:
        return proposal
    transition(ProposalStatus(proposal.status), ProposalStatus.ACCEPTED)
    effect = apply_proposal(proposal, actor=decided_by, now=now)
    full_reason = f"{reason.strip()} ({effect})" if reason.strip() else effect
    return _close(proposal, ProposalStatus.ACCEPTED, by=decided_by, reason=full_reason, now=now)


@transaction.atomic
def reject(
    *,
    proposal_id: UUID,
    decided_by: str,
    agent_id: UUID | None = None,
    reason: str = "",
    now: datetime | None = None,
) -> Proposal:
    """Reject a proposal, with a reason. Raises NotFound, TransitionIllegal."""
    now = now or datetime.now(UTC)
    proposal = _lock_proposal(proposal_id, agent_id)
    transition(ProposalStatus(proposal.status), ProposalStatus.REJECTED)
    if proposal.kind == ProposalKind.BELIEF and "belief" in proposal.change:
        # A rejection counts as a test of the belief, which stays unchanged.
        Belief.objects.filter(id=proposal.change["belief"], agent_id=proposal.agent_id).update(tested_at=now)
    return _close(proposal, ProposalStatus.REJECTED, by=decided_by, reason=reason, now=now)


@transaction.atomic
def defer(
    *,
    proposal_id: UUID,
    decided_by: str,
    agent_id: UUID | None = None,
    reason: str = "",
    now: datetime | None = None,
) -> Proposal:
    """Defer a decision; the fifth deferral expires the proposal. Raises NotFound, TransitionIllegal."""
    proposal = _lock_proposal(proposal_id, agent_id)
    # Only a pending proposal can be deferred.
    transition(ProposalStatus(proposal.status), ProposalStatus.EXPIRED)
    proposal.deferrals += 1
    if proposal.deferrals >= MAX_DEFERRALS:
        full_reason = f"put off {MAX_DEFERRALS} times; {reason}".rstrip("; ")
        return _close(
            proposal, ProposalStatus.EXPIRED, by=decided_by, reason=full_reason, now=now or datetime.now(UTC)
        )
    proposal.reason = reason
    proposal.save(update_fields=["deferrals", "reason"])
    emit(_signal_of(proposal, SignalName.PROPOSAL_DEFERRED, decided_by))
    return proposal


def defer_refused(
    *, proposal_id: UUID, agent_id: UUID, decided_by: str, reason: str, now: datetime
) -> Proposal | None:
    """Defer a pending proposal whose acceptance was refused, unless it only came too soon; return it if it was deferred.

    Otherwise a proposal without room, or about a belief that was dropped, would start heartbeats until it expires.
    """
    pending = Proposal.objects.filter(
        id=proposal_id, agent_id=agent_id, status=ProposalStatus.PENDING
    ).first()
    if pending is None or find_proposals_too_soon(agent_id=agent_id, proposals=[pending]):
        return None
    return defer(proposal_id=proposal_id, agent_id=agent_id, decided_by=decided_by, reason=reason, now=now)


@transaction.atomic
def revise_belief(
    *,
    agent_id: UUID,
    belief_id: UUID,
    revision: BeliefRevision,
    decided_by: str,
    now: datetime | None = None,
) -> Belief:
    """Revise a belief by the agent's own heartbeat: change its confidence by at most one step, or its status.

    Without a status, it follows from the confidence. Raises NotFound for a belief of another agent, Invalid for a step
    that is too large and for dropping a belief, which only a person or a proposal may do; LimitReached for another change
    within four hours, or too many in a day.
    """
    now = now or datetime.now(UTC)
    confidence, status = revision.confidence, revision.status
    belief: Belief | None = (
        Belief.objects.select_for_update()
        .filter(id=belief_id, agent_id=agent_id)
        .exclude(status=BeliefStatus.DROPPED)
        .first()
    )
    if belief is None:
        raise NotFound(f"there is no belief {belief_id} of this agent")
    if status is BeliefStatus.DROPPED:
        raise Invalid("a heartbeat puts a belief in doubt (questioned), it does not drop it")
    if confidence is None and status is None:
        raise Invalid("say how sure of the belief you are now, or whether it is held or questioned")
    if confidence is not None:
        check_step(belief.confidence, confidence)
        status = status or status_at(BeliefStatus(belief.status), confidence)
    if confidence not in (None, belief.confidence) or status not in (None, belief.status):
        require_pace(
            agent_id=agent_id, decided_by=decided_by, what=PartKind.BELIEF, target_id=belief.id, now=now
        )
    return beliefs.revise_belief(
        belief_id=belief.id,
        revision=BeliefRevision(confidence=confidence, status=status, reason=revision.reason),
        actor=decided_by,
        tested_at=now,
    )


def confirm_belief(*, agent_id: UUID, belief_id: UUID, decided_by: str, reason: str, now: datetime) -> Belief:
    """Confirm a belief by the agent's own heartbeat, which has considered the evidence against it. Raises NotFound."""
    belief = belief_of(agent_id=agent_id, belief_id=belief_id)
    return beliefs.confirm_belief(belief_id=belief.id, actor=decided_by, reason=reason, now=now)


def _lock_proposal(proposal_id: UUID, agent_id: UUID | None) -> Proposal:
    rows = Proposal.objects.select_for_update().filter(id=proposal_id)
    if agent_id is not None:
        rows = rows.filter(agent_id=agent_id)
    proposal: Proposal | None = rows.first()
    if proposal is None:
        whose = "of this agent" if agent_id is not None else "in this tenant"
        raise NotFound(f"there is no proposal {proposal_id} {whose}")
    return proposal


def _lock_pending(agent_id: UUID) -> list[Proposal]:
    """Lock an agent, and return its pending proposals. Raises NotFound."""
    # Without the lock, two concurrent proposals would both find no duplicate.
    if not fetch(LOCK_AGENT_TO_PROPOSE, agent=agent_id):
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    return [Proposal.from_db(APP, PROPOSAL_COLUMNS, row) for row in fetch(PENDING_PROPOSALS, agent=agent_id)]


def _new_row(agent_id: UUID, new: NewProposal) -> Proposal:
    return Proposal(
        id=uuid7(),
        tenant_id=current_tenant(),
        agent_id=agent_id,
        kind=new.kind,
        content=new.content,
        change=dict(new.change),
        confidence=new.confidence,
        evidence=[str(memory_id) for memory_id in new.evidence],
        source=new.source,
        created_at=datetime.now(UTC),
    )


def _about_same_belief(new: NewProposal, pending: Sequence[Proposal]) -> Proposal | None:
    belief = new.change.get("belief")
    if belief is None:
        return None
    return next((proposal for proposal in pending if proposal.change.get("belief") == belief), None)


def _renew(proposal: Proposal, new: NewProposal) -> Proposal:
    proposal.content, proposal.change = new.content, dict(new.change)
    proposal.confidence, proposal.source = new.confidence, new.source
    proposal.evidence = [str(memory_id) for memory_id in new.evidence]
    if not proposal._state.adding:
        proposal.save(update_fields=["content", "change", "confidence", "source", "evidence"])
    return proposal


def _close(proposal: Proposal, status: ProposalStatus, *, by: str, reason: str, now: datetime) -> Proposal:
    proposal.status, proposal.decided_by, proposal.decided_at = status, by, now
    proposal.reason = reason
    proposal.save(update_fields=["status", "decided_by", "decided_at", "reason", "deferrals"])
    emit(_signal_of(proposal, _CLOSED[status], by))
    return proposal


_CLOSED = {
    ProposalStatus.ACCEPTED: SignalName.PROPOSAL_ACCEPTED,
    ProposalStatus.REJECTED: SignalName.PROPOSAL_REJECTED,
    ProposalStatus.EXPIRED: SignalName.PROPOSAL_EXPIRED,
}


def _signal_of(proposal: Proposal, name: SignalName, by: str) -> Signal:
    return signal(name, proposal.agent_id, proposal=proposal.id, kind=proposal.kind, by=by)


def belief_of(*, agent_id: UUID, belief_id: UUID) -> Belief:
    """Return a belief that the agent has not dropped. One query. Raises NotFound."""
    belief: Belief | None = (
        Belief.objects.filter(id=belief_id, agent_id=agent_id).exclude(status=BeliefStatus.DROPPED).first()
    )
    if belief is None:
        raise NotFound(f"there is no belief {belief_id} of this agent")
    return belief
