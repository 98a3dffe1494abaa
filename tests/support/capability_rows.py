"""Decisions about stored capabilities, and changes of rows past row-level security, as an intruder makes them."""

from __future__ import annotations

from typing import Any

from django.db import connections

from apps.agents.models import Agent
from apps.authority.services.explanations import explain_authorization
from apps.tenants.scope import tenant_transaction


def may(agent: Agent, resource: str) -> str:
    """Return "yes" or the code of the denial."""
    with tenant_transaction(agent.tenant_id):
        found = explain_authorization(agent_id=agent.id, resource=resource).authorization
    return "yes" if found.granted else str(found.code)


def change_as_owner(table: str, statement: str, *values: Any) -> None:
    """Execute a statement on a table as its owner, without row-level security."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        cursor.execute(statement, values)
        cursor.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
