"""Write the passages of documents, and count their terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db.models import Q, QuerySet
from pgvector import HalfVector, SparseVector

from apps.knowledge.models import Document, DocumentVersion, Passage
from apps.knowledge.services import queries
from apps.memories.services.store.term_counts import terms_of
from apps.tenants.statements import change, fetch
from arbor.knowledge.chunking import PassageDraft
from arbor.knowledge.values import DocumentStatus
from arbor.memory.content import content_hash
from arbor.memory.text.lexical import LEXICAL_DIMENSIONS, document_vector

#: The row of `PassageTerm` that counts all searchable passages.
ALL_PASSAGES = 0
#: Rows of one statement.
_ROWS = 250


@dataclass(frozen=True, kw_only=True)
class EmbeddedPassage:
    """A passage with its vector and the weights of its words, computed before a transaction opens."""

    draft: PassageDraft
    #: None where the embedder did not answer.
    vector: npt.NDArray[np.float32] | None
    #: BM25 document weights by hashed term.
    words: Mapping[int, float]


def embedded_passages(
    drafts: Sequence[PassageDraft], vectors: Sequence[npt.NDArray[np.float32] | None]
) -> list[EmbeddedPassage]:
    """Return the passages with their vectors, and compute the weights of their words."""
    return [
        EmbeddedPassage(draft=draft, vector=vector, words=document_vector(draft.context))
        for draft, vector in zip(drafts, vectors, strict=True)
    ]


def replace_passages(
    *, document: Document, version: DocumentVersion, passages: Sequence[EmbeddedPassage], embedding_model: str
) -> None:
    """Replace a document's passages by those of a version, in the open transaction; the caller has locked the document.

    `embedding_model` is `NAME DIMENSION` of the vectors. Searches find the passages if the document is published.
    """
    lock_passages()
    remove_passages(document)
    searchable = document.status == DocumentStatus.PUBLISHED
    terms: Counter[int] = Counter()
    rows = []
    for position, passage in enumerate(passages):
        terms.update(passage.words.keys())
        row = _row(document, version, passage)
        row.position, row.searchable = position, searchable
        row.embedding_model = embedding_model if passage.vector is not None else ""
        rows.append(row)
    Passage.objects.bulk_create(rows, batch_size=_ROWS)
    if searchable:
        _count(terms, len(rows))


def _row(document: Document, version: DocumentVersion, passage: EmbeddedPassage) -> Passage:
    draft = passage.draft
    return Passage(
        tenant_id=document.tenant_id,
        document=document,
        version=version,
        headings=list(draft.headings),
        page=draft.page,
        start=draft.start,
        end=draft.end,
        text=draft.text,
        content_hash=content_hash(draft.text),
        tokens=draft.tokens,
        category=document.category,
        written_at=version.created_at,
        embedding=None if passage.vector is None else HalfVector(passage.vector),
        # pgvector counts places from 0 here, and from 1 in the database.
        lexical=SparseVector(
            {place - 1: weight for place, weight in passage.words.items()}, LEXICAL_DIMENSIONS
        ),
    )


def remove_passages(document: Document) -> None:
    """Delete a document's passages, and subtract their terms from the counts, in the open transaction."""
    rows = Passage.objects.filter(document=document)
    _uncount(rows.filter(searchable=True))
    rows.delete()


def set_searchable(document: Document, *, searchable: bool) -> None:
    """Show a document's passages to searches, or hide them, in the open transaction."""
    rows = Passage.objects.filter(document=document, searchable=not searchable)
    if searchable:
        lock_passages()
        _count(*_terms_in(rows))
    else:
        _uncount(rows)
    rows.update(searchable=searchable)


def copy_category(document: Document) -> None:
    """Copy the document's category to its passages, in the open transaction."""
    Passage.objects.filter(~Q(category=document.category), document=document).update(
        category=document.category
    )


def lock_passages() -> None:
    """Lock the passages of the tenant and their counts against other transactions that change them."""
    fetch(queries.LOCK_PASSAGES)


def _uncount(rows: QuerySet[Passage]) -> None:
    """Subtract passages and their terms from the counts."""
    lock_passages()
    terms, passages = _terms_in(rows)
    if passages:
        _count(Counter({term: -number for term, number in terms.items()}), -passages)
        change(queries.DROP_UNUSED_TERMS, terms=[ALL_PASSAGES, *sorted(terms)])


def _terms_in(rows: QuerySet[Passage]) -> tuple[Counter[int], int]:
    """Return the number of passages with each term, and the number of all passages."""
    terms: Counter[int] = Counter()
    passages = 0
    vectors: Iterable[Any] = rows.values_list("lexical", flat=True).iterator(chunk_size=_ROWS)
    for lexical in vectors:
        terms.update(terms_of(lexical))
        passages += 1
    return terms, passages


def _count(terms: Counter[int], passages: int) -> None:
    """Add passages and their terms to the counts; negative numbers subtract."""
    if not passages:
        return
    changes = sorted({ALL_PASSAGES: passages, **terms}.items())
    change(
        queries.COUNT_TERMS,
        terms=[term for term, _ in changes],
        changes=[number for _, number in changes],
    )
