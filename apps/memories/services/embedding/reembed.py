"""Move agents to another embedding model: compute the next vectors beside the present ones, then switch.

Next vectors have a table of their own, so recall is not affected. When none is missing, one transaction under the lock of
the mind replaces the present ones. A run that was interrupted can be started again, and continues where it stopped.
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

from apps.agents.services.locks import lock_schedule
from apps.audit.models import AuditAction
from apps.audit.services import across_tenants, record
from apps.memories.models import BufferItem, Cluster, Episode, Memory, Mind, NextEmbedding, Upkeep
from apps.memories.services.embedding import queries
from apps.memories.services.embedding.embedders import can_embed, check_embedder, name_of
from apps.memories.services.embedding.embedding import embed_texts, embedder_for
from apps.memories.services.embedding.literals import fit_terms, halfvec_texts, sparsevec_text
from apps.memories.services.embedding.minds import check_dimension, model_of
from apps.memories.services.store.term_counts import count_terms, lock_minds, terms_of
from apps.memories.services.store.word_index import INDEXED_COLUMNS, index_memories
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.statements import change
from arbor.embedding.backoff import embedder_retry_delay
from arbor.embedding.models import REFUSED, EmbeddingModel
from arbor.embedding.ports import Vectors
from arbor.errors import AlreadyExists, EmbeddingFailed
from arbor.memory.detail_text import indexed_terms
from arbor.memory.values import MemoryStatus
from arbor.quotations import counted

log = structlog.get_logger(__name__)

#: The number of memories embedded at once by default.
BATCH = 500
#: The number of tries before a run fails because the embedder does not answer: for 70 s.
TRIES = 4
#: The most passes over memories that were stored during the run; those stored after the last pass are left to the backlog.
EXTRA_PASSES = 10

type OnProgress = Callable[[int, int], None]
#: Called in a transaction before an agent is moved, with its id.
type BeforeMove = Callable[[UUID], object]


@dataclass(frozen=True, kw_only=True)
class Move:
    """An agent to be moved to another embedding model."""

    tenant_id: UUID
    agent_id: UUID
    tenant: str
    name: str
    #: The present model.
    model: EmbeddingModel
    memories: int
    #: The number of memories that already have their next vector, from an interrupted run.
    prepared: int


@dataclass(frozen=True, kw_only=True)
class _Text:
    id: UUID
    content: str
    role: str
    session: str
    detail: Mapping[str, Any]
    #: The places of the terms that are in the index now.
    places: frozenset[int]


@dataclass(kw_only=True)
class Reembedding:
    """One run that moves agents: the target model, the options and the progress."""

    model: EmbeddingModel
    #: The actor for the audit log.
    actor: str
    batch: int = BATCH
    #: Saves the agent before it is moved; not called for an agent without memories, nor again where an interrupted run continues.
    before: BeforeMove | None = None
    #: Called with the number of memories that have their next vector, and the total number.
    progress: OnProgress | None = None
    #: Waits for a number of seconds when the embedder does not answer.
    pause: Callable[[float], None] = time.sleep
    done: int = field(default=0, init=False)
    total: int = field(default=0, init=False)

    def run(self, moves: Sequence[Move]) -> list[ModelSwitch]:
        """Move the agents, one after the other, and return the result for each.

        Raises ConfigurationInvalid or EmbeddingFailed, before anything is written, if the model cannot be called;
        EmbeddingFailed if it stops answering; AlreadyExists if another run moves an agent to another model. A further
        run continues where this one stopped.
        """
        embedder_for(check_dimension(self.model))
        if moves and (error := check_embedder(self.model).error):
            raise EmbeddingFailed(f"{self.model} cannot be used, and nothing was changed: {error}")
        self.total = sum(move.memories for move in moves)
        self.done = sum(min(move.prepared, move.memories) for move in moves)
        self._report(0)
        return [self._move(move) for move in moves]

    def _move(self, move: Move) -> ModelSwitch:
        if self.before is not None and move.memories and not move.prepared:
            with tenant_transaction(move.tenant_id):
                self.before(move.agent_id)
        for extra_pass in range(EXTRA_PASSES + 1):
            self._prepare_missing(move)
            with tenant_transaction(move.tenant_id):
                switched = switch_model(
                    agent_id=move.agent_id,
                    model=self.model,
                    actor=self.actor,
                    leave_missing=extra_pass == EXTRA_PASSES,
                )
            if switched is not None:
                log.info(
                    "agent_reembedded", agent_id=str(move.agent_id), model=str(self.model), **vars(switched)
                )
                return switched
        raise AssertionError("the last pass switches even if vectors are missing")

    def _prepare_missing(self, move: Move) -> None:
        """Compute missing next vectors and write them, batch by batch."""
        named = name_of(self.model)
        with tenant_transaction(move.tenant_id):
            next_vectors = NextEmbedding.objects.filter(agent_id=move.agent_id)
            next_vectors.exclude(embedding_model=named).delete()
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
                written = change(queries.WRITE_NEXT_VECTORS, rows=json.dumps(rows), ids=list(ids), next=named)
                others = NextEmbedding.objects.filter(memory_id__in=list(ids)).exclude(embedding_model=named)
                other = others.values_list("embedding_model", flat=True).first()
            if other:
                raise AlreadyExists(
                    f"another run moves agent {move.name} to {other}: let it end, then run this one again"
                )
            self._report(written)

    def _report(self, prepared: int) -> None:
        self.done += prepared
        self.total = max(self.total, self.done)
        if self.progress:
            self.progress(self.done, self.total)

    def _next_rows(self, tenant_id: UUID, texts: Sequence[_Text]) -> list[dict[str, Any]]:
        """Return the rows of the texts' next vectors; the row of a text that cannot be embedded has no vector."""
        if not texts:
            return []
        vectors = self._embed(tenant_id, texts)
        if vectors is None and len(texts) > 1:
            half = len(texts) // 2
            return self._next_rows(tenant_id, texts[:half]) + self._next_rows(tenant_id, texts[half:])
        literals: Sequence[str | None] = [None] if vectors is None else halfvec_texts(vectors)
        return [
            {"id": str(text.id), "embedding": literal, "lexical": self._next_terms(text)}
            for text, literal in zip(texts, literals, strict=True)
        ]

    def _embed(self, tenant_id: UUID, texts: Sequence[_Text]) -> Vectors | None:
        """Return the vectors; None if the embedder cannot embed one of the texts.

        Raises EmbeddingFailed if the embedder still does not answer after several tries.
        """
        failures = 0
        while True:
            try:
                return embed_texts(
                    tenant_id=tenant_id, texts=[text.content for text in texts], model=self.model
                )
            except EmbeddingFailed:
                if can_embed(self.model):
                    return None
                failures += 1
                if failures == TRIES:
                    raise
                self.pause(embedder_retry_delay(failures).total_seconds())

    def _next_terms(self, text: _Text) -> str | None:
        """Return the terms that fit into the index beside the next vector; None if they are the present ones."""
        terms = fit_terms(
            indexed_terms(text.content, speaker=text.role, detail=text.detail),
            session=text.session,
            dimension=self.model.dimension,
        )
        return None if terms.keys() == text.places else sparsevec_text(terms)


def find_moves(
    *, model: EmbeddingModel, actor: str, tenant_id: UUID | None = None, agent_id: UUID | None = None
) -> list[Move]:
    """Return the agents with another model than the given one: one agent, those of a tenant, or all.

    Agents of the given model that still have next vectors of an interrupted run are among them. A view of all tenants is recorded
    in the audit log.
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
    tenant_id, agent_id, tenant, name, model, dimension, memories, prepared = row
    return Move(
        tenant_id=tenant_id,
        agent_id=agent_id,
        tenant=tenant,
        name=name,
        model=EmbeddingModel(name=model, dimension=dimension),
        memories=memories,
        prepared=prepared,
    )


def _text(row: tuple[Any, ...]) -> _Text:
    memory_id, content, role, session, detail, lexical = row
    places = frozenset(terms_of(lexical))
    return _Text(id=memory_id, content=content, role=role, session=session, detail=detail, places=places)


def _missing(agent_id: UUID, model: EmbeddingModel) -> QuerySet[Memory]:
    """Return the agent's memories without a next vector of a model."""
    prepared = NextEmbedding.objects.filter(memory_id=OuterRef("id"), embedding_model=name_of(model))
    memories: QuerySet[Memory] = Memory.objects.filter(~Exists(prepared), agent_id=agent_id)
    return memories


@dataclass(frozen=True, kw_only=True)
class ModelSwitch:
    """The result of a switch: numbers of memories, and its duration."""

    memories: int
    #: Memories that the new model cannot embed: recall finds them by their words only.
    refused: int
    #: Memories stored after the last pass, which the backlog embeds.
    left: int
    #: How long the agent's writers waited.
    seconds: float


def switch_model(
    *, agent_id: UUID, model: EmbeddingModel, actor: str, leave_missing: bool = False
) -> ModelSwitch | None:
    """Replace the agent's vectors by the next ones in the open transaction; return None and change nothing while some are missing.

    With `leave_missing`, missing vectors are left to the backlog. For an agent that already has the model, only its next vectors
    are deleted. At most sixteen statements for any number of memories, and six more with missing vectors.
    """
    # A heartbeat locks buffer items before the mind, and this function empties their vectors after it.
    lock_schedule(agent_id)
    lock_minds([agent_id])
    started = time.perf_counter()
    previous = model_of(agent_id)
    if previous == model:
        NextEmbedding.objects.filter(agent_id=agent_id).delete()
        return ModelSwitch(memories=0, refused=0, left=0, seconds=time.perf_counter() - started)
    missing = _missing(agent_id, model)
    left = missing.count()
    if left and not leave_missing:
        return None
    unprepared = list(missing.values(*INDEXED_COLUMNS)) if left else []
    _recount_terms(agent_id)
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
    # Otherwise a memory with the terms that fitted beside a shorter vector would be too large for the index once it is embedded.
    index_memories(agent_id, memories=unprepared)
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"moved {counted(memories, 'memory', 'memories')} from the embedding model {previous} to {model}",
        detail={"refused": refused, "left_to_backlog": left},
    )
    return ModelSwitch(memories=memories, refused=refused, left=left, seconds=time.perf_counter() - started)


def _reset_derived(agent_id: UUID, model: EmbeddingModel) -> None:
    """Set the mind's model, and empty or mark stale all data computed from the old vectors, so that the jobs compute them again."""
    Mind.objects.filter(agent_id=agent_id).update(
        embedding_model=model.name, embedding_dimension=model.dimension
    )
    Cluster.objects.filter(agent_id=agent_id).update(centroid=None, stale=True)
    for embedded in (Episode, BufferItem):
        rows = embedded.objects.filter(agent_id=agent_id).exclude(embedding=None, embedding_model="")
        rows.update(embedding=None, embedding_model="")
    # Rows that are stale already too: the new row version prevents a running job from writing neighborhoods of old vectors.
    Upkeep.objects.filter(agent_id=agent_id).update(stale=True)


def _recount_terms(agent_id: UUID) -> None:
    """Update the term counts for the memories whose indexed terms change with the switch."""
    changed = list(
        NextEmbedding.objects.filter(
            agent_id=agent_id, lexical__isnull=False, memory__status=MemoryStatus.ACTIVE
        ).values_list("memory__lexical", "lexical")
    )
    count_terms(agent_id, terms=[terms_of(old) for old, _ in changed], sign=-1)
    count_terms(agent_id, terms=[terms_of(new) for _, new in changed], sign=1)
