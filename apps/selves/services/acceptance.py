"""Apply accepted proposals, by kind; only `proposals` calls this module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.memories.services.store.remember import store
from apps.selves.models import Belief, IdentityAspect, Preference, Proposal
from apps.selves.services.aspects import add_aspect
from apps.selves.services.beliefs import add_belief, revise_belief
from apps.selves.services.changes import (
    ASPECT,
    BELIEF,
    PREFERENCE,
    PartChange,
    record_self_change,
    require_pace,
)
from apps.tenants.scope import current_tenant
from arbor.errors import AlreadyExists, Invalid, LimitReached, NotFound
from arbor.memory.content import content_hash
from arbor.memory.details import SemanticDetail
from arbor.memory.trust import Source, semantic_trust
from arbor.memory.values import MemoryType, NewMemory
from arbor.selves.evidence import limited, status_at
from arbor.selves.proposals import ACCEPTED_ADDS, ProposalKind
from arbor.selves.values import AspectKind, BeliefCategory, BeliefRevision, BeliefStatus, NewAspect, NewBelief

#: Importance and trust of an accepted memory: the agent's own conclusion.
IMPORTANCE = 0.7
TRUST = 0.8
#: The result of a proposal that changes nothing.
KNOWN = "that was so already"

_TYPES: Mapping[ProposalKind, MemoryType] = MappingProxyType(
    {
        ProposalKind.FACT: MemoryType.SEMANTIC,
        ProposalKind.INSIGHT: MemoryType.SEMANTIC,
        ProposalKind.PRECONSCIOUS: MemoryType.SEMANTIC,
        # As in seed 000: a learning becomes a skill, a pattern a rule for future actions.
        ProposalKind.LEARNING: MemoryType.PROCEDURAL,
        ProposalKind.PATTERN: MemoryType.STRATEGIC,
    }
)


def apply_proposal(proposal: Proposal, *, actor: str, now: datetime) -> str:
    """Apply an accepted proposal in the open transaction; return a short description of the change.

    Raises LimitReached if the agent changes too fast, NotFound for a dropped belief, Invalid for an empty change.
    """
    return _EFFECTS[ProposalKind(proposal.kind)](proposal, actor, now)


def _remember(proposal: Proposal, _actor: str, now: datetime) -> str:
    confidence = min(1.0, proposal.confidence + ACCEPTED_ADDS)
    own = Source(kind="heartbeat", reference=f"agent:{proposal.agent_id}", trust=TRUST)
    kind = _TYPES[ProposalKind(proposal.kind)]
    why = {"proposal": str(proposal.id), "evidence": proposal.evidence}
    detail = (
        SemanticDetail(confidence=confidence, sources=(own,), extra=why).to_json()
        if kind is MemoryType.SEMANTIC
        else why
    )
    memory = NewMemory(
        content=proposal.content,
        type=kind,
        importance=IMPORTANCE,
        trust=semantic_trust(confidence=confidence, sources=[own]),
        occurred_at=now,
        source=f"proposal:{proposal.id}",
        detail=detail,
    )
    stored = store(agent_id=proposal.agent_id, memories=[memory], vectors=None)
    return f"remembered as {stored.ids[0]}" if stored.stored else KNOWN


def _become(proposal: Proposal, actor: str, now: datetime) -> str:
    def add() -> str:
        require_pace(agent_id=proposal.agent_id, decided_by=actor, what=ASPECT, now=now)
        aspect = NewAspect(
            content=proposal.content,
            kind=AspectKind(proposal.change.get("aspect", AspectKind.SELF_CONCEPT)),
            source=f"proposal:{proposal.id}",
        )
        added = add_aspect(agent_id=proposal.agent_id, aspect=aspect, actor=actor, proposal_id=proposal.id)
        return f"an aspect, {added.id}"

    aspects = IdentityAspect.objects.filter(
        agent_id=proposal.agent_id, content_hash=content_hash(proposal.content)
    )
    return _unless_known(add, aspects.exclude(status=BeliefStatus.DROPPED))


def _believe(proposal: Proposal, actor: str, now: datetime) -> str:
    if "belief" not in proposal.change:
        return _begin_to_believe(proposal, actor, now)
    belief: Belief | None = Belief.objects.filter(
        id=UUID(str(proposal.change["belief"])), agent_id=proposal.agent_id
    ).first()
    if belief is None or belief.status == BeliefStatus.DROPPED:
        raise NotFound(f"belief {proposal.change['belief']} is not held any more; reject the proposal")
    confidence = limited(belief.confidence, float(proposal.change["confidence"]))
    status = status_at(BeliefStatus(belief.status), confidence)
    if (confidence, status) != (belief.confidence, belief.status):
        require_pace(agent_id=proposal.agent_id, decided_by=actor, what=BELIEF, target_id=belief.id, now=now)
    revised = revise_belief(
        belief_id=belief.id,
        revision=BeliefRevision(confidence=confidence, status=status, reason=proposal.content),
        actor=actor,
        tested_at=now,
        proposal_id=proposal.id,
    )
    return f"belief {revised.id} is {revised.status}, {revised.confidence:.0%} sure"


def _begin_to_believe(proposal: Proposal, actor: str, now: datetime) -> str:
    def add() -> str:
        require_pace(agent_id=proposal.agent_id, decided_by=actor, what=BELIEF, now=now)
        belief = NewBelief(
            statement=proposal.content,
            category=BeliefCategory(proposal.change.get("category", BeliefCategory.WORLD)),
            confidence=min(1.0, proposal.confidence + ACCEPTED_ADDS),
            source=f"proposal:{proposal.id}",
        )
        added = add_belief(agent_id=proposal.agent_id, belief=belief, actor=actor, proposal_id=proposal.id)
        return f"a belief, {added.id}"

    beliefs = Belief.objects.filter(agent_id=proposal.agent_id, statement_hash=content_hash(proposal.content))
    return _unless_known(add, beliefs.exclude(status=BeliefStatus.DROPPED))


def _unless_known(add: Callable[[], str], known: QuerySet[Any]) -> str:
    """Add a part of the self; a repetition changes nothing, so no limit of changes applies to it."""
    try:
        return add()
    except AlreadyExists:
        return KNOWN
    except LimitReached:
        if known.exists():
            return KNOWN
        raise


def _prefer(proposal: Proposal, actor: str, now: datetime) -> str:
    key, value = (str(proposal.change.get(name, "")).strip() for name in ("key", "value"))
    if not (0 < len(key) <= 60 and 0 < len(value) <= 300):
        raise Invalid("a preference has a key of 1 to 60 characters and a value of 1 to 300")
    existing: Preference | None = Preference.objects.filter(agent_id=proposal.agent_id, key=key).first()
    row = existing or Preference(tenant_id=current_tenant(), agent_id=proposal.agent_id, key=key)
    if existing is not None and existing.value == value:
        return KNOWN
    require_pace(agent_id=proposal.agent_id, decided_by=actor, what=PREFERENCE, target_id=row.id, now=now)
    before = {"key": key, "value": existing.value} if existing else {}
    row.value, row.source = value, f"proposal:{proposal.id}"
    row.save()
    record_self_change(
        agent_id=proposal.agent_id,
        change=PartChange(
            what=PREFERENCE, target_id=row.id, before=before, after={"key": key, "value": value}
        ),
        decided_by=actor,
        proposal_id=proposal.id,
    )
    return f"{key}: {value}"


_EFFECTS: Mapping[ProposalKind, Callable[[Proposal, str, datetime], str]] = MappingProxyType(
    {
        **dict.fromkeys(_TYPES, _remember),
        ProposalKind.IDENTITY: _become,
        ProposalKind.BELIEF: _believe,
        ProposalKind.PREFERENCE: _prefer,
    }
)
