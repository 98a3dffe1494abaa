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
from arbor.selves.proposals import (
    MOST_EVIDENCE,
    NewProposal,
    ProposalKind,
    ProposalStatus,
    is_same_statement,
)

ACTOR = "system:maintenance"
#: The beginning of these proposals' source and of the turns' session; the conversation's id follows.
SOURCE = "chat:"
#: The most of these proposals that wait for a decision, so that a talkative person leaves half of the queue to others.
MOST_PENDING = 10
#: What another statement of a pending fact adds to its confidence (the origin of seed 000).
STATED_AGAIN_ADDS = 0.05
#: The latest proposals of facts that a new one is compared with.
_COMPARED = 200


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
    """Name the people in the excerpts of what they said to the agent. One statement; none without such memories."""
    sessions = {memory_id: _conversation_of(excerpt.role, excerpt.session) for memory_id, excerpt in waiting}
    people = people_of({session for session in sessions.values() if session is not None})
    return [
        (memory_id, replace(excerpt, person=people.get(session, "") if session else ""))
        for (memory_id, excerpt), session in zip(waiting, sessions.values(), strict=True)
    ]


def turns_of_people(agent_id: UUID, memory_ids: Collection[UUID]) -> Mapping[UUID, str]:
    """Return the conversation of each memory that is a person's turn. One statement; none without memories."""
    if not memory_ids:
        return {}
    rows = Memory.objects.filter(agent_id=agent_id, id__in=list(memory_ids))
    turns = rows.values_list("id", "role", "session")
    return {
        memory_id: str(session)
        for memory_id, role, name in turns
        if (session := _conversation_of(role, name)) is not None
    }


def propose_facts(*, agent_id: UUID, facts: Sequence[ConversationFact]) -> Sequence[str]:
    """Propose facts in the open transaction; return why some were left out.

    The caller has locked the agent's schedule. A fact that waits for a decision already gets the turn as further evidence; one that
    was decided, or that the agent remembers in the same words, is known.
    """
    if not facts:
        return ()
    known = _remembered(agent_id, [fact.text for fact in facts])
    earlier = list(
        Proposal.objects.filter(agent_id=agent_id, kind=ProposalKind.FACT)
        .exclude(status=ProposalStatus.EXPIRED)
        .order_by("-created_at")[:_COMPARED]
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
        again = next((other for other in new if is_same_statement(other.fact.text, fact.text)), None)
        if again is None:
            again = _NewFact(fact=fact)
            new.append(again)
        if str(fact.memory_id) not in again.evidence:
            again.evidence.append(str(fact.memory_id))
    waiting = sum(
        proposal.status == ProposalStatus.PENDING and proposal.source.startswith(SOURCE)
        for proposal in earlier
    )
    room = max(0, MOST_PENDING - waiting)
    propose(agent_id=agent_id, proposals=[_proposal(found) for found in new[:room]])
    return _left_out(agent_id, new[room:])


def _conversation_of(role: str, session: str) -> UUID | None:
    """Return the id of the conversation in which a person said this to the agent; None for any other memory."""
    return read_id(session.removeprefix(SOURCE)) if role == USER and session.startswith(SOURCE) else None


def _remembered(agent_id: UUID, texts: Sequence[str]) -> set[bytes]:
    """Return the hashes of the texts that the agent remembers as facts, or did before they were archived."""
    rows = Memory.objects.filter(
        agent_id=agent_id, type=MemoryType.SEMANTIC, content_hash__in=[content_hash(text) for text in texts]
    )
    return {bytes(digest) for digest in rows.values_list("content_hash", flat=True)}


def _support(proposal: Proposal, fact: ConversationFact) -> None:
    """Add a turn to the evidence of a pending proposal; a decided one is not changed."""
    evidence = [*proposal.evidence]
    if proposal.status != ProposalStatus.PENDING or str(fact.memory_id) in evidence:
        return
    if len(evidence) >= MOST_EVIDENCE:
        return
    proposal.evidence = [*evidence, str(fact.memory_id)]
    proposal.confidence = min(1.0, proposal.confidence + STATED_AGAIN_ADDS)
    proposal.save(update_fields=["evidence", "confidence"])


def _proposal(found: _NewFact) -> NewProposal:
    fact = found.fact
    further = len(found.evidence) - 1
    return NewProposal(
        kind=ProposalKind.FACT,
        content=fact.text,
        confidence=min(1.0, fact.confidence + further * STATED_AGAIN_ADDS),
        source=f"{SOURCE}{fact.conversation}",
        evidence=found.evidence[:MOST_EVIDENCE],
    )


def _left_out(agent_id: UUID, facts: Sequence[_NewFact]) -> Sequence[str]:
    if not facts:
        return ()
    why = f"{MOST_PENDING} facts from conversations wait for a decision already"
    record(
        action=AuditAction.TRUNCATED,
        actor=ACTOR,
        agent_id=agent_id,
        message=f"did not propose {len(facts)} {'fact' if len(facts) == 1 else 'facts'}: {why}",
        # Without the texts, because a purge must delete every copy of a text.
        detail={"memories": [memory_id for left in facts for memory_id in left.evidence]},
    )
    return [f"fact not proposed: {why}"] * len(facts)
