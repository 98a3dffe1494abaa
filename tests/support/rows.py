"""Rows as they are stored now."""

from __future__ import annotations

from typing import Any

from apps.tenants.models import TenantModel
from apps.tenants.scope import tenant_transaction


def reload[M: TenantModel](row: M) -> M:
    """Return the row of a tenant as it is stored now."""
    model: Any = type(row)
    with tenant_transaction(row.tenant_id):
        stored: M = model.objects.get(pk=row.pk)
    return stored
