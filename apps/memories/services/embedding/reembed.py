"""Move agents to another embedding model: build the new vectors beside the present ones, then switch.

While the new vectors are made, nothing that recall reads is touched. When none is missing, one transaction under the
agent's lock takes them over. A run that was broken off goes on where it stopped, for what it made is kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import batched
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, connections
from django.db.models import Exists, OuterRef, QuerySet

from apps.audit.models import AuditAction
from apps.audit.services import across_tenants, record
from apps.memories.models import BufferItem, Cluster, Episode, Memory, Mind, NextEmbedding, Upkeep
from apps.memories.services.embedding import queries
from apps.memories.services.embedding.backlog import REFUSED
from apps.memories.services.embedding.embedders import answers, check_embedder, name_of
from apps.memories.services.embedding.embedding import Vectors, embed_texts, embedder_for
from apps.memories.services.embedding.literals import fitting, halfvec_texts, sparsevec_text
from apps.memories.services.embedding.minds import checked, model_of
from apps.memories.services.store.term_counts import count_terms, lock_minds, terms_of
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.statements import change
from arbor.embedding.backoff import embedder_retry_delay
from arbor.embedding.models import EmbeddingModel
from arbor.errors import AlreadyExists, EmbeddingFailed
from arbor.memory.detail_text import indexed_terms
from arbor.memory.values import MemoryStatus

log = structlog.get_logger(__name__)

#: Memories embedded at once unless the caller says otherwise.
BATCH = 500
#: An embedder that does not answer is asked so often in all before the run is given up: for 70 s.
TRIES = 4
#: Memories that are stored while the rest are taken over are fetched up so often; then the backlog embeds them.
CATCHES = 10

type OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Move:
    """An agent that is to be moved."""

    tenant_id: UUID
    agent_id: UUID
    tenant: str
    name: str
    #: What its vectors are by now.
    model: EmbeddingModel
    memories: int
    #: How many of them have their next vector already, from a run that was broken off.
    made: int


@dataclass(frozen=True, kw_only=True)
class _Text:
    id: UUID
    content: str
    role: str
    session: str
    detail: Mapping[str, Any]
    #: The places of the words that are in the index now.
    places: frozenset[int]


@dataclass(kw_only=True)
class Reembedding:
    """One run: where to, how, and how far it has come."""

    model: EmbeddingModel
    #: Who asked for it, as audit keeps it.
    actor: str
    batch: int = BATCH
    #: Called with the number of memories that have their next vector, and their total.
    progress: OnProgress | None = None
    #: How to wait for an embedder that does not answer; seconds.
    pause: Callable[[float], None] = time.sleep
    done: int = field(default=0, init=False)
    total: int = field(default=0, init=False)

    def run(self, moves: Sequence[Move]) -> list[ModelSwitch]:
        """Move the agents, one after the other, and return what became of each.

        Raises ConfigurationInvalid or EmbeddingFailed, before anything is written, when the model cannot be asked;
        EmbeddingFailed when it stops answering; and AlreadyExists where another run moves an agent elsewhere. Run again,
        it goes on where it stopped.
        """
        embedder_for(checked(self.model))
        if moves and (error := check_embedder(self.model).error):
            raise EmbeddingFailed(f"{self.model} cannot be used, and nothing was changed: {error}")
        self.total = sum(move.memories for move in moves)
        self.done = sum(min(move.made, move.memories) for move in moves)
        self._report(0)
        return [self._move(move) for move in moves]

    def _move(self, move: Move) -> ModelSwitch:
        for catch in range(CATCHES + 1):
            self._make_missing(move)
            with tenant_transaction(move.tenant_id):
                taken = switch_model(
                    agent_id=move.agent_id, model=self.model, actor=self.actor, leave=catch == CATCHES
                )
            if taken is not None:
                log.info(
                    "agent_reembedded", agent_id=str(move.agent_id), model=str(self.model), **vars(taken)
                )
                return taken
        raise AssertionError("the last attempt leaves nothing missing")

    def _make_missing(self, move: Move) -> None:
        """Make the next vectors that are missing, batch by batch, and keep each batch."""
        named = name_of(self.model)
        with tenant_transaction(move.tenant_id):
            made = NextEmbedding.objects.filter(agent_id=move.agent_id)
            made.exclude(embedding_model=named).delete()
            missing = list(_missing(move.agent_id, self.model).order_by("id").values_list("id", flat=True))
        for ids in batched(missing, self.batch, strict=False):
            with tenant_transaction(move.tenant_id):
                memories = Memory.objects.filter(agent_id=move.agent_id, id__in=list(ids)).order_by("id")
                texts = [
                    _text(row)
                    for row in memories.values_list("id", "content", "role", "session", "detail", "lexical")
                ]
            rows = self._next_rows(move.tenant_id, texts)
            with tenant_transaction(move.tenant_id):
                kept = change(queries.WRITE_NEXT_VECTORS, rows=json.dumps(rows), next=named)
                others = NextEmbedding.objects.filter(memory_id__in=list(ids)).exclude(embedding_model=named)
                other = others.values_list("embedding_model", flat=True).first()
            if other:
                raise AlreadyExists(
                    f"another run moves agent {move.name} to {other}: let it end, then run this one again"
                )
            self._report(kept)

    def _report(self, made: int) -> None:
        self.done += made
        self.total = max(self.total, self.done)
        if self.progress:
            self.progress(self.done, self.total)

    def _next_rows(self, tenant_id: UUID, texts: Sequence[_Text]) -> list[dict[str, Any]]:
        """Return the rows of the next vectors of these texts; without a vector, those that cannot be embedded."""
        if not texts:
            return []
        vectors = self._embed(tenant_id, texts)
        if vectors is None and len(texts) > 1:
            half = len(texts) // 2
            return self._next_rows(tenant_id, texts[:half]) + self._next_rows(tenant_id, texts[half:])
        literals: Sequence[str | None] = [None] if vectors is None else halfvec_texts(vectors)
        return [
            {"id": str(text.id), "embedding": literal, "lexical": self._words(text)}
            for text, literal in zip(texts, literals, strict=True)
        ]

    def _embed(self, tenant_id: UUID, texts: Sequence[_Text]) -> Vectors | None:
        """Return the vectors, or none when it is one of the texts that the embedder cannot read.

        Raises EmbeddingFailed when it does not answer at all, after having waited for it.
        """
        failures = 0
        while True:
            try:
                return embed_texts(
                    tenant_id=tenant_id, texts=[text.content for text in texts], model=self.model
                )
            except EmbeddingFailed:
                if answers(self.model):
                    return None
                failures += 1
                if failures == TRIES:
                    raise
                self.pause(embedder_retry_delay(failures).total_seconds())

    def _words(self, text: _Text) -> str | None:
        """Return the words that will fit into the index beside the new vector, if they differ from those now."""
        words = fitting(
            indexed_terms(text.content, speaker=text.role, detail=text.detail),
            session=text.session,
            dimension=self.model.dimension,
        )
        return None if words.keys() == text.places else sparsevec_text(words)


def find_moves(
    *, model: EmbeddingModel, actor: str, tenant_id: UUID | None = None, agent_id: UUID | None = None
) -> list[Move]:
    """Return the agents that have another model than this, with what they have: of a tenant, one of them, or all.

    Also those that are moved already, but left with vectors of a run that was broken off. A look across tenants is on
    record.
    """
    values = {
        "tenant": tenant_id,
        "agent": agent_id,
        "name": model.name,
        "dimension": model.dimension,
        "next": name_of(model),
    }
    if tenant_id is not None:
        with tenant_transaction(tenant_id), connection.cursor() as cursor:
            cursor.execute(queries.AGENTS_TO_MOVE, values)
            return [_as_move(row) for row in cursor.fetchall()]
    reason = f"finding the agents that are to be moved to {model}"
    with across_tenants(actor=actor, reason=reason), connections[OPS].cursor() as cursor:
        cursor.execute(queries.AGENTS_TO_MOVE, values)
        return [_as_move(row) for row in cursor.fetchall()]


def _as_move(row: tuple[Any, ...]) -> Move:
    tenant_id, agent_id, tenant, name, model, dimension, memories, made = row
    return Move(
        tenant_id=tenant_id,
        agent_id=agent_id,
        tenant=tenant,
        name=name,
        model=EmbeddingModel(name=model, dimension=dimension),
        memories=memories,
        made=made,
    )


def _text(row: tuple[Any, ...]) -> _Text:
    memory_id, content, role, session, detail, lexical = row
    places = frozenset(terms_of(lexical))
    return _Text(id=memory_id, content=content, role=role, session=session, detail=detail, places=places)


def _missing(agent_id: UUID, model: EmbeddingModel) -> QuerySet[Memory]:
    """Return the agent's memories without a vector of this model."""
    made = NextEmbedding.objects.filter(memory_id=OuterRef("id"), embedding_model=name_of(model))
    memories: QuerySet[Memory] = Memory.objects.filter(~Exists(made), agent_id=agent_id)
    return memories


@dataclass(frozen=True, kw_only=True)
class ModelSwitch:
    """The numbers of rows that a switch changed."""

    memories: int
    #: Texts that the new model cannot read: found by their words alone.
    refused: int
    #: Memories stored at the last moment, which the backlog embeds.
    left: int
    #: How long the agent's writers waited.
    seconds: float


def switch_model(
    *, agent_id: UUID, model: EmbeddingModel, actor: str, leave: bool = False
) -> ModelSwitch | None:
    """Give the agent its next vectors, in the open transaction; return none, and do nothing, while some are missing.

    `leave` takes over in any case: the backlog embeds what is missing. An agent that has the model already only loses
    the rows that were made for it. At most fifteen statements, however many memories.
    """
    lock_minds([agent_id])
    started = time.perf_counter()
    before = model_of(agent_id)
    if before == model:
        NextEmbedding.objects.filter(agent_id=agent_id).delete()
        return ModelSwitch(memories=0, refused=0, left=0, seconds=time.perf_counter() - started)
    missing = _missing(agent_id, model).count()
    if missing and not leave:
        return None
    _recount_words(agent_id)
    refused = NextEmbedding.objects.filter(agent_id=agent_id, embedding=None).count()
    made_by = embedder_for(model).model
    memories = change(
        queries.SWITCH_VECTORS,
        agent=agent_id,
        next=name_of(model),
        made_by=made_by,
        refused=REFUSED + made_by,
    )
    _reset_derived(agent_id, model)
    NextEmbedding.objects.filter(agent_id=agent_id).delete()
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"moved {memories} memories from the embedding model {before} to {model}",
        detail={"refused": refused, "left_to_backlog": missing},
    )
    return ModelSwitch(
        memories=memories, refused=refused, left=missing, seconds=time.perf_counter() - started
    )


def _reset_derived(agent_id: UUID, model: EmbeddingModel) -> None:
    """Empty or mark what was computed from the old vectors: its jobs compute it again. Nobody sees both kinds."""
    Mind.objects.filter(agent_id=agent_id).update(
        embedding_model=model.name, embedding_dimension=model.dimension
    )
    Cluster.objects.filter(agent_id=agent_id).update(centroid=None, stale=True)
    for embedded in (Episode, BufferItem):
        rows = embedded.objects.filter(agent_id=agent_id).exclude(embedding=None, embedding_model="")
        rows.update(embedding=None, embedding_model="")
    # All of them, stale or not: a new version of the row keeps neighborhoods that are being computed from being written.
    Upkeep.objects.filter(agent_id=agent_id).update(stale=True)


def _recount_words(agent_id: UUID) -> None:
    """Update the term counts where more or fewer words of a memory will fit into the index than before."""
    changed = list(
        NextEmbedding.objects.filter(
            agent_id=agent_id, lexical__isnull=False, memory__status=MemoryStatus.ACTIVE
        ).values_list("memory__lexical", "lexical")
    )
    count_terms(agent_id, [terms_of(old) for old, _ in changed], sign=-1)
    count_terms(agent_id, [terms_of(new) for _, new in changed], sign=1)
