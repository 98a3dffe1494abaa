"""Figures of delivery, of a tenant or of the whole installation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connections

from apps.tenants.scope import OPS
from apps.tenants.statements import fetch

# By partial indexes: what is over is not looked at. Failures are a person's to settle, so few.
_FIGURES = """
SELECT (SELECT count(*) FROM contacts_outboxmessage WHERE {tenant} status IN ('pending', 'sending')),
    (SELECT coalesce(extract(epoch FROM now() - min(due_at)), 0) FROM contacts_outboxmessage
        WHERE {tenant} status IN ('pending', 'sending') AND due_at < now()),
    (SELECT count(*) FROM contacts_outboxmessage WHERE {tenant} status = 'failed')
"""


@dataclass(frozen=True, kw_only=True)
class OutboxFigures:
    """Counts of pending and failed messages, and the delay of the oldest due one in seconds."""

    waiting: int
    oldest_due_s: float
    failed: int


def outbox_figures() -> OutboxFigures:
    """Return the figures of the current tenant. One statement."""
    (row,) = fetch(_FIGURES.format(tenant="tenant_id = %(tenant)s AND"))
    return _figures(row)


def installation_figures() -> OutboxFigures:
    """Return the figures of all tenants together. One statement, by the operations role."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(_FIGURES.format(tenant=""))
        return _figures(cursor.fetchone())


def _figures(row: Any) -> OutboxFigures:
    waiting, oldest, failed = row
    return OutboxFigures(waiting=waiting, oldest_due_s=round(max(float(oldest), 0.0), 1), failed=failed)
