"""Find the tenant's own access to the provider of a model; the first look-up of every model call."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.providers import TenantProvider
from apps.tenants.statements import fetch
from arbor.models.handles import Provider

#: A column for statements that read the tenant's model calls, by the column or parameter of the model's handle.
PROVIDER_OF_MODEL = """(
    SELECT json_build_array(k.provider, k.base_url, k.sealed_key::text) FROM calls_providerkey k
    WHERE k.tenant_id = %(tenant)s AND k.provider = split_part({model}, '/', 1)
)"""
_FIND = f"SELECT {PROVIDER_OF_MODEL.format(model='%(model)s::text')}"


def read_provider(tenant_id: UUID, column: Any) -> TenantProvider | None:
    """Return a tenant's own access to a provider from the column; None where it has none."""
    if column is None:
        return None
    provider, base_url, sealed_key = column
    return TenantProvider(
        tenant_id=tenant_id, provider=Provider(provider), base_url=base_url, sealed_key=sealed_key
    )


def find_provider(tenant_id: UUID, handle: str) -> TenantProvider | None:
    """Find the current tenant's own access to the provider of a model; None where it has none. One statement."""
    [(column,)] = fetch(_FIND, model=handle)
    return read_provider(tenant_id, column)
