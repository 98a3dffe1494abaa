"""Export the spans of ended heartbeats to an OpenTelemetry collector, tenant by tenant, from their signals.

A heartbeat pays nothing for its spans: a job reads what the heartbeat stored. If the collector is down, the next run continues
at the same position, so spans arrive late, but none is missing while the signals are stored.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connections
from django.utils import timezone

from apps.calls.models import ExternalCall, LedgerEntry
from apps.heartbeats.models import Heartbeat, SpanExport
from apps.heartbeats.services.reports.trace import steps_of
from apps.signals.services.reading import SignalFilter, horizon, read_signals
from apps.tenants.scope import OPS, current_tenant, tenant_transaction
from arbor.errors import DeliveryFailed
from arbor.heartbeat.results import ActionOutcome
from arbor.signals import Cursor, SignalName
from arbor.telemetry import (
    CallTiming,
    ExecutedAction,
    HeartbeatRecord,
    Span,
    SpanExporter,
    heartbeat_spans,
)

#: Heartbeats of one request to the collector.
_BATCH = 100
#: How long a run exports.
_RUN_LASTS = timedelta(seconds=20)
_ENDED = SignalFilter(names=frozenset({SignalName.HEARTBEAT}))

# Tenants with signals after their position, and those that have no position yet. With EXISTS, the planner would read the whole table
# where nothing is new.
_WAITING = """
SELECT t.id, t.slug FROM tenants_tenant t LEFT JOIN heartbeats_spanexport e ON e.tenant_id = t.id
WHERE e.id IS NULL OR (
    SELECT s.id FROM signals_signalbatch s WHERE s.tenant_id = t.id ORDER BY s.id DESC LIMIT 1
) > split_part(e.position, '.', 1)::uuid
ORDER BY e.exported_at NULLS FIRST
"""


def export_spans() -> int:
    """Export the spans of heartbeats that ended since the last run; return the number of heartbeats.

    Raises ConfigurationInvalid without the packages of OpenTelemetry, and DeliveryFailed when the collector refuses.
    """
    if not settings.ARBOR_EXPORT_SPANS:
        return 0
    from arbor.adapters.otlp import OtlpExporter  # noqa: PLC0415 (loads 90 modules, for this job alone)

    exporter = OtlpExporter(service="arbor", headers=settings.OTEL_EXPORTER_OTLP_HEADERS)
    try:
        return export_to(exporter)
    finally:
        exporter.close()


def export_to(exporter: SpanExporter) -> int:
    """Export the spans of all tenants to an exporter; return the number of heartbeats.

    Raises DeliveryFailed at once where the collector cannot be reached, and after all tenants where it refused a tenant's spans.
    """
    ends_at = time.monotonic() + _RUN_LASTS.total_seconds()
    exported = 0
    failure: DeliveryFailed | None = None
    for tenant_id, slug in _waiting_tenants():
        more = True
        while more and time.monotonic() < ends_at:
            try:
                number, more = _export_batch(tenant_id, slug, exporter)
            except DeliveryFailed as error:
                if not error.final:
                    raise
                # Its tenant is the first at each run, so the others would never have their turn.
                failure, more = error, False
            else:
                exported += number
    if failure is not None:
        raise failure
    return exported


def _waiting_tenants() -> list[tuple[UUID, str]]:
    with connections[OPS].cursor() as cursor:
        cursor.execute(_WAITING)
        rows: list[tuple[UUID, str]] = cursor.fetchall()
        return rows


def _export_batch(tenant_id: UUID, slug: str, exporter: SpanExporter) -> tuple[int, bool]:
    """Export some heartbeats of a tenant; return their number, and whether there are more. Sends outside of transactions."""
    with tenant_transaction(tenant_id):
        row = SpanExport.objects.first()
        if row is None:
            # What happened before the export was configured is not exported.
            _store_position(horizon())
            return 0, False
        page = read_signals(after=Cursor.parse(row.position), wanted=_ENDED, limit=_BATCH)
        ids = [record.heartbeat_id for record in page.signals if record.heartbeat_id]
        spans = _spans_of(ids, slug)
    if spans:
        exporter.export(spans)
    with tenant_transaction(tenant_id):
        _store_position(page.cursor)
    return len(ids), page.more


def _store_position(cursor: Cursor) -> None:
    SpanExport.objects.update_or_create(
        tenant_id=current_tenant(),
        defaults={"position": str(cursor), "exported_at": timezone.now()},
    )


def _spans_of(ids: Sequence[UUID], slug: str) -> list[Span]:
    """Return the spans of heartbeats. Three statements."""
    heartbeats = Heartbeat.objects.filter(id__in=ids, ended_at__isnull=False).select_related("agent")
    calls = _calls_of(ids)
    return [
        span
        for heartbeat in heartbeats.defer("situation", "checkpoint")
        for span in heartbeat_spans(_record_of(heartbeat, slug, calls.get(heartbeat.id, [])))
    ]


def _calls_of(ids: Sequence[UUID]) -> dict[UUID, list[CallTiming]]:
    """Return the ended model calls of heartbeats, with their usage, by heartbeat."""
    calls = ExternalCall.objects.filter(
        heartbeat_id__in=ids, started_at__isnull=False, ended_at__isnull=False
    )
    rows = list(calls.defer("request", "sections", "reply").order_by("requested_at"))
    # A repeated call has an entry for each attempt: the latest counts, as its times do.
    entries = LedgerEntry.objects.filter(call__in=[row.id for row in rows]).order_by("at", "id")
    ledger = {entry.call_id: entry for entry in entries}
    timings: defaultdict[UUID, list[CallTiming]] = defaultdict(list)
    for row in rows:
        provider, _, model = row.model.partition("/")
        entry = ledger.get(row.id) or LedgerEntry(
            provider=provider, model=model, input_tokens=0, output_tokens=0
        )
        if row.heartbeat_id and row.started_at and row.ended_at:
            timings[row.heartbeat_id].append(
                CallTiming(
                    id=row.id,
                    purpose=row.purpose,
                    provider=entry.provider,
                    model=entry.model,
                    started_at=row.started_at,
                    ended_at=row.ended_at,
                    input_tokens=entry.input_tokens,
                    cached_tokens=entry.cached_tokens,
                    output_tokens=entry.output_tokens,
                    error_kind=row.error_kind,
                )
            )
    return timings


def _record_of(heartbeat: Heartbeat, slug: str, calls: Sequence[CallTiming]) -> HeartbeatRecord:
    assert heartbeat.ended_at is not None  # the query excludes others
    return HeartbeatRecord(
        id=heartbeat.id,
        tenant=slug,
        agent_id=heartbeat.agent_id,
        agent_name=heartbeat.agent.name,
        status=heartbeat.status,
        mode=heartbeat.mode,
        trigger=heartbeat.trigger,
        model=heartbeat.model,
        started_at=heartbeat.started_at,
        ended_at=heartbeat.ended_at,
        steps=steps_of(heartbeat),
        calls=calls,
        actions=[
            ExecutedAction(
                name=str(action["action"]),
                verdict=str(action["verdict"]),
                cost=float(action.get("cost") or 0.0),
                failed=action.get("outcome") == ActionOutcome.FAILURE,
            )
            for action in heartbeat.actions
        ],
    )
