"""Passages of documents: stored per second, and the time and the recall of searches in tenants of very different sizes.

The sizes follow Zipf's law: the largest of 50 tenants has 22 % of all passages, and the smallest 0.4 %. Each tenant searches
equally often. Recall is the share of the ten nearest passages, which numpy finds by brute force, that are among the ten nearest
ones that a search considered: by an exact scan in small tenants, by HNSW in large ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import batched
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from django.conf import settings

from apps.knowledge.models import Document, DocumentVersion, Passage
from apps.knowledge.services.passage_search import (
    PassageQuery,
    passage_candidates,
    query_vector_of,
    search_passages,
)
from apps.knowledge.services.passages import embedded_passages, replace_passages
from apps.memories.services.embedding.embedders import name_of
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.embedding.minds import installation_model
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import create_tenant
from arbor.knowledge.chunking import PassageDraft
from bench.minds import make_questions, make_turns
from bench.support.database import connect_as_superuser, fetch_value
from bench.support.figures import print_progress, quantile
from bench.support.installation import Installation

#: Passages of one document, and turns of the synthetic vocabulary in one passage: about 150 words.
_PER_DOCUMENT = 200
_TURNS = 8
_COMPARED = 10
_WARM_UP = 3
_REPORTS = 10


@dataclass(frozen=True, kw_only=True)
class _Library:
    tenant_id: UUID
    texts: Sequence[str]
    questions: Sequence[str]


def measure(installation: Installation, *, chunks: int, tenants: int, queries: int) -> dict[str, Any]:
    """Return the figures of `chunks` passages of `tenants` tenants, searched `queries` times in each."""
    libraries = list(_libraries(chunks, tenants, queries))
    with connect_as_superuser(installation) as database:
        stored_s = _store(libraries, chunks)
        database.execute("VACUUM ANALYZE knowledge_passage")
        sizes = [len(library.texts) for library in libraries]
        print_progress(f"searching in {tenants} tenants of {min(sizes)} to {max(sizes)} passages")
        times = [_times_ms(library) for library in libraries]
        exact = [
            ms
            for size, own in zip(sizes, times, strict=True)
            if size <= settings.ARBOR_SEARCH_EXACT_PASSAGES
            for ms in own
        ]
        all_times = [ms for own in times for ms in own]
        print_progress("comparing with brute force")
        return {
            "chunks": sum(sizes),
            "tenants": tenants,
            "smallest": min(sizes),
            "largest": max(sizes),
            "chunks_per_s": round(sum(sizes) / stored_s, 1),
            "p50_ms": quantile(all_times, 0.5),
            "p95_ms": quantile(all_times, 0.95),
            "p95_ms_exact": quantile(exact, 0.95),
            "p95_ms_largest": quantile(times[0], 0.95),
            "by_hnsw": sum(size > settings.ARBOR_SEARCH_EXACT_PASSAGES for size in sizes),
            "hnsw_scans": _index_scans(database),
            "recall_at_10_smallest": _recall(libraries[-1]),
            "recall_at_10_largest": _recall(libraries[0]),
            "index_mb": round(_index_bytes(database) / 2**20, 1),
        }


def _libraries(chunks: int, tenants: int, queries: int) -> Iterator[_Library]:
    shares = np.array([1 / rank for rank in range(1, tenants + 1)])
    sizes = np.maximum(_COMPARED, np.round(chunks * shares / shares.sum())).astype(int)
    for number, size in enumerate(sizes.tolist()):
        turns = make_turns(size * _TURNS, seed=number + 1)
        texts = [" ".join(turn.content for turn in part) for part in batched(turns, _TURNS, strict=True)]
        tenant = create_tenant(slug=f"bench-{number}", name=f"Bench {number}")
        yield _Library(
            tenant_id=tenant.id, texts=texts, questions=make_questions(turns, queries, seed=number)
        )


def _store(libraries: Sequence[_Library], chunks: int) -> float:
    """Embed and store all passages as indexing does; return the seconds that this took."""
    print_progress(f"storing {chunks} passages of {len(libraries)} tenants")
    started, stored, reported = time.perf_counter(), 0, 0
    for library in libraries:
        for number, texts in enumerate(batched(library.texts, _PER_DOCUMENT, strict=False)):
            vectors = embed_texts(tenant_id=library.tenant_id, texts=texts)
            passages = embedded_passages([_draft(text) for text in texts], list(vectors))
            with tenant_transaction(library.tenant_id):
                document, version = _new_document(library.tenant_id, number)
                replace_passages(
                    document=document,
                    version=version,
                    passages=passages,
                    embedding_model=name_of(installation_model()),
                )
            stored += len(texts)
            if stored * _REPORTS // chunks > reported:
                reported = stored * _REPORTS // chunks
                print_progress(f"stored {stored} of {chunks}")
    return time.perf_counter() - started


def _new_document(tenant_id: UUID, number: int) -> tuple[Document, DocumentVersion]:
    document = Document.objects.create(
        tenant_id=tenant_id,
        name=f"document-{number}.txt",
        title=f"Document {number}",
        kind="text",
        status="published",
        indexing="indexed",
        indexed_version=1,
        created_by="bench",
    )
    version = DocumentVersion.objects.create(
        tenant_id=tenant_id,
        document=document,
        number=1,
        kind="text",
        digest=bytes(32),
        content=b"",
        size=0,
        created_by="bench",
        indexed_at=datetime.now(UTC),
    )
    return document, version


def _draft(text: str) -> PassageDraft:
    return PassageDraft(headings=(), page=None, start=0, end=len(text), text=text, tokens=len(text) // 4)


def _times_ms(library: _Library) -> list[float]:
    for question in library.questions[:_WARM_UP]:
        _search(library, question)
    durations = []
    answered = 0
    for question in library.questions:
        started = time.perf_counter()
        answered += _search(library, question)
        durations.append((time.perf_counter() - started) * 1000)
    if not answered:
        raise RuntimeError("no question found anything")
    return durations


def _search(library: _Library, question: str) -> bool:
    """Search, and return whether anything was found: a synthetic question may have common words alone."""
    return bool(search_passages(tenant_id=library.tenant_id, query=PassageQuery(text=question)).passages)


def _recall(library: _Library) -> float:
    """Return the share of the nearest passages that searches consider."""
    with tenant_transaction(library.tenant_id):
        rows = list(Passage.objects.values_list("id", "embedding"))
    ids = [row[0] for row in rows]
    vectors = np.stack([np.asarray(row[1], dtype=np.float32) for row in rows])
    shares = []
    for question in library.questions:
        vector = query_vector_of(tenant_id=library.tenant_id, text=question)
        assert vector is not None
        cosines = vectors @ np.asarray(vector, dtype=np.float32) / np.linalg.norm(vectors, axis=1)
        nearest = {ids[place] for place in np.argsort(-cosines)[:_COMPARED]}
        with tenant_transaction(library.tenant_id):
            found, _ = passage_candidates(PassageQuery(text=question), vector)
        found.sort(key=lambda passage: -(passage.similarity or 0.0))
        shares.append(len(nearest & {passage.id for passage in found[:_COMPARED]}) / len(nearest))
    return round(sum(shares) / len(shares), 4)


def _index_scans(database: psycopg.Connection[Any]) -> int:
    scans: int = fetch_value(
        database,
        "SELECT coalesce(sum(idx_scan), 0)::int FROM pg_stat_user_indexes WHERE indexrelname LIKE 'knowledge_passage_hnsw%'",
    )
    return scans


def _index_bytes(database: psycopg.Connection[Any]) -> int:
    size: int = fetch_value(
        database,
        "SELECT coalesce(sum(pg_relation_size(indexrelid)), 0)::bigint FROM pg_stat_user_indexes"
        " WHERE indexrelname LIKE 'knowledge_passage_hnsw%'",
    )
    return size
