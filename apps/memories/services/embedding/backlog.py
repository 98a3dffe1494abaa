"""The embedding backlog: embed texts that were stored without a vector, by their own agent's embedder."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import groupby
from uuid import UUID

import structlog
from django.db import connections

from apps.agents.services.locks import lock_schedule
from apps.memories.models import BufferItem, Episode, Memory, Upkeep
from apps.memories.services.embedding import queries
from apps.memories.services.embedding.embedders import (
    can_embed,
    embedder_faults,
    is_resting,
    name_of,
    record_embedder_failure,
    record_embedder_recovery,
)
from apps.memories.services.embedding.embedding import embed_texts, embedder_for
from apps.memories.services.embedding.literals import halfvec_texts
from apps.memories.services.embedding.minds import installation_model, model_of
from apps.memories.services.graph.neighborhoods import mark_stale
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import REFUSED, EmbeddingModel
from arbor.embedding.ports import Vectors
from arbor.errors import EmbeddingFailed

log = structlog.get_logger(__name__)

#: The most texts of one chunk, and of one tenant in it.
CHUNK = 500
CHUNK_OF_TENANT = 100
#: The number of oldest texts of each kind of a tenant, and of latest ones, among which agents take turns.
CANDIDATES = 1_000
#: The time after which one job run begins no further chunk: less than the time between two runs.
BACKLOG_DURATION = timedelta(seconds=8)


class EmbeddedTextKind(StrEnum):
    """The kinds of texts that wait for a vector, by their tables."""

    #: The content of a buffer item.
    BUFFER = "memories_bufferitem"
    #: The summary of an episode.
    EPISODE = "memories_episode"
    #: A memory's text.
    MEMORY = "memories_memory"


@dataclass(frozen=True, kw_only=True)
class TextWithoutVector:
    """A row whose text has no vector, and the model to embed it by; without the text until it is read."""

    tenant_id: UUID
    agent_id: UUID
    id: UUID
    kind: EmbeddedTextKind
    model: EmbeddingModel
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class EmbeddingBacklog:
    """The texts without a vector of all active tenants."""

    #: The number of texts that wait for their embedder.
    waiting: int
    #: How long the oldest text has waited.
    oldest: timedelta
    #: The number of texts that their embedder cannot embed: recall finds them by their words only.
    refused: int


# The operations role finds the rows; texts are read in the tenant's transaction.
_TEXTS: Mapping[EmbeddedTextKind, tuple[type[BufferItem | Episode | Memory], str]] = {
    EmbeddedTextKind.BUFFER: (BufferItem, "content"),
    EmbeddedTextKind.EPISODE: (Episode, "summary"),
    EmbeddedTextKind.MEMORY: (Memory, "content"),
}

#: Only one thread of a process works on the backlog: two would request the same vectors.
_working = threading.Lock()


def embed_backlog() -> int:
    """Embed texts without a vector for about BACKLOG_DURATION; return the number of texts embedded.

    A text that its embedder cannot embed is marked; recall finds it by its words. An embedder that does not answer is called
    again after a growing delay (`embedder_faults`); agents with other embedders do not wait for it.
    """
    if not _working.acquire(blocking=False):
        return 0
    try:
        done = _embed_until(time.monotonic() + BACKLOG_DURATION.total_seconds())
    finally:
        _working.release()
    if done:
        log.info("texts_embedded", texts=done)
    return done


def embedding_backlog() -> EmbeddingBacklog:
    """Count the texts without a vector of all active tenants. One statement."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(queries.COUNT_BACKLOG)
        waiting, since, refused = cursor.fetchone()
    oldest = max(datetime.now(UTC) - since, timedelta(0)) if since else timedelta(0)
    return EmbeddingBacklog(waiting=waiting, oldest=oldest, refused=refused)


def _embed_until(ends_at: float) -> int:
    now = datetime.now(UTC)
    faults = {fault.embedding_model: is_resting(fault, now) for fault in embedder_faults()}
    resting = {name for name, rests in faults.items() if rests}
    done = 0
    while time.monotonic() < ends_at and (rows := _find_waiting(resting)):
        done_before, resting_before = done, len(resting)
        for (tenant_id, model), group in groupby(rows, key=lambda row: (row.tenant_id, row.model)):
            if name_of(model) in resting:
                continue
            texts = _read(tenant_id, list(group))
            if not texts:
                # No request was made, which says nothing about the embedder.
                continue
            try:
                done += _embed(tenant_id, model, texts)
            except EmbeddingFailed as error:
                record_embedder_failure(model, error=error)
                resting.add(name_of(model))
            else:
                if faults.pop(name_of(model), None) is not None:
                    record_embedder_recovery(model)
        if len(rows) < CHUNK_OF_TENANT or (done == done_before and len(resting) == resting_before):
            break
    return done


def _find_waiting(resting: set[str]) -> list[TextWithoutVector]:
    """Return a chunk of rows without a vector, ordered by tenant and model, except those whose embedder rests."""
    statement = queries.WAITING_TEXTS.replace(
        "{tenants}", queries.TENANTS_WITH_OTHER_EMBEDDERS if resting else ""
    ).replace("{agents}", queries.AGENTS_WITH_OTHER_EMBEDDERS if resting else "")
    with connections[OPS].cursor() as cursor:
        cursor.execute(
            statement,
            {
                "per_tenant": CHUNK_OF_TENANT,
                "candidates": CANDIDATES,
                "chunk": CHUNK,
                "resting": sorted(resting),
                "installation": name_of(installation_model()),
            },
        )
        rows = cursor.fetchall()
    waiting = [
        TextWithoutVector(
            tenant_id=tenant_id,
            agent_id=agent_id,
            id=row_id,
            kind=EmbeddedTextKind(kind),
            model=EmbeddingModel(name=name, dimension=dimension) if name else installation_model(),
        )
        for tenant_id, agent_id, row_id, kind, name, dimension in rows
    ]
    places = {tenant_id: place for place, tenant_id in enumerate(dict.fromkeys(row[0] for row in rows))}
    return sorted(waiting, key=lambda item: (places[item.tenant_id], name_of(item.model)))


def _read(tenant_id: UUID, waiting: Sequence[TextWithoutVector]) -> list[TextWithoutVector]:
    """Read the texts of one tenant's waiting rows; deleted rows are left out. One statement for each kind."""
    texts: dict[UUID, str] = {}
    with tenant_transaction(tenant_id):
        for kind in {item.kind for item in waiting}:
            model, column = _TEXTS[kind]
            rows = model.objects.filter(id__in=[item.id for item in waiting if item.kind is kind])
            texts.update(rows.values_list("id", column))
    return [replace(item, text=texts[item.id]) for item in waiting if item.id in texts]


def _embed(tenant_id: UUID, model: EmbeddingModel, waiting: Sequence[TextWithoutVector]) -> int:
    """Embed texts of one tenant by one model; return how many got a vector. Raises EmbeddingFailed if the embedder fails."""
    try:
        vectors = embed_texts(tenant_id=tenant_id, texts=[item.text for item in waiting], model=model)
    except EmbeddingFailed as error:
        if not can_embed(model):
            raise
        if len(waiting) == 1:
            _mark_refused(waiting[0], error)
            return 0
        half = len(waiting) // 2
        return _embed(tenant_id, model, waiting[:half]) + _embed(tenant_id, model, waiting[half:])
    with tenant_transaction(tenant_id):
        return _store(model, waiting, vectors)


def _store(model: EmbeddingModel, waiting: Sequence[TextWithoutVector], vectors: Vectors) -> int:
    """Store vectors of one tenant in the open transaction; return the number of rows that had none before."""
    lock_minds({item.agent_id for item in waiting})
    stored = 0
    rows: dict[EmbeddedTextKind, list[dict[str, str]]] = {}
    for item, text in zip(waiting, halfvec_texts(vectors), strict=True):
        rows.setdefault(item.kind, []).append({"id": str(item.id), "embedding": text})
    for kind, values in rows.items():
        changed = fetch(
            queries.STORE_VECTORS.replace("{table}", kind),
            rows=json.dumps(values),
            ids=[row["id"] for row in values],
            name=model.name,
            dimension=model.dimension,
            made_by=embedder_for(model).model,
        )
        stored += len(changed)
        if kind is EmbeddedTextKind.MEMORY and changed:
            ids = [memory_id for (memory_id,) in changed]
            mark_stale(ids)
            Upkeep.objects.filter(memory_id__in=ids, unclustered=False).update(unclustered=True)
    return stored


def _mark_refused(item: TextWithoutVector, error: EmbeddingFailed) -> None:
    made_by = embedder_for(item.model).model
    log.warning("text_refused", kind=item.kind.value, id=str(item.id), model=made_by, error=str(error))
    with tenant_transaction(item.tenant_id):
        # A heartbeat locks buffer items before the mind.
        lock_schedule(item.agent_id)
        lock_minds([item.agent_id])
        if model_of(item.agent_id) == item.model:
            # Otherwise the agent was moved meanwhile, and its new embedder may embed the text.
            rows = _TEXTS[item.kind][0].objects.filter(id=item.id, embedding=None)
            rows.update(embedding_model=REFUSED + made_by)
