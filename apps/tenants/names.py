"""Find rows of the current tenant by their names."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.tenants.models import TenantModel
from arbor.errors import NotFound

#: Names that an error lists.
_LISTED = 20


def find_by_name[M: TenantModel](rows: QuerySet[M], name: str, *, noun: str, advice: str) -> M:
    """Find a row by its name. Raises NotFound with the names that exist, or with the advice where there are none."""
    row = rows.filter(name=name.strip()).first()
    if row is None:
        names = rows.order_by("name").values_list("name", flat=True)[:_LISTED]
        raise NotFound(f"there is no {noun} {name!r}; there is: {', '.join(names) or f'none yet; {advice}'}")
    return row
