"""Apply accepted proposals, by kind; only `proposals` calls this module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.memories.services.graph.relations import NewRelation, labels_of, relate
from apps.memories.services.store.provenance import evidence_of
from apps.memories.services.store.remember import store
from apps.selves.models import Belief, IdentityAspect, Preference, Proposal
from apps.selves.services.aspects import add_aspect, revise_aspect
from apps.selves.services.beliefs import add_belief, revise_belief
from apps.selves.services.changes import require_pace
from apps.selves.services.preferences import set_preference
from apps.selves.services.redundancy import strength_of
from arbor.errors import AlreadyExists, LimitReached, NotFound
from arbor.heartbeat.sources import USER_TRUST, own_source
from arbor.ids import read_id
from arbor.memory.content import content_hash
from arbor.memory.details import SemanticDetail
from arbor.memory.importance import OPERATOR
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.memory.trust import Source, semantic_trust, sources_of
from arbor.memory.values import MemoryType, NewMemory
from arbor.selves.evidence import limit_confidence, status_at
from arbor.selves.history import PartKind
from arbor.selves.proposals import ACCEPTED_ADDS, ProposalKind
from arbor.selves.tendencies import is_slight_change
from arbor.selves.values import (
    DEFAULT_STRENGTH,
    QUALITIES,
    AspectKind,
    AspectRevision,
    BeliefCategory,
    BeliefRevision,
    BeliefStatus,
    NewAspect,
    NewBelief,
    check_preference,
)

#: Importance of an accepted memory: the agent's own conclusion.
IMPORTANCE = 0.7
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
    kind = _TYPES[ProposalKind(proposal.kind)]
    is_fact = kind is MemoryType.SEMANTIC
    sources = _sources(proposal) if is_fact else (own_source(proposal.agent_id),)
    why = {"proposal": str(proposal.id), "evidence": proposal.evidence}
    detail = SemanticDetail(confidence=confidence, sources=sources, extra=why).to_json() if is_fact else why
    memory = NewMemory(
        content=proposal.content,
        type=kind,
        importance=IMPORTANCE,
        trust=semantic_trust(confidence=confidence, sources=sources),
        occurred_at=now,
        source=f"proposal:{proposal.id}",
        detail=detail,
    )
    stored = store(agent_id=proposal.agent_id, memories=[memory], vectors=None)
    _relate_to_evidence(proposal, GraphNode(GraphNodeKind.MEMORY, stored.ids[0]), Relation.DERIVED_FROM)
    return f"remembered as {stored.ids[0]}" if stored.stored else KNOWN


def _sources(proposal: Proposal) -> tuple[Source, ...]:
    """Return the sources of a proposed fact: its evidence, else the person who proposed it, else none."""
    evidence = evidence_of(agent_id=proposal.agent_id, memory_ids=proposal.evidence)
    if evidence:
        return sources_of(evidence)
    if proposal.source == OPERATOR:
        return (Source(kind="person", reference=proposal.source, trust=USER_TRUST),)
    return ()


def _apply_aspect(proposal: Proposal, actor: str, now: datetime) -> str:
    kind = AspectKind(proposal.change.get("aspect", AspectKind.SELF_CONCEPT))
    known = IdentityAspect.objects.filter(
        agent_id=proposal.agent_id, kind=kind, content_hash=content_hash(proposal.content)
    ).exclude(status=BeliefStatus.DROPPED)
    strength = DEFAULT_STRENGTH
    if kind in QUALITIES:
        strength = strength_of(proposal)
        if (existing := known.first()) is not None:
            return _change_strength(existing, strength, proposal, actor, now)

    def add() -> str:
        require_pace(agent_id=proposal.agent_id, decided_by=actor, what=PartKind.ASPECT, now=now)
        aspect = NewAspect(
            content=proposal.content,
            kind=kind,
            strength=strength,
            source=f"proposal:{proposal.id}",
        )
        added = add_aspect(agent_id=proposal.agent_id, aspect=aspect, actor=actor, proposal_id=proposal.id)
        _relate_to_evidence(proposal, GraphNode(GraphNodeKind.ASPECT, added.id), Relation.DERIVED_FROM)
        return f"{kind}: {added.content}" if kind in QUALITIES else f"an aspect, {added.id}"

    return _add_unless_known(add, known)


def _change_strength(
    aspect: IdentityAspect, strength: float, proposal: Proposal, actor: str, now: datetime
) -> str:
    """Change the strength of a trait, value or capability that the agent has; a slight difference changes nothing."""
    if is_slight_change(aspect.strength, strength):
        return KNOWN
    require_pace(agent_id=aspect.agent_id, decided_by=actor, what=PartKind.ASPECT, now=now)
    before = aspect.strength
    revision = AspectRevision(strength=strength, reason=f"proposal {proposal.id}")
    revise_aspect(aspect_id=aspect.id, actor=actor, revision=revision, proposal_id=proposal.id)
    return f"the {aspect.kind} {aspect.content} from {before:.0%} to {strength:.0%}"


def _apply_belief(proposal: Proposal, actor: str, now: datetime) -> str:
    if "belief" not in proposal.change:
        return _add_new_belief(proposal, actor, now)
    belief: Belief | None = Belief.objects.filter(
        id=UUID(str(proposal.change["belief"])), agent_id=proposal.agent_id
    ).first()
    if belief is None or belief.status == BeliefStatus.DROPPED:
        raise NotFound(f"belief {proposal.change['belief']} is not held any more; reject the proposal")
    confidence = limit_confidence(belief.confidence, float(proposal.change["confidence"]))
    status = status_at(BeliefStatus(belief.status), confidence)
    if (confidence, status) != (belief.confidence, belief.status):
        require_pace(
            agent_id=proposal.agent_id, decided_by=actor, what=PartKind.BELIEF, target_id=belief.id, now=now
        )
    revised = revise_belief(
        belief_id=belief.id,
        revision=BeliefRevision(confidence=confidence, status=status, reason=proposal.content),
        actor=actor,
        tested_at=now,
        proposal_id=proposal.id,
    )
    # The relation is not DERIVED_FROM, because a memory that contradicts the belief is no evidence for it.
    _relate_to_evidence(proposal, GraphNode(GraphNodeKind.BELIEF, revised.id), Relation.LEARNED_FROM)
    return f"belief {revised.id} is {revised.status}, {revised.confidence:.0%} sure"


def _add_new_belief(proposal: Proposal, actor: str, now: datetime) -> str:
    def add() -> str:
        require_pace(agent_id=proposal.agent_id, decided_by=actor, what=PartKind.BELIEF, now=now)
        belief = NewBelief(
            statement=proposal.content,
            category=BeliefCategory(proposal.change.get("category", BeliefCategory.WORLD)),
            confidence=min(1.0, proposal.confidence + ACCEPTED_ADDS),
            source=f"proposal:{proposal.id}",
        )
        added = add_belief(agent_id=proposal.agent_id, belief=belief, actor=actor, proposal_id=proposal.id)
        _relate_to_evidence(proposal, GraphNode(GraphNodeKind.BELIEF, added.id), Relation.DERIVED_FROM)
        return f"a belief, {added.id}"

    beliefs = Belief.objects.filter(agent_id=proposal.agent_id, statement_hash=content_hash(proposal.content))
    return _add_unless_known(add, beliefs.exclude(status=BeliefStatus.DROPPED))


def _relate_to_evidence(proposal: Proposal, made: GraphNode, relation: Relation) -> None:
    """Relate what a proposal created or changed to the memories that are the proposal's evidence."""
    ids = [
        found for text in proposal.evidence if (found := read_id(str(text))) is not None and found != made.id
    ]
    known = labels_of(proposal.agent_id, ids, {GraphNodeKind.MEMORY})
    for memory in sorted(known):
        new = NewRelation(source=made, target=memory, relation=relation, origin=f"proposal:{proposal.id}")
        relate(agent_id=proposal.agent_id, new=new)


def _add_unless_known(add: Callable[[], str], known: QuerySet[Any]) -> str:
    """Add a part of the self; a repetition changes nothing, so no limit of changes applies to it."""
    try:
        return add()
    except AlreadyExists:
        return KNOWN
    except LimitReached:
        if known.exists():
            return KNOWN
        raise


def _apply_preference(proposal: Proposal, actor: str, now: datetime) -> str:
    key, value = check_preference(*(str(proposal.change.get(name, "")) for name in ("key", "value")))
    existing: Preference | None = Preference.objects.filter(agent_id=proposal.agent_id, key=key).first()
    if existing is not None and existing.value == value:
        return KNOWN
    target_id = existing.id if existing else None
    require_pace(
        agent_id=proposal.agent_id, decided_by=actor, what=PartKind.PREFERENCE, target_id=target_id, now=now
    )
    set_preference(
        agent_id=proposal.agent_id,
        key=key,
        value=value,
        actor=actor,
        source=f"proposal:{proposal.id}",
        proposal_id=proposal.id,
    )
    return f"{key}: {value}"


_EFFECTS: Mapping[ProposalKind, Callable[[Proposal, str, datetime], str]] = MappingProxyType(
    {
        **dict.fromkeys(_TYPES, _remember),
        ProposalKind.IDENTITY: _apply_aspect,
        ProposalKind.BELIEF: _apply_belief,
        ProposalKind.PREFERENCE: _apply_preference,
    }
)
