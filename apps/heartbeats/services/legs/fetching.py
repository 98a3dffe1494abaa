"""Answer the needs of a batch of heartbeats, kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction

from apps.calls.models import ExternalCall
from apps.contacts.services.chat_history import last_talks
from apps.goals.services.backlogs import load_backlogs, save_backlogs
from apps.heartbeats.actions import ACTIONS
from apps.heartbeats.actions.context import ActionContext
from apps.heartbeats.services.calls.questions import past_exchanges
from apps.heartbeats.services.legs.boundary_vectors import example_vectors
from apps.heartbeats.services.legs.members import LeasedHeartbeat
from apps.heartbeats.services.legs.promotion import propose_settled_changes
from apps.knowledge.services.search import answer_search
from apps.memories.models import Memory
from apps.memories.services.embedding.embedding import embed_for_storage, embed_query, embeds_here
from apps.memories.services.recall.partial_recall import partial_recall_after
from apps.memories.services.recall.recaller import Recaller
from apps.memories.services.retention.buffer import BufferSearch, search_buffers
from apps.memories.services.store.placement import StoreRequest
from apps.memories.services.store.provenance import require_evidence
from apps.memories.services.store.remember import MemoryWriter
from apps.selves.services import proposals
from apps.selves.services.peers import Dealings, record_meetings
from apps.signals.services.emission import dropped_on_error
from apps.tenants.scope import APP
from arbor.embedding.models import EmbeddingModel
from arbor.errors import ArborError, EmbeddingFailed
from arbor.goals.backlog import Backlog
from arbor.heartbeat import needs
from arbor.heartbeat.replies.reply import ProposalChoice
from arbor.heartbeat.situation import BufferItemView
from arbor.ids import read_id
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.values import HEARTBEATS_SESSION
from arbor.quotations import shorten

log = structlog.get_logger(__name__)

#: Characters of a proposal in the summary of its decision.
_SUMMARY_LENGTH = 120


def next_kind(members: Sequence[LeasedHeartbeat]) -> type:
    """Return the kind of need to answer first. Raises KeyError for an unknown kind."""
    return min({type(member.need) for member in members}, key=_POSITION.__getitem__)


class Fetcher:
    """Answers the needs of one leg of a batch, with pending writes."""

    def __init__(self, tenant_id: UUID, now: datetime) -> None:
        self._tenant_id = tenant_id
        self._now = now
        self._recaller = Recaller()
        self._meanings: dict[tuple[UUID, str], str] = {}
        self._backlogs: dict[UUID, Backlog] = {}
        self.writer = MemoryWriter()
        #: The heartbeats of the batch.
        self.members: Sequence[LeasedHeartbeat] = ()
        #: Whether the open transaction has locked or written rows.
        self.has_locks = False

    def answer(self, kind: type, members: Sequence[LeasedHeartbeat]) -> list[Any]:
        """Return the answers to needs of one kind, in order, in the open transaction; a domain error is returned as an answer."""
        if kind in _WRITING_MEMORIES:
            # Lock all agents at once: locking them one after another could deadlock with other batches.
            self.writer.lock([member.agent.id for member in self.members])
        if kind in _USING_ROWS:
            self._flush()
        answers = _ANSWERS[kind](self, members)
        self.has_locks = self.has_locks or kind in _LOCKING
        return answers

    def _flush(self) -> None:
        """Write pending memories and backlogs, for services that read and write the rows."""
        self.writer.write()
        self.writer = MemoryWriter()
        save_backlogs(self._backlogs.values())

    def read_meanings(self, members: Sequence[LeasedHeartbeat]) -> None:
        """Read the text to embed for each query, in the open transaction. One statement at most."""
        wanted = [(member.agent.id, text) for member in members for text in member.need.queries]
        if wanted:
            meanings = self._recaller.meaning_texts(wanted)
            self._meanings |= dict(zip(wanted, meanings, strict=True))

    def embed(self, members: Sequence[LeasedHeartbeat]) -> list[Any]:
        """Return the requested vectors; call it outside any transaction if the embedder is remote."""
        return [self._vectors(member) for member in members]

    def _embedding(self, members: Sequence[LeasedHeartbeat]) -> list[Any]:
        self.read_meanings(members)
        return self.embed(members)

    def _vectors(self, member: LeasedHeartbeat) -> dict[str, Any]:
        need: needs.Embedding = member.need
        vectors: dict[str, Any] = {}
        if need.boundaries is not None:
            vectors |= example_vectors(tenant_id=self._tenant_id, model=need.model, own=need.boundaries)
        texts = {text: self._meanings.get((member.agent.id, text), text) for text in need.queries}
        texts |= {text: text for text in need.plain}
        if texts:
            try:
                rows = embed_query(tenant_id=self._tenant_id, texts=[*texts.values()], model=need.model)
            except EmbeddingFailed as error:
                # Fall back to lexical recall.
                log.warning("embedding_failed", agent_id=str(member.agent.id), error=str(error))
            else:
                vectors |= dict(zip(texts, rows.tolist(), strict=True))
        if need.stored:
            stored_rows = embed_for_storage(tenant_id=self._tenant_id, texts=need.stored, model=need.model)
            if stored_rows is not None:
                vectors |= dict(zip(need.stored, stored_rows.tolist(), strict=True))
        return vectors

    def _recalls(self, members: Sequence[LeasedHeartbeat]) -> list[Any]:
        requests: list[RecallRequest] = [member.need for member in members]
        return list(self._recaller.recall(requests))

    def _buffer_items(self, members: Sequence[LeasedHeartbeat]) -> list[Any]:
        found_by_need = search_buffers(
            [
                BufferSearch(
                    agent_id=member.agent.id,
                    text=member.need.text,
                    vector=member.need.vector,
                    model=member.need.model,
                    limit=member.need.limit,
                    counts=True,
                )
                for member in members
            ]
        )
        return [
            [
                BufferItemView(content=item.content, role=item.role, at=item.created_at, trust=item.trust)
                for item in items
            ]
            for items in found_by_need
        ]

    def _backlogs_of(self, members: Sequence[LeasedHeartbeat]) -> list[Any]:
        missing = {
            member.agent.id: member.heartbeat_id
            for member in members
            if member.agent.id not in self._backlogs
        }
        self._backlogs |= load_backlogs(missing, now=self._now)
        return [self._backlogs[member.agent.id] for member in members]

    def _place(self, members: Sequence[LeasedHeartbeat]) -> list[Any]:
        placed = self.writer.place(
            [
                StoreRequest(
                    agent_id=member.agent.id,
                    memories=member.need.memories,
                    vectors=member.need.vectors,
                    model=member.need.model,
                )
                for member in members
            ]
        )
        return [
            needs.PlacedMemories(ids=placed_memories.ids, duplicates=placed_memories.duplicates)
            for placed_memories in placed
        ]

    def _execute_service(self, member: LeasedHeartbeat) -> Any:
        need: needs.Service = member.need
        context = ActionContext(
            agent_id=member.agent.id,
            heartbeat_id=member.heartbeat_id,
            now=self._now,
            situation=need.situation,
            vectors=need.vectors,
            model=need.model,
        )
        # A savepoint: a refused action leaves no writes.
        with transaction.atomic(using=APP), dropped_on_error():
            return ACTIONS[need.decision.action](context, need.decision)

    def _decide(self, member: LeasedHeartbeat) -> str:
        need: needs.DecideProposal = member.need
        about: dict[str, Any] = {
            "proposal_id": need.proposal_id,
            "agent_id": member.agent.id,
            "decided_by": member.source,
            "now": self._now,
        }
        try:
            proposal = _PROPOSAL_DECISIONS[need.choice.decision](reason=need.choice.reason, **about)
        except ArborError as error:
            if need.choice.decision is ProposalChoice.ACCEPT:
                proposals.defer_refused(reason=str(error), **about)
            raise
        return f"{need.choice.decision} {proposal.kind}: {shorten(proposal.content, _SUMMARY_LENGTH)} ({proposal.reason})"

    def _record_meetings(self, member: LeasedHeartbeat) -> Any:
        need: needs.Meetings = member.need
        return record_meetings(
            agent_id=member.agent.id,
            heartbeat_number=need.heartbeat_number,
            now=self._now,
            dealings=Dealings(
                met=need.met,
                others=need.others,
                contact=need.contact,
                talked_with=partial(last_talks, member.agent.id),
            ),
        )


def embeds_elsewhere(members: Sequence[LeasedHeartbeat]) -> bool:
    """Return whether requested vectors come from a remote embedder."""
    models: set[EmbeddingModel | None] = {member.need.model for member in members}
    return not all(embeds_here(model) for model in models)


def _one_by_one(
    answer: Callable[[Fetcher, LeasedHeartbeat], Any],
) -> Callable[[Fetcher, Sequence[LeasedHeartbeat]], list[Any]]:
    def answer_all(fetcher: Fetcher, members: Sequence[LeasedHeartbeat]) -> list[Any]:
        answers: list[Any] = []
        for member in members:
            try:
                answers.append(answer(fetcher, member))
            except ArborError as error:
                answers.append(error)
        return answers

    return answer_all


def _cluster_names(_: Fetcher, member: LeasedHeartbeat) -> list[str]:
    need: needs.PartialRecalls = member.need
    clusters = partial_recall_after(
        agent_id=member.agent.id,
        recalled=need.recalled,
        vector=need.vector,
        model=need.model,
        without_session=HEARTBEATS_SESSION,
    )
    return [cluster.name for cluster in clusters]


def _past_questions(_: Fetcher, members: Sequence[LeasedHeartbeat]) -> list[Any]:
    return list(past_exchanges([(member.heartbeat_id, member.need.call_id) for member in members]))


def _call_reply(_: Fetcher, member: LeasedHeartbeat) -> str:
    reply: str = ExternalCall.objects.values_list("reply", flat=True).get(id=member.need.call_id)
    return reply


def _own_memories(_: Fetcher, member: LeasedHeartbeat) -> frozenset[UUID]:
    need: needs.OwnMemories = member.need
    ids = [memory_id for text in need.named if (memory_id := read_id(text)) is not None]
    found = Memory.objects.filter(agent_id=member.agent.id, id__in=ids)
    if need.type is not None:
        found = found.filter(type=need.type)
    return frozenset(found.values_list("id", flat=True))


def _settle_proposals(_: Fetcher, member: LeasedHeartbeat) -> needs.ProposalOutcome:
    consolidated = propose_settled_changes(agent_id=member.agent.id)
    waiting = proposals.find_proposals_too_soon(
        agent_id=member.agent.id, proposals=consolidated.proposed.made
    )
    outcome = _proposed(consolidated.proposed, deleted_experiences=consolidated.deleted_experiences)
    return replace(
        outcome, made=[replace(proposal, acceptable=proposal.id not in waiting) for proposal in outcome.made]
    )


def _proposed(result: proposals.ProposalResult, *, deleted_experiences: int = 0) -> needs.ProposalOutcome:
    made, known, expired = (
        tuple(
            needs.ProposedChange(
                id=row.id,
                kind=row.kind,
                content=row.content,
                confidence=row.confidence,
                evidence=len(row.evidence),
                aspect=row.change.get("aspect", ""),
            )
            for row in rows
        )
        for rows in (result.made, result.known, result.expired)
    )
    return needs.ProposalOutcome(
        made=made,
        known=known,
        expired=expired,
        redundant=result.redundant,
        deleted_experiences=deleted_experiences,
    )


_PROPOSAL_DECISIONS: Mapping[ProposalChoice, Callable[..., Any]] = MappingProxyType(
    {
        ProposalChoice.ACCEPT: proposals.accept,
        ProposalChoice.REJECT: proposals.reject,
        ProposalChoice.DEFER: proposals.defer,
    }
)
#: The answers by kinds of needs, in the order in which kinds are answered: reads before locks, locks before writes.
_ANSWERS: Mapping[type, Callable[[Fetcher, Sequence[LeasedHeartbeat]], list[Any]]] = MappingProxyType(
    {
        needs.PastQuestion: _past_questions,
        needs.CallReply: _one_by_one(_call_reply),
        needs.Embedding: Fetcher._embedding,
        RecallRequest: Fetcher._recalls,
        needs.SourceSearch: _one_by_one(lambda _, member: answer_search(member.need)),
        needs.BufferItems: Fetcher._buffer_items,
        needs.PartialRecalls: _one_by_one(_cluster_names),
        needs.OwnMemories: _one_by_one(_own_memories),
        needs.Materials: _one_by_one(
            lambda _, member: require_evidence(agent_id=member.agent.id, named=member.need.named)
        ),
        needs.OpenBacklog: Fetcher._backlogs_of,
        needs.SettledProposals: _one_by_one(_settle_proposals),
        needs.DecideProposal: _one_by_one(Fetcher._decide),
        needs.Propose: _one_by_one(
            lambda _, member: _proposed(
                proposals.propose(agent_id=member.agent.id, proposals=member.need.proposals)
            )
        ),
        needs.Service: _one_by_one(Fetcher._execute_service),
        needs.Placing: Fetcher._place,
        needs.Meetings: _one_by_one(Fetcher._record_meetings),
    }
)
_POSITION: Mapping[type, int] = MappingProxyType({kind: position for position, kind in enumerate(_ANSWERS)})
#: Kinds answered by services that read and write rows of memories and goals.
_USING_ROWS = frozenset({needs.DecideProposal, needs.Service})
_WRITING_MEMORIES = frozenset({needs.Placing, needs.Propose, *_USING_ROWS})
#: Kinds whose answers lock or write rows.
_LOCKING = frozenset(
    {
        needs.BufferItems,
        needs.OpenBacklog,
        needs.SettledProposals,
        needs.DecideProposal,
        needs.Propose,
        needs.Service,
        needs.Placing,
        needs.Meetings,
    }
)
