"""Audit refused seeds in a transaction of their own, because that of the act is rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import DataError, IntegrityError

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.tenants.scope import tenant_transaction
from arbor.errors import SeedInvalid


@contextmanager
def audit_refusals(*, tenant_id: UUID, actor: str, agent_id: UUID | None = None) -> Iterator[None]:
    """Audit the refusal of a seed within the block, which must be outside of transactions. Raises SeedInvalid."""
    try:
        try:
            yield
        except (DataError, IntegrityError) as error:
            raise SeedInvalid(
                f"the seed has rows that the database refuses: {str(error).splitlines()[0]}"
            ) from error
    except SeedInvalid as refusal:
        with tenant_transaction(tenant_id):
            record(
                action=AuditAction.SEED_REFUSED,
                actor=actor,
                agent_id=agent_id,
                message=f"refused a seed: {refusal}"[:1000],
            )
        raise
