"""Fields of tenants' rows: references within one tenant, generated columns, JSON as compressed bytes; conditions and choices."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.core.exceptions import FieldError
from django.db import models
from django.db.models.lookups import Exact

from apps.tenants.packing import pack, unpack, unpack_list


class OnDelete(StrEnum):
    """The effect of a deletion on rows that refer to the deleted row."""

    #: The row goes too.
    CASCADE = "CASCADE"
    #: The reference becomes empty.
    SET_NULL = "SET NULL"


class WithinTenant(models.ForeignKey):  # type: ignore[type-arg]
    """A reference whose constraint is (tenant, id), so that no row can refer to a row of another tenant.

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


class StoredField(models.GeneratedField):
    """A generated column: the database computes and stores its value from other columns of the row."""

    def __init__(self, *, expression: Any, output_field: Any) -> None:
        super().__init__(expression=expression, output_field=output_field, db_persist=True)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """Name the field's options for migrations."""
        name, path, args, options = super().deconstruct()
        for fixed in ("db_persist", "null"):
            options.pop(fixed, None)
        return name, path, list(args), options

    def _check_supported(self, databases: Any) -> list[Any]:
        # PostgreSQL supports stored columns. Django would ask the server for its version, but static checks run without a server.
        return []


class IntegerArray(models.Field):  # type: ignore[type-arg]
    """Whole numbers as an array, for columns that handwritten statements read and write."""

    def db_type(self, connection: Any) -> str:
        """Return the type of the column."""
        return "integer[]"


class PackedJSON(models.Field):  # type: ignore[type-arg]
    """A JSON value as compressed bytes (`packing`), for columns that no query looks into."""

    empty_strings_allowed = False

    def __init__(self, **options: Any) -> None:
        options["editable"] = False
        super().__init__(**options)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """Name the field's options for migrations."""
        name, path, args, options = super().deconstruct()
        options.pop("editable", None)
        return name, path, list(args), options

    def get_internal_type(self) -> str:
        """Return the type of Django's field whose column this one has."""
        return "BinaryField"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """Pack a value."""
        return None if value is None else pack(value)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Unpack a value."""
        return None if value is None else self.unpacked(bytes(value))

    def unpacked(self, packed: bytes) -> Any:
        """Return the value that the bytes encode."""
        return unpack(packed)

    def get_lookup(self, lookup_name: str) -> Any:
        """Return the lookup `exact`, which compares whole values; None for every other lookup."""
        lookup = super().get_lookup(lookup_name)
        return lookup if lookup is not None and issubclass(lookup, Exact) else None

    def get_transform(self, lookup_name: str) -> Any:
        """Refuse to look into a value. Raises FieldError."""
        raise FieldError(f"{self.name} is packed: no query can look into it for {lookup_name!r}")


class PackedList(PackedJSON):
    """A list that statements append to with `||`, one packed list after another."""

    def unpacked(self, packed: bytes) -> Any:
        """Return the items of all that was appended."""
        return unpack_list(packed)


def is_share(field: str) -> models.Q:
    """Return the condition that a field is between 0 and 1."""
    return models.Q(**{f"{field}__gte": 0}) & models.Q(**{f"{field}__lte": 1})


def choices_of(values: type[StrEnum]) -> list[tuple[str, str]]:
    """Return the choices of a field whose values, and their labels, are those of an enumeration."""
    return [(member.value, member.value) for member in values]
