"""Add, revise and drop beliefs; each change is recorded, and the trust of related facts is updated."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.agents.services.locks import lock_agent
from apps.selves.models import Belief
from apps.selves.services.alignment import update_related_trust
from apps.selves.services.changes import (
    check_reason,
    record_decision,
    record_part_change,
    set_values,
)
from apps.selves.services.parts import belief_values
from apps.tenants.scope import current_tenant
from arbor.errors import AlreadyExists, Invalid, LimitReached, NotFound
from arbor.memory.content import content_hash
from arbor.selves.memory_filters import MemoryFilter, read_filters, read_new_filter
from arbor.selves.values import MAX_BELIEFS, BeliefRevision, BeliefStatus, NewBelief, check_share


@transaction.atomic
def add_belief(*, agent_id: UUID, belief: NewBelief, actor: str, proposal_id: UUID | None = None) -> Belief:
    """Add a belief to an agent, or activate a dropped one again.

    Raises NotFound for the agent, AlreadyExists for a belief that it has, LimitReached.
    """
    # Without the lock, two concurrent additions would both find no existing row.
    lock_agent(agent_id)
    hashed = content_hash(belief.statement)
    existing: Belief | None = Belief.objects.filter(agent_id=agent_id, statement_hash=hashed).first()
    if existing is not None and existing.status != BeliefStatus.DROPPED:
        raise AlreadyExists(f"that is believed already, as {existing.id}; revise it instead")
    _require_room(agent_id)
    row = existing or Belief(tenant_id=current_tenant(), agent_id=agent_id, statement_hash=hashed)
    before = belief_values(existing) if existing else {}
    row.category, row.statement, row.status = belief.category, belief.statement, BeliefStatus.HELD
    row.confidence, row.stability, row.source = belief.confidence, belief.stability, belief.source
    row.save()
    if existing is not None:
        update_related_trust(agent_id=agent_id, belief_id=row.id)
    record_part_change(
        row,
        before=before,
        actor=actor,
        message=f"let the agent believe: {row.statement}",
        proposal_id=proposal_id,
    )
    return row


@transaction.atomic
def revise_belief(
    *,
    belief_id: UUID,
    revision: BeliefRevision,
    actor: str,
    tested_at: datetime | None = None,
    proposal_id: UUID | None = None,
) -> Belief:
    """Revise a belief.

    `tested_at` is the time of the test against evidence. Raises NotFound, Invalid for a change of nothing, for a number that
    is not from 0 to 1 and for the reason, LimitReached for a dropped belief without room to come back.
    """
    if revision == BeliefRevision(reason=revision.reason):
        raise Invalid("there is nothing to change: give a confidence, a stability or a status")
    wanted: dict[str, Any] = {
        "confidence": revision.confidence,
        "stability": revision.stability,
        "status": revision.status,
    }
    for name in ("confidence", "stability"):
        if wanted[name] is not None:
            check_share(name, wanted[name])
    if proposal_id is None:
        check_reason(revision.reason, actor=actor)
    belief = _lock_belief(belief_id)
    if belief.status == BeliefStatus.DROPPED and revision.status not in (None, BeliefStatus.DROPPED):
        _require_room(belief.agent_id)
    before = belief_values(belief)
    changes = set_values(belief, wanted=wanted)
    belief.tested_at = tested_at or belief.tested_at
    if changes or tested_at:
        belief.save()
    if changes:
        update_related_trust(agent_id=belief.agent_id, belief_id=belief.id)
        verb = "dropped" if revision.status is BeliefStatus.DROPPED else "revised"
        record_part_change(
            belief,
            before=before,
            actor=actor,
            message=f"{verb} the belief: {belief.statement}",
            reason=revision.reason,
            proposal_id=proposal_id,
        )
    return belief


@transaction.atomic
def confirm_belief(*, belief_id: UUID, actor: str, reason: str, now: datetime) -> Belief:
    """Confirm a belief unchanged: the evidence against it until now has been considered. Raises NotFound."""
    belief: Belief | None = Belief.objects.select_for_update().filter(id=belief_id).first()
    if belief is None:
        raise NotFound(f"there is no belief {belief_id} in this tenant")
    belief.tested_at = now
    belief.save(update_fields=["tested_at"])
    record_decision(
        agent_id=belief.agent_id,
        decided_by=actor,
        message=f"kept the belief: {belief.statement}",
        detail={"belief_id": str(belief.id), "confidence": belief.confidence, "reason": reason},
    )
    return belief


@transaction.atomic
def change_filters(
    *, belief_id: UUID, added: Mapping[str, Any] | None, actor: str, reason: str = ""
) -> Belief:
    """Add a memory filter (`arbor.selves.memory_filters.MemoryFilter`) to a belief; None removes all its memory filters.

    Raises NotFound, Invalid.
    """
    check_reason(reason, actor=actor)
    belief = _lock_belief(belief_id)
    before = belief_values(belief)
    rules: list[MemoryFilter] = []
    if added:
        rules = read_filters([*belief.filters, _stored(read_new_filter(added))])
    belief.filters = [_stored(rule) for rule in rules]
    belief.save(update_fields=["filters", "updated_at"])
    message = f"changed the memory filters of the belief: {belief.statement}"
    record_part_change(belief, before=before, actor=actor, message=message, reason=reason)
    return belief


def _stored(rule: MemoryFilter) -> dict[str, Any]:
    values: dict[str, Any] = rule.model_dump(mode="json", exclude_defaults=True)
    return values


def drop_belief(*, belief_id: UUID, actor: str, reason: str = "") -> Belief:
    """Drop a belief; its row stays. Raises NotFound, and Invalid for the reason."""
    revision = BeliefRevision(status=BeliefStatus.DROPPED, reason=reason)
    return revise_belief(belief_id=belief_id, revision=revision, actor=actor)


def _require_room(agent_id: UUID) -> None:
    """Raise LimitReached for an agent that has as many beliefs as allowed."""
    count = Belief.objects.filter(agent_id=agent_id).exclude(status=BeliefStatus.DROPPED).count()
    if count >= MAX_BELIEFS:
        raise LimitReached(f"an agent holds at most {MAX_BELIEFS} beliefs; drop one first")


def _lock_belief(belief_id: UUID) -> Belief:
    """Lock a belief, after the schedule and the row of its agent: the trust of its facts may change with it.

    Raises NotFound.
    """
    agent_id = Belief.objects.filter(id=belief_id).values_list("agent_id", flat=True).first()
    if agent_id is not None:
        lock_agent(agent_id)
    belief: Belief | None = Belief.objects.select_for_update().filter(id=belief_id).first()
    if belief is None:
        raise NotFound(f"there is no belief {belief_id} in this tenant")
    return belief
