"""What changes about an agent at every heartbeat, written: its narrow row, by one statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import JSONField

from apps.agents.models import AgentState
from apps.tenants.encoding import to_json
from apps.tenants.scope import APP
from apps.tenants.statements import change


def write_state(*, agent_id: UUID, columns: Mapping[str, Any]) -> None:
    """Write these columns of an agent's state, in the open transaction; none is no statement.

    Raises FieldDoesNotExist for what is no column.
    """
    if columns:
        names = tuple(sorted(columns))
        change(_statement(names), agent=agent_id, **state_values(columns))


def state_changes(names: Sequence[str]) -> str:
    """Return the SET clause that writes these columns, from values of their names."""
    connection = connections[APP]
    kinds = {name: AgentState._meta.get_field(name).db_type(connection) for name in names}
    return ", ".join(f"{name} = %({name})s::{kind}" for name, kind in kinds.items())


def state_values(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns' values as statements take them."""
    return {
        name: to_json(value) if isinstance(AgentState._meta.get_field(name), JSONField) else value
        for name, value in columns.items()
    }


@cache
def _statement(names: tuple[str, ...]) -> str:
    return (
        f"UPDATE agents_agentstate SET {state_changes(names)}"  # noqa: S608 (our own names)
        " WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s"
    )
