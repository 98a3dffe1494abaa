"""Check the names of rows, insert rows with unique names, and find rows of the current tenant by them."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from apps.tenants.models import TenantModel
from arbor.errors import AlreadyExists, Invalid, NotFound

#: Names that an error lists.
_LISTED = 20
#: Characters of a wrong name that an error quotes.
_QUOTED = 200


def valid_row_name(name: str, *, whose: str, longest: int) -> str:
    """Return a name with single blanks; `whose` says in an error what has the name, such as "a hook's".

    Raises Invalid unless the name is printable and has 1 to `longest` characters.
    """
    name = " ".join(name.split())
    if not 1 <= len(name) <= longest or not name.isprintable():
        raise Invalid(f"{whose} name has 1 to {longest} printable characters, got {name[:_QUOTED]!r}")
    return name


def insert_named_row(row: TenantModel, name: str, *, noun: str, constraint: str) -> None:
    """Insert a row whose name `constraint` makes unique within the tenant. Raises AlreadyExists for a name in use."""
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        if constraint not in str(error):
            raise
        raise AlreadyExists(f"there is a {noun} {name!r} already; choose another name") from error


def find_by_name[M: TenantModel](rows: QuerySet[M], name: str, *, noun: str, advice: str) -> M:
    """Find a row by its name. Raises NotFound with the names that exist, or with the advice where there are none."""
    row = rows.filter(name=name.strip()).first()
    if row is None:
        known = list_names(rows.order_by("name").values_list("name", flat=True), none=f"none yet; {advice}")
        raise NotFound(f"there is no {noun} {name[:_QUOTED]!r}; there is: {known}")
    return row


def list_names(names: QuerySet[Any, str], *, none: str) -> str:
    """Return the first names for an error, and whether there are others; `none` where there are no names."""
    known = list(names[: _LISTED + 1])
    return ", ".join([*known[:_LISTED], *(["and others"] if len(known) > _LISTED else [])]) or none
