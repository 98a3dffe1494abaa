"""Rows of an agent by their ids, inputs of operations, and the audit of acts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from ninja import Schema
from pydantic import ConfigDict

from apps.api.requests import access_of
from apps.audit.models import AuditAction
from apps.audit.services import record
from arbor.errors import NotFound


class Input(Schema):
    """The body of a request; a field that it does not have is refused."""

    model_config = ConfigDict(extra="forbid")


def rows_of[M: Model](model: type[M], agent_id: UUID) -> QuerySet[M]:
    """Return an agent's rows of a model."""
    return model._default_manager.filter(agent_id=agent_id)


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


def audit_act(request: HttpRequest, agent_id: UUID, message: str, **detail: Any) -> None:
    """Audit a program's act on an agent; ids in the detail become texts."""
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=access_of(request).actor,
        agent_id=agent_id,
        message=message,
        detail={name: str(value) if isinstance(value, UUID) else value for name, value in detail.items()},
    )
