"""Rows of an agent's past, copied by the database from one row of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connections
from django.db.models import Model

from apps.agents.models import Agent, Percept
from apps.calls.models import DailyUsage, ExternalCall, LedgerEntry
from apps.contacts.models import ChatMessage, ChatSession, OutboxMessage
from apps.heartbeats.models import Heartbeat
from apps.tenants.scope import APP, tenant_transaction
from tests.factories.contacts import ChatMessageFactory, ChatSessionFactory, OutboxMessageFactory
from tests.factories.heartbeats import (
    ExternalCallFactory,
    HeartbeatFactory,
    LedgerEntryFactory,
    MaintenanceCallFactory,
    PerceptFactory,
)

#: The tables of an agent's history.
TABLES: tuple[type[Model], ...] = (
    Heartbeat,
    Percept,
    ExternalCall,
    LedgerEntry,
    ChatSession,
    ChatMessage,
    OutboxMessage,
    DailyUsage,
)


def copy_rows(model: type[Model], source: UUID, values: Mapping[str, str], *, first: int, last: int) -> None:
    """Copy a row for each number `n` from first to last, with other values as SQL."""
    names = [str(field.column) for field in model._meta.concrete_fields if not field.generated]
    selected = ", ".join(values.get(name, f"source.{name}") for name in names)
    with connections[APP].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {model._meta.db_table} ({', '.join(names)}) SELECT {selected}"
            f" FROM {model._meta.db_table} source, generate_series({first}, {last}) AS n WHERE source.id = %s",
            [source],
        )


class YearOfHours:
    """A past in which an agent has a heartbeat each hour, and talks and writes once a day."""

    def __init__(self, agent: Agent, begins: datetime) -> None:
        self._agent = agent
        self._begins = begins
        self._hours = 0
        # The rows to copy are too young for any sweep of the past.
        too_young = begins + timedelta(days=5000)
        with tenant_transaction(agent.tenant_id):
            heartbeat = HeartbeatFactory(agent=agent, slot_at=too_young, number=1)
            call = ExternalCallFactory(heartbeat=heartbeat)
            session = ChatSessionFactory(agent=agent, started_at=too_young, ended_at=too_young)
            self._sources: dict[str, UUID] = {
                "heartbeat": heartbeat.id,
                "call": call.id,
                "entry": LedgerEntryFactory(call=call).id,
                "percept": PerceptFactory(agent=agent, heartbeat=heartbeat).id,
                "maintenance": MaintenanceCallFactory(
                    agent=agent, requested_at=too_young, status="complete"
                ).id,
                "session": session.id,
                "turn": ChatMessageFactory(session=session, at=too_young).id,
                "message": OutboxMessageFactory(agent=agent, created_at=too_young).id,
            }

    @property
    def now(self) -> datetime:
        """Return the end of the past."""
        return self._begins + timedelta(hours=self._hours)

    def extend(self, days: int) -> None:
        """Add this number of days."""
        hours = range(self._hours + 1, self._hours + days * 24 + 1)
        days_added = range(self._hours // 24 + 1, self._hours // 24 + days + 1)
        at = f"'{self._begins.isoformat()}'::timestamptz + n * interval '1 hour'"
        on = f"'{self._begins.isoformat()}'::timestamptz + n * interval '1 day'"
        with tenant_transaction(self._agent.tenant_id):
            self._copy(
                Heartbeat,
                "heartbeat",
                hours,
                {"slot_at": at, "started_at": at, "ended_at": at, "number": "n + 1"},
            )
            self._copy(ExternalCall, "call", hours, {"requested_at": at, "heartbeat_id": _id("heartbeat")})
            self._copy(LedgerEntry, "entry", hours, {"at": at, "call_id": _id("call")})
            self._copy(Percept, "percept", hours, {"at": at, "heartbeat_id": _id("heartbeat")})
            self._copy(
                ExternalCall,
                "maintenance",
                days_added,
                {"requested_at": on, "subject_key": "'episode:' || n"},
            )
            self._copy(ChatSession, "session", days_added, {"started_at": on, "last_at": on, "ended_at": on})
            self._copy(ChatMessage, "turn", days_added, {"at": on, "session_id": _id("session")})
            self._copy(
                OutboxMessage, "message", days_added, {"created_at": on, "idempotency_key": "'key ' || n"}
            )
            DailyUsage.objects.bulk_create(
                DailyUsage(
                    tenant_id=self._agent.tenant_id,
                    agent=self._agent,
                    day=(self._begins + timedelta(days=day)).date(),
                    heartbeats=24,
                    calls=24,
                    tokens=24 * 1440,
                    cost_usd="0.01872",
                )
                for day in days_added
            )
        self._hours += days * 24

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each table."""
        with tenant_transaction(self._agent.tenant_id):
            return {model.__name__: model._default_manager.count() for model in TABLES}

    def _copy(self, model: type[Model], kind: str, numbers: range, values: Mapping[str, str]) -> None:
        own = {"id": _id(kind), **values}
        copy_rows(model, self._sources[kind], own, first=numbers[0], last=numbers[-1])


def _id(kind: str) -> str:
    return f"md5('{kind}' || n)::uuid"
