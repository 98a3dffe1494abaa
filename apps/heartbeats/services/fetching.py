"""Answer the needs of the heartbeats of a batch, those of one kind for all heartbeats together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction

from apps.contacts.services.talked import who_talked
from apps.goals.services.backlogs import load_backlogs, save_backlogs
from apps.heartbeats.actions import ACTIONS
from apps.heartbeats.actions.context import ActionContext
from apps.heartbeats.models import ExternalCall
from apps.heartbeats.services.boundary_vectors import example_vectors
from apps.heartbeats.services.members import Member
from apps.heartbeats.services.questions import asked_before
from apps.memories.models import Memory
from apps.memories.services.embedding.embedding import embed_for_storage, embed_query, embeds_here
from apps.memories.services.recall.doors import Recaller
from apps.memories.services.recall.tip_of_the_tongue import on_the_tip_of_the_tongue
from apps.memories.services.retention.buffer import BufferSearch, search_buffers
from apps.memories.services.store.placement import ToRemember
from apps.memories.services.store.provenance import require_memories
from apps.memories.services.store.writer import MemoryWriter
from apps.selves.services import proposals
from apps.selves.services.peers import note_meetings
from apps.selves.services.promotion import look_for_proposals
from apps.tenants.scope import APP
from arbor.embedding.models import EmbeddingModel
from arbor.errors import ArborError, EmbeddingFailed
from arbor.goals.backlog import Backlog
from arbor.heartbeat import needs
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.reply import ProposalChoice
from arbor.heartbeat.situation import HeldView
from arbor.heartbeat.steps.orientation import BEATS_SESSION
from arbor.ids import read_id
from arbor.memory.recall_request import RecallRequest

log = structlog.get_logger(__name__)

_LINE = 120
#: The order in which kinds are answered.
_PLACE: Mapping[type, int] = MappingProxyType({kind: place for place, kind in enumerate(needs.ORDER)})


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A need of one heartbeat."""

    member: Member
    need: Any

    @property
    def agent_id(self) -> UUID:
        """Return whose heartbeat it is."""
        return self.member.agent.id

    @property
    def source(self) -> str:
        """Return what a row of this heartbeat names as where it comes from."""
        return f"heartbeat:{self.member.heartbeat_id}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is an error of the domain, to be raised in the step."""

    error: ArborError


def next_kind(asked: Sequence[Asked]) -> type:
    """Return the kind of need that is answered first. Raises KeyError for one that nobody answers."""
    return min({type(each.need) for each in asked}, key=_PLACE.__getitem__)


class Fetcher:
    """The answers of one leg of a batch: what was read for it, and what it is going to write."""

    def __init__(self, tenant_id: UUID, now: datetime) -> None:
        self._tenant_id = tenant_id
        self._now = now
        self._recaller = Recaller()
        self._meanings: dict[tuple[UUID, str], str] = {}
        self._backlogs: dict[UUID, Backlog] = {}
        self.writer = MemoryWriter()
        #: The heartbeats of the batch.
        self.members: Sequence[Member] = ()
        #: Something is locked, or written, until the transaction ends.
        self.is_committed_to = False

    def answer(self, kind: type, asked: Sequence[Asked]) -> list[Any]:
        """Return the answers to needs of one kind, in order, in the open transaction; a `Refusal` where one is refused."""
        if kind in _WRITING_MEMORIES:
            # All at once and first: rounds of some of them would lock in an order that others do not keep to.
            self.writer.lock([member.agent.id for member in self.members])
        if kind in _AMONG_ROWS:
            self._flush()
        answers = _ANSWERS[kind](self, asked)
        self.is_committed_to = self.is_committed_to or kind in _COMMITTING
        return answers

    def _flush(self) -> None:
        """Write what was placed and changed so far, for a service that reads and writes the rows themselves."""
        self.writer.write()
        self.writer = MemoryWriter()
        save_backlogs(self._backlogs.values())

    def read_meanings(self, asked: Sequence[Asked]) -> None:
        """Read what of each query is to be embedded, in the open transaction. One statement for all agents at most."""
        wanted = [(each.agent_id, text) for each in asked for text in each.need.queries]
        if wanted:
            meanings = self._recaller.meaning_texts(wanted)
            self._meanings |= dict(zip(wanted, meanings, strict=True))

    def embed(self, asked: Sequence[Asked]) -> list[Any]:
        """Return the vectors that are asked for; outside any transaction where an embedder has to be waited for."""
        return [self._vectors(each) for each in asked]

    def _embedding(self, asked: Sequence[Asked]) -> list[Any]:
        self.read_meanings(asked)
        return self.embed(asked)

    def _vectors(self, asked: Asked) -> dict[str, Any]:
        need: needs.Embedding = asked.need
        vectors: dict[str, Any] = {}
        if need.boundaries is not None:
            vectors |= example_vectors(tenant_id=self._tenant_id, model=need.model, own=need.boundaries)
        texts = {text: self._meanings.get((asked.agent_id, text), text) for text in need.queries}
        texts |= {text: text for text in need.plain}
        if texts:
            try:
                rows = embed_query(tenant_id=self._tenant_id, texts=[*texts.values()], model=need.model)
            except EmbeddingFailed as error:
                # Words alone are poorer, and better than no heartbeat.
                log.warning("embedding_failed", agent_id=str(asked.agent_id), error=str(error))
            else:
                vectors |= dict(zip(texts, rows.tolist(), strict=True))
        if need.stored:
            made = embed_for_storage(tenant_id=self._tenant_id, texts=need.stored, model=need.model)
            if made is not None:
                vectors |= dict(zip(need.stored, made.tolist(), strict=True))
        return vectors

    def _recalls(self, asked: Sequence[Asked]) -> list[Any]:
        requests: list[RecallRequest] = [each.need for each in asked]
        return list(self._recaller.recall(requests))

    def _held_things(self, asked: Sequence[Asked]) -> list[Any]:
        found = search_buffers(
            [
                BufferSearch(
                    agent_id=each.agent_id,
                    text=each.need.text,
                    vector=each.need.vector,
                    model=each.need.model,
                    limit=each.need.limit,
                    counts=True,
                )
                for each in asked
            ]
        )
        return [
            [HeldView(content=thing.content, role=thing.role, at=thing.held_at) for thing in things]
            for things in found
        ]

    def _backlogs_of(self, asked: Sequence[Asked]) -> list[Any]:
        missing = {
            each.agent_id: each.member.heartbeat_id for each in asked if each.agent_id not in self._backlogs
        }
        self._backlogs |= load_backlogs(missing, now=self._now)
        return [self._backlogs[each.agent_id] for each in asked]

    def _placed(self, asked: Sequence[Asked]) -> list[Any]:
        placed = self.writer.place(
            [
                ToRemember(
                    agent_id=each.agent_id,
                    memories=each.need.memories,
                    vectors=each.need.vectors,
                    model=each.need.model,
                )
                for each in asked
            ]
        )
        return [needs.Placed(ids=some.ids, duplicates=some.duplicates) for some in placed]

    def _service(self, asked: Asked) -> Any:
        need: needs.Service = asked.need
        context = ActionContext(
            agent_id=asked.agent_id,
            heartbeat_id=asked.member.heartbeat_id,
            now=self._now,
            situation=need.situation,
            vectors=need.vectors,
            model=need.model,
        )
        # All of it or nothing: a refused action has done nothing.
        with transaction.atomic(using=APP):
            return ACTIONS[need.decision.action](context, need.decision)

    def _decided(self, asked: Asked) -> str:
        need: needs.DecideProposal = asked.need
        proposal = _CHOICES[need.choice.decision](
            proposal_id=need.proposal_id,
            agent_id=asked.agent_id,
            decided_by=asked.source,
            reason=need.choice.reason,
            now=self._now,
        )
        return f"{need.choice.decision} {proposal.kind}: {clip(proposal.content, _LINE)} ({proposal.reason})"

    def _met(self, asked: Asked) -> Any:
        need: needs.Meetings = asked.need
        return note_meetings(
            agent_id=asked.agent_id,
            tick=need.tick,
            now=self._now,
            meetings=need.met,
            told=need.others,
            talked_with=partial(who_talked, asked.agent_id),
        )


def embeds_elsewhere(asked: Sequence[Asked]) -> bool:
    """Tell whether vectors that are asked for have to be waited for."""
    models: set[EmbeddingModel | None] = {each.need.model for each in asked}
    return not all(embeds_here(model) for model in models)


def _one_by_one(answer: Callable[[Fetcher, Asked], Any]) -> Callable[[Fetcher, Sequence[Asked]], list[Any]]:
    def answer_all(fetcher: Fetcher, asked: Sequence[Asked]) -> list[Any]:
        answers: list[Any] = []
        for each in asked:
            try:
                answers.append(answer(fetcher, each))
            except ArborError as error:
                answers.append(Refusal(error))
        return answers

    return answer_all


def _themes(_: Fetcher, asked: Asked) -> list[str]:
    need: needs.Themes = asked.need
    found = on_the_tip_of_the_tongue(
        agent_id=asked.agent_id,
        recalled=need.recalled,
        vector=need.vector,
        model=need.model,
        without_session=BEATS_SESSION,
    )
    return [theme.name for theme in found]


def _past_questions(_: Fetcher, asked: Sequence[Asked]) -> list[Any]:
    return list(asked_before([(each.member.heartbeat_id, each.need.call_id) for each in asked]))


def _call_reply(_: Fetcher, asked: Asked) -> str:
    reply: str = ExternalCall.objects.values_list("reply", flat=True).get(id=asked.need.call_id)
    return reply


def _own_memories(_: Fetcher, asked: Asked) -> frozenset[UUID]:
    need: needs.OwnMemories = asked.need
    if need.required:
        return frozenset(require_memories(agent_id=asked.agent_id, named=need.named))
    ids = [found for text in need.named if (found := read_id(text)) is not None]
    return frozenset(Memory.objects.filter(agent_id=asked.agent_id, id__in=ids).values_list("id", flat=True))


def _settled(_: Fetcher, asked: Asked) -> needs.Proposed:
    found = look_for_proposals(agent_id=asked.agent_id)
    return _proposed(found.proposed, dropped_experiences=found.let_go)


def _propose(_: Fetcher, asked: Asked) -> needs.Proposed:
    return _proposed(proposals.propose(agent_id=asked.agent_id, proposals=asked.need.proposals))


def _proposed(found: proposals.Proposed, *, dropped_experiences: int = 0) -> needs.Proposed:
    made, known, expired = (
        tuple(
            needs.ProposedChange(
                id=row.id,
                kind=row.kind,
                content=row.content,
                confidence=row.confidence,
                evidence=len(row.evidence),
            )
            for row in rows
        )
        for rows in (found.made, found.known, found.expired)
    )
    return needs.Proposed(made=made, known=known, expired=expired, dropped_experiences=dropped_experiences)


_CHOICES: Mapping[ProposalChoice, Callable[..., Any]] = MappingProxyType(
    {
        ProposalChoice.ACCEPT: proposals.accept,
        ProposalChoice.REJECT: proposals.reject,
        ProposalChoice.DEFER: proposals.defer,
    }
)
_ANSWERS: Mapping[type, Callable[[Fetcher, Sequence[Asked]], list[Any]]] = MappingProxyType(
    {
        needs.PastQuestion: _past_questions,
        needs.CallReply: _one_by_one(_call_reply),
        needs.Embedding: Fetcher._embedding,
        RecallRequest: Fetcher._recalls,
        needs.HeldThings: Fetcher._held_things,
        needs.Themes: _one_by_one(_themes),
        needs.OwnMemories: _one_by_one(_own_memories),
        needs.OpenBacklog: Fetcher._backlogs_of,
        needs.SettledProposals: _one_by_one(_settled),
        needs.DecideProposal: _one_by_one(Fetcher._decided),
        needs.Propose: _one_by_one(_propose),
        needs.Service: _one_by_one(Fetcher._service),
        needs.Placing: Fetcher._placed,
        needs.Meetings: _one_by_one(Fetcher._met),
    }
)
#: Kinds that services answer which look at memories and goals, and write them.
_AMONG_ROWS = frozenset({needs.DecideProposal, needs.Service})
_WRITING_MEMORIES = frozenset({needs.Placing, needs.Propose, *_AMONG_ROWS})
#: Kinds whose answers lock or write.
_COMMITTING = frozenset(
    {
        needs.HeldThings,
        needs.OpenBacklog,
        needs.SettledProposals,
        needs.DecideProposal,
        needs.Propose,
        needs.Service,
        needs.Placing,
        needs.Meetings,
    }
)
