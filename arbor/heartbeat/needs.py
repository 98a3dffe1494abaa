"""Needs of heartbeat steps, and their answers.

A step is a generator that yields needs. The driver of a batch answers the needs of all its heartbeats together, kind by
kind in a fixed order. A recall is a need too: an `arbor.memory.recall.recall_request.RecallRequest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.replies.reply import PeerNote, ProposalDecision
from arbor.heartbeat.situation import Situation
from arbor.memory.values import MemoryType, NewMemory
from arbor.models.ports import PromptMessage
from arbor.selves.proposals import NewProposal


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedCall:
    """The end of the call that a heartbeat waited for."""

    call_id: UUID
    complete: bool
    text: str
    error: str = ""
    #: The name of the error's class.
    error_kind: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """The payload of a suspension: the model to ask, the stored form of the request, and the sections of its prompt."""

    model: str
    request: dict[str, Any]
    sections: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Embedding:
    """Vectors of texts. Answered by a mapping from text to vector; texts that cannot be embedded now are missing."""

    model: EmbeddingModel | None
    #: Queries of recalls: embedded without the names of speakers.
    queries: Sequence[str] = ()
    #: Texts that are embedded as they are.
    plain: Sequence[str] = ()
    #: Texts of new memories: left to maintenance where the embedder is another process.
    stored: Sequence[str] = ()
    #: Also embed the examples of the default boundaries and of these rows (JSON).
    boundaries: Sequence[dict[str, Any]] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceSearch:
    """A search of the agent's memories, documents, outputs of workflows and the audit log. Answered by `MemorySearch`."""

    agent_id: UUID
    text: str
    limit: int
    now: datetime
    vector: Sequence[float] | None
    model: EmbeddingModel | None
    #: Whether the agent may read the audit log.
    audit: bool = False
    #: Search documents alone.
    documents_only: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class BufferItems:
    """Buffer items near a text. Answered by a list of `BufferItemView`; found items count as used."""

    text: str
    vector: Sequence[float] | None
    model: EmbeddingModel | None
    limit: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PartialRecalls:
    """Partial recalls after a recall. Answered by a list of names of clusters."""

    recalled: Sequence[Any]
    vector: Sequence[float] | None
    model: EmbeddingModel | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PastQuestion:
    """The heartbeat's first question, or the question of a call. Answered by `PastExchange`."""

    call_id: UUID | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PastExchange:
    """A past question and its reply."""

    system: str
    messages: tuple[PromptMessage, ...]
    sections: tuple[dict[str, Any], ...]
    reply: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CallReply:
    """The text of the reply to a call of this heartbeat. Answered by a string."""

    call_id: UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnMemories:
    """Texts that may be ids of the agent's memories, of one type or, without a type, of any. Answered by a frozenset of the ids that are."""

    named: Sequence[str]
    type: MemoryType | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Materials:
    """The ids of memories that a new one rests on. Answered by a mapping from each id to the memory as `Evidence`.

    Raises NotFound in the step for any other text.
    """

    named: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenBacklog:
    """The agent's backlog, locked until the commit of the leg. Answered by a `Backlog`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placing:
    """New memories of this leg, with vectors for all or none. Answered by `PlacedMemories`."""

    memories: Sequence[NewMemory]
    vectors: npt.NDArray[np.float32] | None
    model: EmbeddingModel | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedMemories:
    """The ids of new memories, in order, and those of duplicates."""

    ids: tuple[UUID, ...]
    duplicates: frozenset[UUID] = frozenset()

    @property
    def fresh(self) -> list[UUID]:
        """Return the ids without duplicates."""
        return [memory_id for memory_id in self.ids if memory_id not in self.duplicates]


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """An action that a service executes in the open transaction. Answered by an `ActionResult`.

    Raises ArborError in the step for a refusal of the domain; nothing is written then.
    """

    decision: Decision
    situation: Situation
    vectors: dict[str, list[float]] = field(default_factory=dict)
    model: EmbeddingModel | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SettledProposals:
    """Proposals of settled changes to the self. Answered by `ProposalOutcome`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Propose:
    """Proposals of changes to the self. Answered by `ProposalOutcome`."""

    proposals: Sequence[NewProposal]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposedChange:
    """A proposal in the queue."""

    id: UUID
    kind: Any
    content: str
    confidence: float
    evidence: int
    #: The kind of the proposed aspect; empty for other kinds of proposals.
    aspect: str = ""
    #: Whether the agent's pace allows the change now.
    acceptable: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalOutcome:
    """The outcome of proposals."""

    made: Sequence[ProposedChange] = ()
    known: Sequence[ProposedChange] = ()
    expired: Sequence[ProposedChange] = ()
    #: Those that would change nothing, as they were given.
    redundant: Sequence[NewProposal] = ()
    #: The number of old experiences that were deleted.
    deleted_experiences: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class DecideProposal:
    """The agent's decision about a proposal. Answered by a line about it; raises ArborError if it cannot be applied."""

    proposal_id: UUID
    choice: ProposalDecision


@dataclass(frozen=True, kw_only=True, slots=True)
class Meeting:
    """A peer that wrote, with the agent's note about it. `peer_id` is empty for a person."""

    name: str
    peer_id: str
    note: PeerNote | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Meetings:
    """Meetings, and notes about other peers. Answered by the refused notes, as the same objects, each with its reason."""

    heartbeat_number: int
    met: Sequence[Meeting]
    others: Sequence[PeerNote]
    #: When a user was last in touch.
    contact: datetime | None = None
