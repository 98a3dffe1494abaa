"""The chains of seals: each tenant's, and that of the installation's own records, read through the operations role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet, Subquery

from apps.audit.models import (
    AuditEvent,
    AuditSeal,
    PlatformBlock,
    PlatformEvent,
    PlatformSeal,
    SealedBlock,
)
from apps.tenants.scope import OPS
from arbor.audit.chain import PLATFORM, Seal, SealHeader, format_moment, row_digest


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditChain:
    """A tenant's chain with its rows; without a tenant, the installation's own."""

    tenant_id: UUID | None = None

    @property
    def name(self) -> str:
        """The chain's name in seals."""
        return str(self.tenant_id) if self.tenant_id else PLATFORM

    @property
    def owner(self) -> dict[str, Any]:
        """The column that new rows of the tenant's chain need; none for the installation's."""
        return {"tenant_id": self.tenant_id} if self.tenant_id else {}

    def events(self) -> QuerySet[Any]:
        """Return the audit records of the chain."""
        return self._rows(AuditEvent, PlatformEvent)

    def seals(self) -> QuerySet[Any]:
        """Return the seals of the chain."""
        return self._rows(AuditSeal, PlatformSeal)

    def blocks(self) -> QuerySet[Any]:
        """Return the digests under the seals of the chain."""
        return self._rows(SealedBlock, PlatformBlock)

    def head(self) -> Seal | None:
        """Return the last seal, or none."""
        row = self.seals().order_by("-number").first()
        return self.seal_of(row) if row else None

    def last_aged(self) -> Seal | None:
        """Return the seal before the oldest stored digests: rows under it and under earlier seals cannot be compared any more."""
        oldest = self.blocks().order_by("at").values_list("seal__number", flat=True)[:1]
        row = self.seals().filter(number__lt=Subquery(oldest)).order_by("-number").first()
        return self.seal_of(row) if row else None

    def events_after(self, seal: Seal | None) -> QuerySet[Any]:
        """Return the audit records that a seal and those before it do not cover, in the order of their commits."""
        rows = self.events().order_by("position", "id")
        return rows if seal is None else rows_after(rows, seal.header.position, seal.header.last_id)

    def digest_of(self, row: AuditEvent | PlatformEvent) -> bytes:
        """Return the digest of all columns of an audit record."""
        return row_digest(self.exported(row))

    def exported(self, row: AuditEvent | PlatformEvent) -> dict[str, Any]:
        """Return an audit record as it is exported and digested."""
        agent_id = getattr(row, "agent_id", None)
        return {
            "id": str(row.id),
            "chain": self.name,
            "position": row.position,
            "at": format_moment(row.at),
            "level": row.level,
            "action": row.action,
            "actor": row.actor,
            "agent_id": str(agent_id) if agent_id else None,
            "message": row.message,
            "detail": row.detail,
            "before": row.before,
            "after": row.after,
        }

    def seal_of(self, row: AuditSeal | PlatformSeal) -> Seal:
        """Return a stored seal as a value."""
        return Seal(
            header=SealHeader(
                chain=self.name,
                number=row.number,
                at=row.at,
                previous=bytes(row.previous),
                position=row.last_position,
                last_id=row.last_id,
                events=row.events,
                events_digest=bytes(row.events_digest),
                cursor=row.cursor,
                heartbeats=row.heartbeats,
                heartbeats_digest=bytes(row.heartbeats_digest),
            ),
            digest=bytes(row.digest),
            key_number=row.key_number,
            signature=bytes(row.signature),
        )

    def _rows(self, of_tenant: type[Any], of_platform: type[Any]) -> QuerySet[Any]:
        if self.tenant_id is None:
            return QuerySet(of_platform, using=OPS)
        return QuerySet(of_tenant, using=OPS).filter(tenant_id=self.tenant_id)


def rows_after[M: QuerySet[Any]](rows: M, position: int, row_id: UUID | None) -> M:
    """Filter audit records to those after a position and, at the same position, after an id."""
    later = Q(position__gt=position)
    if row_id is not None:
        later |= Q(position=position, id__gt=row_id)
    # The condition `position__gte` is a range of the index.
    return rows.filter(later, position__gte=position)
