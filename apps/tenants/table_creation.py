"""A migration operation that creates the tables of an app at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class CreateModels(Operation):
    """Creates models, which may refer to each other in any order.

    A `CreateModel` on its own renders all related models again, and every model is related to all others by its tenant: a hundred
    such operations took twice as long as the rest of a first migration.
    """

    serialization_expand_args: ClassVar[list[str]] = ["operations"]

    def __init__(self, operations: Sequence[CreateModel]) -> None:
        self.operations = operations

    def describe(self) -> str:
        """Return the line that `migrate` and `sqlmigrate` print."""
        return f"Create {len(self.operations)} models"

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Add the models; they are rendered once, with all others, when the first table is created."""
        state.__dict__.pop("apps", None)
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Create the tables."""
        for operation in self.operations:
            operation.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Drop the tables, the last first."""
        for operation in reversed(self.operations):
            operation.database_backwards(app_label, schema_editor, from_state, to_state)
