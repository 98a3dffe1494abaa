"""Record acts in the audit log; other modules of the package search, export, seal and verify the records."""

from apps.audit.recording import (
    LOOKUP_VERB,
    across_tenants,
    build_event,
    record,
    record_for_both,
    record_platform,
    record_refusal,
)

__all__ = [
    "LOOKUP_VERB",
    "across_tenants",
    "build_event",
    "record",
    "record_for_both",
    "record_platform",
    "record_refusal",
]
