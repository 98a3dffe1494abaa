"""Record acts in the audit log, search and export them, seal and verify them."""

from apps.audit.recording import (
    LOOKING_FOR,
    across_tenants,
    build_event,
    record,
    record_for_both,
    record_platform,
    record_refusal,
)
from apps.audit.services.search import AuditRecord, search_audit

__all__ = [
    "LOOKING_FOR",
    "AuditRecord",
    "across_tenants",
    "build_event",
    "record",
    "record_for_both",
    "record_platform",
    "record_refusal",
    "search_audit",
]
