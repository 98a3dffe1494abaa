"""Proposals: changes to the self that wait for a decision (seed 000, 2 and 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

from rapidfuzz.distance import JaroWinkler

from arbor.errors import Invalid, LimitReached, TransitionIllegal
from arbor.memory.text.lexical import STOP_WORDS, term_of, words_of
from arbor.quotations import clip_line
from arbor.selves.values import QUALITIES, SOURCE_LENGTH, TEXT_LENGTH, check_share, check_text

#: Seed 000, "Proposal Queue".
MAX_PENDING = 20
#: The most proposals in a prompt (the origin of seed 000). While as many wait for a decision, a prompt asks for no further ones.
PROPOSALS_SHOWN = 5
#: The confidence of a person's proposal unless the person gives another.
PERSON_CONFIDENCE = 0.7
#: The confidence that acceptance adds (seed 000).
ACCEPTED_ADDS = 0.2
#: A proposal deferred this often expires.
MAX_DEFERRALS = 5
#: A proposal pending for longer expires at maintenance.
PENDING_FOR = timedelta(days=30)
#: The most changes of a self in a day, and the time before the same part may change again. Seed 000, 5, limits identity;
#: here beliefs and preferences count as well.
SELF_CHANGES_PER_DAY = 3
SELF_COOLDOWN = timedelta(hours=4)
#: The least confidence of an insight (the origin of seed 000).
MIN_INSIGHT = 0.5
#: The most memories that a proposal names as evidence.
MAX_EVIDENCE = 20
#: The similarity from which two proposals are the same (seed 000).
DUPLICATE = 0.85
#: Keys of a change that say by themselves what it is about: a habit, a cluster, a memory that came to mind, a belief.
_SUBJECTS = ("pattern", "cluster", "preconscious", "belief")
_QUALITY_KINDS = frozenset(kind.value for kind in QUALITIES)
_NEGATIONS = frozenset({"no", "not", "never", "nobody", "none", "nor", "nothing", "neither", "without"})
#: The characters of a text that are compared, which bounds the cost of long texts.
COMPARED_LENGTH = 400


class ProposalKind(StrEnum):
    """The kind of a proposal."""

    #: A fact.
    FACT = "fact"
    #: An insight.
    INSIGHT = "insight"
    #: A skill that was learned.
    LEARNING = "learning"
    #: A pattern that repeats.
    PATTERN = "pattern"
    #: A memory that comes to mind by itself.
    PRECONSCIOUS = "preconscious"
    #: An aspect of the agent's identity.
    IDENTITY = "identity"
    #: A change to a belief.
    BELIEF = "belief"
    #: A preference.
    PREFERENCE = "preference"


class ProposalStatus(StrEnum):
    """The status of a proposal."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    #: Evicted from the full queue, pending for too long, or deferred too often.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class NewProposal:
    """A proposal to create; confidence from 0 to 1. Raises Invalid."""

    kind: ProposalKind
    content: str
    confidence: float
    #: The proposer: `heartbeat:ID`, `consolidation`, `operator`.
    source: str
    #: The effect of acceptance: {"aspect": kind}, {"belief": id, "confidence": …}, {"key": …, "value": …}; empty for
    #: a proposal that becomes a memory.
    change: Mapping[str, Any] = field(default_factory=dict)
    #: Ids of the memories that are its evidence.
    evidence: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_text("a proposal's content", self.content)
        check_text("source", self.source, longest=SOURCE_LENGTH)
        check_share("confidence", self.confidence)
        if self.kind is ProposalKind.PREFERENCE and not {"key", "value"} <= self.change.keys():
            raise Invalid(
                "a proposed preference needs the key and the value that acceptance sets; a person sets a preference directly"
            )
        if len(self.evidence) > MAX_EVIDENCE:
            raise LimitReached(
                f"a proposal rests on at most {MAX_EVIDENCE} memories, got {len(self.evidence)}"
            )


class QueuedProposal(Protocol):
    """The fields of a pending proposal that the rules of the queue need."""

    kind: str
    content: str
    change: Mapping[str, Any]
    confidence: float
    created_at: datetime


def transition(status: ProposalStatus, to: ProposalStatus) -> None:
    """Raise TransitionIllegal unless a proposal may go from one status to the other."""
    if to not in PROPOSAL_TRANSITIONS[status]:
        raise TransitionIllegal(f"the proposal is {status} already; only a pending one can be {to}")


def duplicate_of[P: QueuedProposal](new: NewProposal, pending: Sequence[P]) -> P | None:
    """Return the pending proposal of the same kind that would change the same."""
    same = (proposal for proposal in pending if proposal.kind == new.kind)
    return next((proposal for proposal in same if _changes_the_same(proposal, new)), None)


def _changes_the_same(one: QueuedProposal, other: NewProposal) -> bool:
    """Return whether two proposals of one kind would change the same; their sentences decide only where their changes do not."""
    aspects = {one.change.get("aspect"), other.change.get("aspect")}
    if _QUALITY_KINDS & aspects:
        # Of another strength too: the first one is decided before the next one is made.
        return len(aspects) == 1 and is_same_statement(one.content, other.content)
    for key in _SUBJECTS:
        if key in one.change or key in other.change:
            return bool(one.change.get(key) == other.change.get(key))
    if "key" in one.change or "key" in other.change:
        first, second = (
            (proposal.change.get("key"), str(proposal.change.get("value", ""))) for proposal in (one, other)
        )
        return first[0] == second[0] and is_same_statement(first[1], second[1])
    return is_same_statement(one.content, other.content)


def is_same_statement(one: str, other: str) -> bool:
    """Return whether two texts are at least 0.85 alike, and differ neither by a replaced word nor by a negation.

    A replaced word ("patient", "impatient") makes another statement, and so does a "not".
    """
    if jaro_winkler(one, other) < DUPLICATE:
        return False
    first, second = _claims(one), _claims(other)
    only_one, only_other = first - second, second - first
    return not (only_one and only_other) and (only_one | only_other).isdisjoint(_NEGATIONS)


def proposals_to_evict[P: QueuedProposal](pending: Sequence[P]) -> list[P]:
    """Return the proposals to evict so that one more fits: the least confident, and among equal ones the oldest."""
    order = sorted(pending, key=lambda proposal: (proposal.confidence, proposal.created_at))
    return order[: max(len(pending) + 1 - MAX_PENDING, 0)]


def check_pace(changes: Sequence[datetime], same: Sequence[datetime], now: datetime) -> None:
    """Raise LimitReached for a change of the self that is too soon.

    `changes` are the times of all changes of the self, `same` those of the same part (a belief, a preference, or the
    identity), which may not change again for a while.
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


def shorten_proposal(text: str) -> str:
    """Shorten a text to the length of a proposal."""
    return clip_line(text, TEXT_LENGTH)


def jaro_winkler(first: str, second: str) -> float:
    """Compute the similarity of two texts, 0 to 1, ignoring case and the length of white space; of long ones, the first 400 characters."""
    return JaroWinkler.similarity(_normalize(first), _normalize(second))


def _claims(text: str) -> frozenset[str]:
    """Return the terms of a text that claim something: negations and all words but stop words."""
    words = {part for word in words_of(text) for part in _spelt_out(word)}
    return frozenset(term_of(word) for word in words if word in _NEGATIONS or word not in STOP_WORDS)


def _spelt_out(word: str) -> tuple[str, ...]:
    """Return the significant words of a short form: "not" of "can't" and "cannot", none of "I'm"."""
    if word.endswith("n't") or word == "cannot":
        return ("not",)
    return () if "'" in word else (word,)


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())[:COMPARED_LENGTH]
