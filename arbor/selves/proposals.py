"""Proposals: changes to the self that wait for the agent's own decision (seed 000, 2 and 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

from arbor.errors import LimitReached, TransitionIllegal
from arbor.selves.nearness import DUPLICATE, jaro_winkler
from arbor.selves.values import SOURCE_LENGTH, TEXT_LENGTH, check_share, check_text


class ProposalKind(StrEnum):
    """What is proposed."""

    #: Something that is so.
    FACT = "fact"
    #: Something understood.
    INSIGHT = "insight"
    #: Something that can be done now.
    LEARNING = "learning"
    #: Something that keeps happening.
    PATTERN = "pattern"
    #: Something at the edge of the mind.
    PRECONSCIOUS = "preconscious"
    #: A side of who the agent is.
    IDENTITY = "identity"
    #: A change to something the agent believes.
    BELIEF = "belief"
    #: A way the agent wants to behave.
    PREFERENCE = "preference"


class ProposalStatus(StrEnum):
    """What was decided."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    #: Fell out of the full queue, or time went over it.
    EXPIRED = "expired"


PROPOSAL_TRANSITIONS: Mapping[ProposalStatus, tuple[ProposalStatus, ...]] = MappingProxyType(
    {
        ProposalStatus.PENDING: (
            ProposalStatus.ACCEPTED,
            ProposalStatus.REJECTED,
            ProposalStatus.EXPIRED,
        ),
        ProposalStatus.ACCEPTED: (),
        ProposalStatus.REJECTED: (),
        ProposalStatus.EXPIRED: (),
    }
)

#: Seed 000, "Proposal Queue".
MAX_PENDING = 20
#: What acceptance adds to the confidence of what is proposed (seed 000).
ACCEPTED_ADDS = 0.2
#: Put off so often, it is let go (ours).
MAX_DEFERRALS = 5
#: Pending for so long, it expires when memory is tended (ours).
PENDING_FOR = timedelta(days=30)
#: An agent changes itself at most so often in a day, and the same part not again for a while (seed 000, 5, says so of
#: identity; what it believes and prefers is as much itself).
SELF_CHANGES_PER_DAY = 3
SELF_COOLDOWN = timedelta(hours=4)
#: An insight into oneself that is less sure is none (the origin of seed 000).
LEAST_INSIGHT = 0.5
#: Memories that a proposal names as what it rests on, at most; ours.
MOST_EVIDENCE = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class NewProposal:
    """A change to be proposed; confidence from 0 to 1. Raises Invalid."""

    kind: ProposalKind
    content: str
    confidence: float
    #: Where it comes from: `heartbeat:ID`, `consolidation`, `operator`.
    source: str
    #: What accepting it changes: {"aspect": kind}, {"belief": id, "confidence": …}, {"key": …, "value": …}; empty for
    #: what becomes a memory.
    change: Mapping[str, Any] = field(default_factory=dict)
    #: Ids of the memories it rests on.
    evidence: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_text("a proposal's content", self.content)
        check_text("source", self.source, longest=SOURCE_LENGTH)
        check_share("confidence", self.confidence)
        if len(self.evidence) > MOST_EVIDENCE:
            raise LimitReached(
                f"a proposal rests on at most {MOST_EVIDENCE} memories, got {len(self.evidence)}"
            )


class Queued(Protocol):
    """What the rules of the queue look at in a proposal."""

    kind: str
    content: str
    confidence: float
    created_at: datetime


def transition(status: ProposalStatus, to: ProposalStatus) -> None:
    """Raise TransitionIllegal unless a proposal may go from one status to the other."""
    if to not in PROPOSAL_TRANSITIONS[status]:
        raise TransitionIllegal(f"the proposal is {status} already; only a pending one can be {to}")


def duplicate_of[P: Queued](new: NewProposal, pending: Sequence[P]) -> P | None:
    """Return the pending proposal that says the same: of the same kind, and at least 0.85 alike."""
    same = (proposal for proposal in pending if proposal.kind == new.kind)
    return next(
        (proposal for proposal in same if jaro_winkler(proposal.content, new.content) >= DUPLICATE), None
    )


def to_expire[P: Queued](pending: Sequence[P]) -> list[P]:
    """Return which proposals leave the queue so that one more fits: the least sure first, of these the oldest."""
    order = sorted(pending, key=lambda proposal: (proposal.confidence, proposal.created_at))
    return order[: max(len(pending) + 1 - MAX_PENDING, 0)]


def check_pace(changes: Sequence[datetime], same: Sequence[datetime], now: datetime) -> None:
    """Raise LimitReached where an agent changes itself too fast.

    `changes` are the times at which it changed anything about itself, `same` those at which it changed what rests for a
    while after each change: a belief, a preference, or who it takes itself to be.
    """
    latest = max(same, default=None)
    if latest is not None and now - latest < SELF_COOLDOWN:
        free_at = latest + SELF_COOLDOWN
        raise LimitReached(
            f"a self changes slowly: the next change here is possible from {free_at:%Y-%m-%d %H:%M} UTC"
        )
    recent = sum(now - changed_at < timedelta(days=1) for changed_at in changes)
    if recent >= SELF_CHANGES_PER_DAY:
        raise LimitReached(
            f"a self changes at most {SELF_CHANGES_PER_DAY} times in a day, beliefs, aspects and preferences together,"
            f" and this one did {recent} times"
        )


def shortened(text: str) -> str:
    """Return a text that fits into a proposal."""
    text = " ".join(text.split())
    return text if len(text) <= TEXT_LENGTH else f"{text[: TEXT_LENGTH - 1]}…"
