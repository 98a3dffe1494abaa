"""Propose facts that people stated in conversations, with the turns as evidence. Only a heartbeat or a person accepts them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.contacts.services.chat_history import people_of
from apps.memories.models import Memory
from apps.selves.models import Proposal
from apps.selves.services.proposals import propose
from arbor.ids import read_id
from arbor.memory.content import content_hash
from arbor.memory.importance import USER
from arbor.memory.maintenance.calls import Excerpt
from arbor.memory.values import MemoryType
from arbor.quotations import counted
from arbor.selves.proposals import (
    MAX_EVIDENCE,
    NewProposal,
    ProposalKind,
    ProposalStatus,
    is_same_statement,
)

ACTOR = "system:maintenance"
#: The prefix of a conversation's id in the source of these proposals, and in the session of the turns.
_SOURCE_PREFIX = "chat:"
#: The most of these proposals that wait for a decision, so that a talkative person leaves half of the queue to others.
MAX_PENDING = 10
#: Added to the confidence of a pending fact when it is stated again (the origin of seed 000).
RESTATEMENT_CONFIDENCE = 0.05
#: The most proposals that a new one is compared with: the latest.
_MAX_COMPARED = 200


@dataclass(frozen=True, kw_only=True)
class ConversationFact:
    """A fact that somebody stated in a turn of a conversation."""

    text: str
    confidence: float
    memory_id: UUID
    #: The conversation's id.
    conversation: str


@dataclass(kw_only=True)
class _NewFact:
    fact: ConversationFact
    evidence: list[str] = field(default_factory=list)


def with_people(waiting: Sequence[tuple[UUID, Excerpt]]) -> list[tuple[UUID, Excerpt]]:
    """Return the excerpts, each turn of a person with that person's name. One statement; none without such turns."""
    conversations = [_conversation_id(excerpt.role, excerpt.session) for _, excerpt in waiting]
    people = people_of({conversation_id for conversation_id in conversations if conversation_id is not None})
    return [
        (memory_id, replace(excerpt, person=people.get(conversation_id, "") if conversation_id else ""))
        for (memory_id, excerpt), conversation_id in zip(waiting, conversations, strict=True)
    ]


def turns_of_people(agent_id: UUID, memory_ids: Collection[UUID]) -> Mapping[UUID, str]:
    """Return the conversation of each memory that is a person's turn. One statement; none without memories."""
    rows = Memory.objects.filter(agent_id=agent_id, id__in=list(memory_ids))
    return {
        memory_id: str(conversation_id)
        for memory_id, role, session in rows.values_list("id", "role", "session")
        if (conversation_id := _conversation_id(role, session)) is not None
    }


def propose_facts(*, agent_id: UUID, facts: Sequence[ConversationFact]) -> Sequence[str]:
    """Propose facts in the open transaction; return the reason for each new fact beyond MAX_PENDING, which is not proposed.

    The caller has locked the agent's schedule. A pending proposal of the same fact gets the turn as further evidence, and a higher
    confidence. A fact whose proposal was decided, or that the agent remembers in the same words, is ignored.
    """
    if not facts:
        return ()
    known = _remembered(agent_id, [fact.text for fact in facts])
    earlier = list(
        Proposal.objects.filter(agent_id=agent_id, kind=ProposalKind.FACT)
        .exclude(status=ProposalStatus.EXPIRED)
        .order_by("-created_at")[:_MAX_COMPARED]
    )
    new: list[_NewFact] = []
    for fact in facts:
        if content_hash(fact.text) in known:
            continue
        same = next(
            (proposal for proposal in earlier if is_same_statement(proposal.content, fact.text)), None
        )
        if same is not None:
            _support(same, fact)
            continue
        found = next((other for other in new if is_same_statement(other.fact.text, fact.text)), None)
        if found is None:
            found = _NewFact(fact=fact)
            new.append(found)
        if str(fact.memory_id) not in found.evidence:
            found.evidence.append(str(fact.memory_id))
    if not new:
        return ()
    room = max(0, MAX_PENDING - _pending_count(agent_id))
    propose(agent_id=agent_id, proposals=[_proposal(found) for found in new[:room]])
    return _record_left_out(agent_id, new[room:])


def conversation_of(session: str) -> str:
    """Return the id of the conversation whose turns are in a session."""
    return session.removeprefix(_SOURCE_PREFIX)


def _conversation_id(role: str, session: str) -> UUID | None:
    """Return the id of the conversation that a person's turn belongs to; None for any other memory."""
    return read_id(conversation_of(session)) if role == USER and session.startswith(_SOURCE_PREFIX) else None


def _remembered(agent_id: UUID, texts: Sequence[str]) -> set[bytes]:
    """Return the hashes of the texts that the agent remembers as facts, archived ones among them."""
    rows = Memory.objects.filter(
        agent_id=agent_id, type=MemoryType.SEMANTIC, content_hash__in=[content_hash(text) for text in texts]
    )
    return {bytes(digest) for digest in rows.values_list("content_hash", flat=True)}


def _pending_count(agent_id: UUID) -> int:
    """Return the number of all facts from conversations that wait for a decision, however old they are."""
    pending = Proposal.objects.filter(
        agent_id=agent_id, status=ProposalStatus.PENDING, kind=ProposalKind.FACT
    )
    return pending.filter(source__startswith=_SOURCE_PREFIX).count()


def _support(proposal: Proposal, fact: ConversationFact) -> None:
    """Add a turn to the evidence of a pending proposal, and raise its confidence; a decided proposal is not changed."""
    if proposal.status != ProposalStatus.PENDING or str(fact.memory_id) in proposal.evidence:
        return
    if len(proposal.evidence) >= MAX_EVIDENCE:
        return
    proposal.evidence = [*proposal.evidence, str(fact.memory_id)]
    proposal.confidence = min(1.0, proposal.confidence + RESTATEMENT_CONFIDENCE)
    proposal.save(update_fields=["evidence", "confidence"])


def _proposal(found: _NewFact) -> NewProposal:
    fact = found.fact
    further = len(found.evidence) - 1
    return NewProposal(
        kind=ProposalKind.FACT,
        content=fact.text,
        confidence=min(1.0, fact.confidence + further * RESTATEMENT_CONFIDENCE),
        source=f"{_SOURCE_PREFIX}{fact.conversation}",
        evidence=found.evidence[:MAX_EVIDENCE],
    )


def _record_left_out(agent_id: UUID, facts: Sequence[_NewFact]) -> Sequence[str]:
    """Record the facts that were not proposed, and return the reason for each."""
    if not facts:
        return ()
    why = f"{MAX_PENDING} facts from conversations wait for a decision already"
    record(
        action=AuditAction.TRUNCATED,
        actor=ACTOR,
        agent_id=agent_id,
        message=f"did not propose {counted(len(facts), 'fact')}: {why}",
        # Without the texts, because a purge must delete every copy of a text.
        detail={"memories": [memory_id for fact in facts for memory_id in fact.evidence]},
    )
    return [f"fact not proposed: {why}"] * len(facts)
