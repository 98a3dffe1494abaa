"""Emit signals in the transaction of the change that they describe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import connections

from apps.tenants.packing import pack
from apps.tenants.scope import OPS
from apps.tenants.statements import change
from arbor.ids import next_time_step
from arbor.signals import Signal

#: Inserts the rows of `batch_values`; also a part of statements that write signals with other rows.
INSERT_BATCHES = """
INSERT INTO signals_signalbatch (tenant_id, id, agent_id, heartbeat_id, at, signals)
SELECT %(tenant)s, signals_row_id(s.time_step), s.agent_id, s.heartbeat_id, now(), s.signals
FROM unnest(%(signal_time_steps)s::bigint[], %(signal_agents)s::uuid[], %(signal_heartbeats)s::uuid[], %(signals)s::bytea[])
    AS s (time_step, agent_id, heartbeat_id, signals)
"""

_collector: ContextVar[list[Signal] | None] = ContextVar("arbor_signal_collector", default=None)


def emit(*signals: Signal) -> None:
    """Emit signals in the open transaction: by one statement, or by none inside `collected_signals`."""
    collected = _collector.get()
    if collected is not None:
        collected.extend(signals)
    else:
        write_signals(signals)


def write_signals(signals: Sequence[Signal]) -> None:
    """Write signals in the open transaction: by one statement, by none if there are no signals."""
    if signals:
        change(INSERT_BATCHES, **batch_values(signals))


def write_tenant_signals(tenant_id: UUID, *, signals: Sequence[Signal]) -> None:
    """Write signals of a tenant in the open transaction of the operations role, for a change that concerns several tenants."""
    if signals:
        with connections[OPS].cursor() as cursor:
            cursor.execute(INSERT_BATCHES, {**batch_values(signals), "tenant": tenant_id})


@contextmanager
def collected_signals() -> Iterator[list[Signal]]:
    """Collect the signals that the code inside emits; the caller writes the list in the same transaction."""
    collected: list[Signal] = []
    token = _collector.set(collected)
    try:
        yield collected
    finally:
        _collector.reset(token)


@contextmanager
def dropped_on_error() -> Iterator[None]:
    """Drop the signals that the code inside emitted if it raises, as a savepoint drops its writes."""
    collected = _collector.get()
    before = len(collected) if collected is not None else 0
    try:
        yield
    except BaseException:
        if collected is not None:
            del collected[before:]
        raise


def batch_values(signals: Iterable[Signal]) -> dict[str, list[Any]]:
    """Return the parameters of INSERT_BATCHES: a row for each run of consecutive signals of one agent and heartbeat."""
    time_steps: list[int] = []
    agents: list[UUID | None] = []
    heartbeats: list[UUID | None] = []
    packed: list[bytes] = []
    for (agent_id, heartbeat_id), batch in groupby(signals, key=_source):
        time_steps.append(next_time_step())
        agents.append(agent_id)
        heartbeats.append(heartbeat_id)
        packed.append(pack([[signal.name.value, signal.data] for signal in batch]))
    return {
        "signal_time_steps": time_steps,
        "signal_agents": agents,
        "signal_heartbeats": heartbeats,
        "signals": packed,
    }


def _source(signal: Signal) -> tuple[UUID | None, UUID | None]:
    return signal.agent_id, signal.heartbeat_id
