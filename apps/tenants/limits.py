"""Limits on the rows of a model in a tenant, counted by one transaction at a time."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from apps.tenants.statements import fetch
from arbor.errors import LimitReached

# An advisory lock until the transaction ends, which the ORM cannot express.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%(table)s, 0) # hashtextextended(%(tenant)s::text, 0))"


def check_row_limit(rows: QuerySet[Any], *, most: int, refusal: str) -> None:
    """Raise LimitReached with the refusal if there are `most` of these rows of the current tenant, or more.

    Another transaction of the tenant that checks rows of the same model waits for the end of this one, so that not both take the last place.
    """
    fetch(_LOCK, table=rows.model._meta.db_table)
    if rows.count() >= most:
        raise LimitReached(refusal)
