"""Rows of agents and of the tenant by their ids, and inputs of operations."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Model, QuerySet
from ninja import Schema
from pydantic import ConfigDict

from arbor.errors import NotFound


class Input(Schema):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


def rows_of[M: Model](model: type[M], agent_id: UUID, **wanted: str | None) -> QuerySet[M]:
    """Return an agent's rows of a model with these values; None: any value."""
    given = {column: value for column, value in wanted.items() if value is not None}
    return model._default_manager.filter(agent_id=agent_id, **given)


def own_row[M: Model](model: type[M], *, agent_id: UUID, row_id: UUID) -> M:
    """Return a row of an agent. Raises NotFound, also for a row of another agent."""
    row = rows_of(model, agent_id).filter(pk=row_id).first()
    if row is None:
        raise NotFound(f"the agent {agent_id} has no {model._meta.verbose_name} {row_id}")
    return row


def row_of_tenant[M: Model](model: type[M], row_id: UUID) -> M:
    """Return a row of the current tenant. Raises NotFound."""
    row = model._default_manager.filter(pk=row_id).first()
    if row is None:
        raise NotFound(f"this tenant has no {model._meta.verbose_name} {row_id}")
    return row
