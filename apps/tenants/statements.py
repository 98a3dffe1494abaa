"""Fixed statements on a tenant's rows, for what every heartbeat passes.

Django builds a query anew each time it is used, which takes ten times as long as sending it. Where a path runs
hundreds of times a second, its statements are written out and run here, in the tenant's open transaction; `%(tenant)s`
is that tenant. Everywhere else, querysets.
"""

from __future__ import annotations

from typing import Any

from django.db import connections

from apps.tenants.scope import APP, current_tenant


def fetch(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows. Raises TenantRequired outside a tenant's transaction."""
    with connections[APP].cursor() as cursor:
        cursor.execute(statement, {**values, "tenant": current_tenant()})
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def change(statement: str, **values: Any) -> int:
    """Run a statement and return how many rows it changed. Raises TenantRequired outside a tenant's transaction."""
    with connections[APP].cursor() as cursor:
        cursor.execute(statement, {**values, "tenant": current_tenant()})
        changed: int = cursor.rowcount
        return changed
