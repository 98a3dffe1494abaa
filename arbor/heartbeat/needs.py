"""The needs of a heartbeat: what a step asks for instead of reading it, and the answers.

A step is a generator that yields needs. Whoever drives several heartbeats answers the needs of all of them together,
the kinds in the order of `ORDER`, so that those behind catch up with those ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from arbor.embedding.models import EmbeddingModel
from arbor.goals.plans import LinkKind
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.reply import PeerNote, ProposalDecision
from arbor.heartbeat.situation import Situation
from arbor.memory.recall_request import RecallRequest
from arbor.memory.values import NewMemory
from arbor.models.ports import Message
from arbor.selves.proposals import NewProposal

__all__ = ["LinkKind", "RecallRequest"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CallResult:
    """How the call that a heartbeat waited for has ended."""

    call_id: UUID
    #: Whether there is a reply.
    complete: bool
    text: str
    error: str = ""
    #: Name of the error's class.
    error_kind: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """The payload of a suspension: the model to ask, the stored form of the request, and the sections of its prompt."""

    model: str
    request: dict[str, Any]
    sections: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Embedding:
    """Vectors of texts. Answered by a mapping from text to vector; what cannot be embedded now is missing in it."""

    model: EmbeddingModel | None
    #: Queries of recalls: embedded without the names of those whose words are remembered.
    queries: Sequence[str] = ()
    #: Texts that are compared as they are.
    plain: Sequence[str] = ()
    #: Texts that are about to be stored: left to maintenance where nobody waits for the embedder.
    stored: Sequence[str] = ()
    #: Also vectors of the examples of boundaries, the default ones and these of the agent's own (rows as JSON).
    boundaries: Sequence[dict[str, Any]] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldThings:
    """What the agent has heard lately about a text. Answered by a list of `HeldView`; what is found counts as used."""

    text: str
    vector: Sequence[float] | None
    model: EmbeddingModel | None
    limit: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Themes:
    """Themes on the tip of the tongue after a recall. Answered by a list of their names."""

    recalled: Sequence[Any]
    vector: Sequence[float] | None
    model: EmbeddingModel | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PastQuestion:
    """The heartbeat's first question, or the one that was answered by this call. Answered by `AskedBefore`."""

    call_id: UUID | None


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedBefore:
    """A question that was asked, and its reply."""

    system: str
    messages: tuple[Message, ...]
    sections: tuple[dict[str, Any], ...]
    reply: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CallReply:
    """The text of the reply to a call of this heartbeat. Answered by a string."""

    call_id: UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnMemories:
    """Those of the texts that are ids of memories of the agent. Answered by a frozenset of ids.

    With `required`, NotFound is raised in the step for texts that are not, naming them.
    """

    named: Sequence[str]
    required: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenBacklog:
    """The agent's backlog, locked until its changes are written with the leg. Answered by a `Backlog`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placing:
    """Memories that are stored with this leg, each with its vector or none. Answered by `Placed`."""

    memories: Sequence[NewMemory]
    vectors: npt.NDArray[np.float32] | None
    model: EmbeddingModel | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """The ids of memories that are going to be stored, in order, and those of them that are known already."""

    ids: tuple[UUID, ...]
    duplicates: frozenset[UUID] = frozenset()

    @property
    def fresh(self) -> list[UUID]:
        """Return the ids of those that were not known."""
        return [memory_id for memory_id in self.ids if memory_id not in self.duplicates]


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """A rare action that a service carries out at once, in the open transaction. Answered by an `ActionResult`.

    What the domain refuses is raised in the step as ArborError; nothing was written then.
    """

    decision: Decision
    situation: Situation
    vectors: dict[str, list[float]] = field(default_factory=dict)
    model: EmbeddingModel | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SettledProposals:
    """Proposals of what is ready to become a part of the self. Answered by `Proposed`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Propose:
    """Proposals of changes to the self. Answered by `Proposed`."""

    proposals: Sequence[NewProposal]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposedChange:
    """A proposal as the queue has it."""

    id: UUID
    kind: Any
    content: str
    confidence: float
    evidence: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposed:
    """What became of proposals."""

    made: Sequence[ProposedChange] = ()
    known: Sequence[ProposedChange] = ()
    expired: Sequence[ProposedChange] = ()
    #: Old experiences that were dropped.
    dropped_experiences: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class DecideProposal:
    """The agent's decision about a proposal. Answered by a line about it; raises ArborError where it cannot be applied."""

    proposal_id: UUID
    choice: ProposalDecision


@dataclass(frozen=True, kw_only=True, slots=True)
class Meeting:
    """Somebody who was met in a beat, and what the agent says of it. `peer_id` is empty for a person."""

    name: str
    peer_id: str
    note: PeerNote | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Meetings:
    """Those who were met, and what the reply says of others. Answered by the notes that do not count, with reasons."""

    tick: int
    met: Sequence[Meeting]
    others: Sequence[PeerNote]


#: The order in which kinds of needs are answered: reads before locks, locks before writes.
ORDER: tuple[type, ...] = (
    PastQuestion,
    CallReply,
    Embedding,
    RecallRequest,
    HeldThings,
    Themes,
    OwnMemories,
    OpenBacklog,
    SettledProposals,
    DecideProposal,
    Propose,
    Service,
    Placing,
    Meetings,
)
