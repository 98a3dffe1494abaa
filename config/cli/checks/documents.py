"""Check that documents are indexed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from apps.knowledge.services.document_faults import DocumentFault, DocumentFaultKind, find_document_faults
from config.cli.checks.finding import Finding, name_first, ok, warn

#: The problem of each kind of fault, and its remedy.
_FAULTS: Mapping[DocumentFaultKind, tuple[str, str]] = MappingProxyType(
    {
        DocumentFaultKind.FAILED: (
            "cannot be read",
            "`arbor document list --indexing failed` says why; add another file, or `arbor document reindex NAME`",
        ),
        DocumentFaultKind.STUCK: (
            "not indexed for long",
            "see that a worker serves the queue `documents`, and that `arbor scheduler` runs",
        ),
        DocumentFaultKind.WITHOUT_VECTORS: (
            "found by words alone for long",
            "see that the embedder answers, and that `arbor scheduler` runs",
        ),
    }
)


def check_documents() -> Finding:
    """Check that every document is read and indexed, and that its passages have their vectors."""
    found = find_document_faults()
    if not found:
        return ok("documents", "all documents are indexed")
    remedies = (_FAULTS[fault.kind][1] for fault in found)
    return warn("documents", "; ".join(map(_fault, found)), "; ".join(remedies))


def _fault(fault: DocumentFault) -> str:
    return f"{_FAULTS[fault.kind][0]}: {name_first(fault.first, total=fault.documents)}"
