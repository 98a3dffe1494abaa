"""Set and read the trust tiers of agents, and move them by their scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction

from apps.agents.models import Agent
from apps.agents.services.locks import lock_agent
from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.models import TierChange, TrustScore
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from arbor.agents.template import TrustTier
from arbor.audit.changes import change_of
from arbor.authority.trust_tiers import (
    TIER_BEFORE,
    Tally,
    TierStatus,
    TrustPart,
    next_tier,
    records_of,
    score_of,
    score_parts,
    tier_at_birth,
)
from arbor.errors import Invalid
from arbor.memory.content import check_line
from arbor.signals import SignalName, signal

#: The actor of changes by score.
ACTOR = "system:trust"
#: Characters of a person's reason.
REASON_LENGTH = 500
#: Changes that are shown.
CHANGES_SHOWN = 100


def create_tiers(agents: list[Agent], *, now: datetime) -> None:
    """Store the first tiers of new agents, in the transaction of their creation. One statement."""
    TrustScore.objects.bulk_create(
        [
            TrustScore(
                tenant_id=agent.tenant_id, agent=agent, tier=tier_at_birth(agent.trust_tier), since=now
            )
            for agent in agents
        ]
    )


def trust_score_of(agent_id: UUID) -> TrustScore:
    """Return the tier and score of an agent; an unsaved row for an agent that is older than tiers. Raises NotFound."""
    return read_trust_score(agent_by_id(agent_id))


def read_trust_score(agent: Agent) -> TrustScore:
    """Return the tier and score of an agent; an unsaved row for an agent that is older than tiers. One statement."""
    score: TrustScore | None = TrustScore.objects.filter(agent_id=agent.id).first()
    # Agents were trusted before tiers were computed, and stay so.
    return score or TrustScore(
        tenant_id=current_tenant(), agent=agent, tier=TIER_BEFORE, since=agent.created_at
    )


def tier_changes_of(agent_id: UUID) -> list[TierChange]:
    """Return the changes of an agent's tier, the latest first. Raises NotFound."""
    agent_by_id(agent_id)
    return list(TierChange.objects.filter(agent_id=agent_id).order_by("-at", "-id")[:CHANGES_SHOWN])


@transaction.atomic
def set_tier(
    *, agent_id: UUID, tier: TrustTier, actor: str, reason: str = "", now: datetime | None = None
) -> TrustScore:
    """Set an agent's tier for a person: no score lowers it afterwards, a breach does. Raises NotFound, Invalid."""
    now = now or datetime.now(UTC)
    check_line("a reason", reason.strip(), REASON_LENGTH)
    agent = lock_agent(agent_id)
    score = read_trust_score(agent)
    if score.tier == tier and score.by_person:
        raise Invalid(f"{agent.name} is {tier} by a person's decision already")
    stays, reason = score.tier == tier, reason.strip() or "a person decided"
    since = score.since if stays else now
    status = TierStatus(tier=tier, since=since, by_person=True, breached_at=score.breached_at)
    _store(score, status, decided_by=actor, reason=reason, now=now)
    if stays:
        record(
            action=AuditAction.TRUST_CHANGED,
            actor=actor,
            agent_id=agent_id,
            message=f"{agent.name} stays {tier} by a person's decision: {reason}",
            detail={"score": score.score, "reason": reason},
            change=change_of({"by_person": False}, {"by_person": True}),
        )
    return score


@transaction.atomic
def apply_tallies(
    *, agent_id: UUID, tallies: Mapping[TrustPart, Tally], breach: str, now: datetime
) -> TrustScore:
    """Score an agent by its records, and move its tier; `breach` is a breach since the last score, if any.

    Raises NotFound.
    """
    agent = lock_agent(agent_id)
    score = read_trust_score(agent)
    parts = score_parts(tallies)
    score.score = score_of(parts)
    score.parts = [asdict(part) for part in parts]
    score.computed_at = now
    decision = next_tier(score.status, score=score.score, records=records_of(parts), breach=breach, now=now)
    _store(score, decision.status, decided_by=ACTOR, reason=decision.reason, now=now)
    return score


def _store(score: TrustScore, status: TierStatus, *, decided_by: str, reason: str, now: datetime) -> None:
    """Store a status, and record a change of the tier in its history, the audit log and as a signal."""
    before = TrustTier(score.tier)
    score.tier, score.since, score.by_person = status.tier, status.since, status.by_person
    score.breached_at = status.breached_at
    score.above_since, score.below_since = status.above_since, status.below_since
    score.save(force_insert=score._state.adding)
    if before is status.tier:
        return
    agent_id = score.agent_id
    TierChange.objects.create(
        tenant_id=score.tenant_id,
        agent_id=agent_id,
        before=before,
        after=status.tier,
        score=score.score,
        decided_by=decided_by,
        reason=reason,
        at=now,
    )
    record(
        action=AuditAction.TRUST_CHANGED,
        actor=decided_by,
        agent_id=agent_id,
        message=f"{score.agent.name} is {status.tier} now, and was {before}: {reason}",
        detail={"score": score.score, "reason": reason},
        change=change_of({"tier": before}, {"tier": status.tier}),
    )
    emit(
        signal(
            SignalName.TIER_CHANGED,
            agent_id,
            before=before.value,
            after=status.tier.value,
            score=score.score,
            by=decided_by,
        )
    )
