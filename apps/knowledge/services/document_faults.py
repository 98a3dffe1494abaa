"""Find documents that cannot be read, that no worker indexes, or whose passages get no vectors."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from django.db import connections

from apps.knowledge.services import queries
from apps.tenants.scope import OPS

#: How long a document may wait for the next step of its indexing.
LATE_AFTER = timedelta(minutes=10)
#: The most documents of each kind that a fault names.
_NAMED = 3


class DocumentFaultKind(StrEnum):
    """A kind of fault of documents."""

    #: The latest version cannot be indexed.
    FAILED = "failed"
    #: For longer than LATE_AFTER, the latest version has waited for a worker, or its worker has been lost.
    STUCK = "stuck"
    #: For longer than LATE_AFTER, passages have waited for their vectors.
    WITHOUT_VECTORS = "without_vectors"


@dataclass(frozen=True, kw_only=True)
class DocumentFault:
    """Documents with one kind of fault: their number, and the first of them as `tenant/name`."""

    kind: DocumentFaultKind
    documents: int
    first: tuple[str, ...]


def find_document_faults() -> list[DocumentFault]:
    """Return the faults of the documents of all active tenants, none where all is well. One statement."""
    values: dict[str, Any] = {"late": LATE_AFTER, "named": _NAMED}
    with connections[OPS].cursor() as cursor:
        cursor.execute(queries.DOCUMENT_FAULTS, values)
        found = {kind: (documents, tuple(first)) for kind, documents, first in cursor.fetchall()}
    return [
        DocumentFault(kind=kind, documents=found[kind][0], first=found[kind][1])
        for kind in DocumentFaultKind
        if kind in found
    ]
