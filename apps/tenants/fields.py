"""References within one tenant."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.db import models


class OnDelete(StrEnum):
    """What the database does to a row when the row it refers to goes."""

    #: The row goes too.
    CASCADE = "CASCADE"
    #: The reference becomes empty.
    SET_NULL = "SET NULL"


class WithinTenant(models.ForeignKey):  # type: ignore[type-arg]
    """A reference whose constraint in the database is (tenant, id): one to another tenant's row cannot exist.

    Django cannot express the constraint; `protection` creates it when the tables are migrated.
    """

    def __init__(self, to: Any, *, deleting: OnDelete = OnDelete.CASCADE, **options: Any) -> None:
        self.deleting = OnDelete(deleting)
        options["on_delete"] = models.DO_NOTHING
        options["db_constraint"] = False
        # Indexes start with the tenant and are named by the model.
        options["db_index"] = False
        super().__init__(to, **options)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """Name the field's options for migrations."""
        name, path, args, options = super().deconstruct()
        for fixed in ("on_delete", "db_constraint", "db_index"):
            options.pop(fixed, None)
        options["deleting"] = self.deleting.value
        return name, path, list(args), options


class TenantForeignKey(WithinTenant):
    """A reference to a row of the same tenant."""


class TenantOneToOne(WithinTenant, models.OneToOneField):  # type: ignore[type-arg]
    """A row that exists once for each row it refers to, and shares its key."""
