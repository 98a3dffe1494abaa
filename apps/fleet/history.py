"""Delete the history of agents by age, in bounded steps: memory is what remains of it.

Cost and usage are folded into daily usage when a call is charged, so budgets and pages lose nothing with a ledger entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections, transaction
from django.db.models import Model, Q, QuerySet

from apps.access.idempotency import delete_expired_requests
from apps.agents.models import Percept
from apps.audit.models import AuditAction, AuditEvent, PlatformEvent, SealedBlock
from apps.audit.services import build_event
from apps.audit.services.chains import AuditChain
from apps.audit.services.deletions import ACTOR, record_age_deletion
from apps.authority.models import ActionApproval
from apps.calls.models import CallStatus, DailyUsage, ExternalCall, LedgerEntry
from apps.contacts.models import ChatMessage, ChatSession, HookDelivery, OutboxMessage, PartialReply
from apps.fleet.authority_history import APPROVAL_HAS_ENDED, delete_approvals, delete_uncounted_uses
from apps.fleet.goal_history import AGENTS_WITH_OLD_PROGRESS, PLAN_IS_OLD, delete_plans, delete_progress
from apps.fleet.seeds.saving import sweep_saved_seeds
from apps.goals.models import GoalMemoryLink, Intent, Plan, PlanStep, ProgressNote
from apps.heartbeats.models import Heartbeat
from apps.memories.models import JobRun
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.signals.models import SignalBatch
from apps.tenants.models import ConsoleSession
from apps.tenants.scope import APP, OPS, tenant_transaction
from apps.workflows.models import WorkflowRun, WorkflowStep
from arbor.audit.deletions import DeletedRows
from arbor.clock import Clock, SystemClock
from arbor.contacts.hooks import UNSENT
from arbor.contacts.values import DeliveryStatus
from arbor.heartbeat.failure_modes import HEARTBEATS_WATCHED
from arbor.history import AUDIT_SPAN, Record
from arbor.quotations import counted

log = structlog.get_logger(__name__)

#: Rows that one step deletes in a transaction of its own, the calls and percepts of heartbeats not counted; more of narrow rows.
STEP = 500
_NARROW_STEP = 2000
#: The latest heartbeats of an agent, which its next prompt and its page show: they stay, whatever their age.
RETAINED_HEARTBEATS = HEARTBEATS_WATCHED
#: The longest time that a run spends on one kind of record.
_JOB_RUN_DURATION = timedelta(seconds=6)
#: A job whose last run is older than this no longer exists under this name.
_JOB_AGE = timedelta(days=30)

# Agents with old rows, and tenants, whose id the job run passes as that of an agent. `{before}` is a time.
_AGENTS = """
SELECT a.id AS agent_id FROM agents_agent a WHERE a.tenant_id = t.id AND EXISTS (
    SELECT FROM {table} r WHERE r.tenant_id = t.id AND r.agent_id = a.id AND r.{column} < '{before}' AND {deletable}
)
"""
_TENANTS = """
SELECT t.id AS agent_id WHERE EXISTS (
    SELECT FROM {table} r WHERE r.tenant_id = t.id AND r.{column} < '{before}' AND {deletable}
)
"""
# For tables without an index by age: the row with the lowest id is the oldest.
_TENANTS_BY_ID = """
SELECT t.id AS agent_id WHERE (
    SELECT r.{column} FROM {table} r WHERE r.tenant_id = t.id ORDER BY r.id LIMIT 1
) < '{before}' AND {deletable}
"""
# Records of purges stay: they name what must not be stored again.
_NO_PURGE = f"r.action <> '{AuditAction.MEMORIES_PURGED.value}'"
_HEARTBEAT_IS_OLD = f"""
r.ended_at IS NOT NULL AND r.started_at < (
    SELECT latest.started_at FROM heartbeats_heartbeat latest
    WHERE latest.tenant_id = t.id AND latest.agent_id = a.id
    ORDER BY latest.started_at DESC OFFSET {RETAINED_HEARTBEATS - 1} LIMIT 1
)
"""  # noqa: S608 (no external input)

#: A function that deletes some old rows of an agent, or of a tenant, and returns their number.
type _Step = Callable[[UUID, UUID, datetime], int]


@dataclass(frozen=True, kw_only=True)
class _Sweep:
    """The deletion of one kind of record."""

    #: The statement that finds the owners of old rows: _AGENTS, _TENANTS, _TENANTS_BY_ID, or one of its own.
    waiting: str
    model: type[Model]
    #: The column with the age.
    column: str
    #: The condition of rows that may go, in SQL.
    deletable: str = "true"
    #: The models of rows that go with those of `model`, unless they are records of a kind of their own.
    others: tuple[type[Model], ...] = ()
    #: None: the oldest rows that fulfil `ended` are deleted, `step_size` at once.
    step: _Step | None = None
    #: `deletable` for the ORM.
    ended: Q = field(default_factory=Q)
    step_size: int = _NARROW_STEP

    def __post_init__(self) -> None:
        if self.step is None and self.deletable != "true" and not self.ended:
            raise ValueError(f"{self.model.__name__}: without `ended`, rows that may not go would be deleted")


def sweep_history(clock: Clock | None = None) -> JobRunResult:
    """Delete records that have reached their age (`ARBOR_…_DAYS`, or the policy of saved seeds), within a limited time."""
    now = (clock or SystemClock()).now()
    # The digests go before the audit records, which explain why rows under the digests are gone.
    results = [_sweep_blocks(now), *(_sweep(record, now) for record in _SWEEPS)]
    results.append(delete_uncounted_uses(now=now, max_duration=_JOB_RUN_DURATION))
    _delete_platform_events(now)
    _delete_expired_rows(now)
    results.append(sweep_saved_seeds())
    return sum(results, start=JobRunResult())


def _before(record: Record, now: datetime) -> datetime | None:
    """Return the time before which rows have reached their age; None: they stay.

    For sealed rows it is midnight, so that one audit record a day states the deletions.
    """
    age = settings.ARBOR_HISTORY_AGES[record]
    if age is None:
        return None
    sealed = record in (Record.AUDIT, Record.HEARTBEATS)
    return (now.replace(hour=0, minute=0, second=0, microsecond=0) if sealed else now) - age


def _sweep(record: Record, now: datetime) -> JobRunResult:
    before = _before(record, now)
    if before is None:
        return JobRunResult()
    sweep = _SWEEPS[record]
    step = sweep.step or partial(_delete_ended, sweep=sweep)
    # A month of audit records is deleted at once, so that the record of their deletion is one among many.
    oldest = before - AUDIT_SPAN if record is Record.AUDIT else before
    return run_job(
        f"history of {record.value}",
        waiting=sweep.waiting.format(
            table=sweep.model._meta.db_table,
            column=sweep.column,
            deletable=sweep.deletable,
            before=oldest.isoformat(),
        ),
        step=lambda tenant_id, owner_id: step(tenant_id, owner_id, before),
        max_duration=_JOB_RUN_DURATION,
    )


def _delete_heartbeats(tenant_id: UUID, agent_id: UUID, before: datetime) -> int:
    with tenant_transaction(tenant_id):
        own = Heartbeat.objects.filter(agent_id=agent_id)
        latest = own.order_by("-started_at").values_list("started_at", flat=True)
        retained_from = list(latest[RETAINED_HEARTBEATS - 1 : RETAINED_HEARTBEATS])
        if not retained_from:
            return 0
        old = own.filter(ended_at__isnull=False, started_at__lt=min(before, *retained_from))
        ids = _oldest_ids(old, "started_at", STEP)
        # Before the heartbeat: a percept without one would be pending again.
        Percept.objects.filter(heartbeat_id__in=ids).delete()
        ExternalCall.objects.filter(heartbeat_id__in=ids).delete()
        Heartbeat.objects.filter(id__in=ids).delete()
        if ids:
            chain = AuditChain(tenant_id=tenant_id)
            record_age_deletion(chain, rows=DeletedRows.HEARTBEATS, until=before, using=APP)
        return len(ids)


def _delete_ended(tenant_id: UUID, owner_id: UUID, before: datetime, sweep: _Sweep) -> int:
    """Delete rows that have ended, and with them what belongs to them."""
    with tenant_transaction(tenant_id):
        rows: QuerySet[Any] = sweep.model._default_manager.all()
        old = rows.filter(sweep.ended, **{f"{sweep.column}__lt": before})
        if sweep.waiting == _AGENTS:
            old = old.filter(agent_id=owner_id)
        ids = _oldest_ids(old, sweep.column, sweep.step_size)
        rows.filter(id__in=ids).delete()
        return len(ids)


def _delete_ledger(tenant_id: UUID, _: UUID, before: datetime) -> int:
    with transaction.atomic(using=OPS):
        rows: QuerySet[LedgerEntry] = QuerySet(LedgerEntry, using=OPS)
        old = rows.filter(tenant_id=tenant_id, at__lt=before)
        return _delete_by_key(old, old.order_by("at").values_list("pk", flat=True)[:_NARROW_STEP])


def _delete_signals(tenant_id: UUID, _: UUID, before: datetime) -> int:
    rows: QuerySet[SignalBatch] = QuerySet(SignalBatch, using=OPS).filter(tenant_id=tenant_id)
    with transaction.atomic(using=OPS):
        oldest = rows.order_by("id").values_list("id", "at")[:_NARROW_STEP]
        return _delete_by_key(rows, [row_id for row_id, at in oldest if at < before])


def _delete_audit(tenant_id: UUID, _: UUID, before: datetime) -> int:
    rows: QuerySet[AuditEvent] = QuerySet(AuditEvent, using=OPS)
    with transaction.atomic(using=OPS):
        deleted = _delete_events(
            rows.filter(tenant_id=tenant_id).exclude(action=AuditAction.MEMORIES_PURGED), before
        )
        if deleted:
            rows.bulk_create([build_event(tenant_id=tenant_id, **_deletion_record(deleted))])
    return len(deleted)


def _sweep_blocks(now: datetime) -> JobRunResult:
    """Delete the digests of rows under old seals; the seals themselves stay, so that the chains still verify."""
    before = _before(Record.AUDIT, now)
    if before is None:
        return JobRunResult()
    _delete_old_blocks(AuditChain(), before)
    return run_job(
        "history of seals",
        waiting=_TENANTS.format(
            table=SealedBlock._meta.db_table, column="at", deletable="true", before=before.isoformat()
        ),
        step=lambda tenant_id, _: _delete_old_blocks(AuditChain(tenant_id=tenant_id), before),
        max_duration=_JOB_RUN_DURATION,
    )


def _delete_old_blocks(chain: AuditChain, before: datetime) -> int:
    rows = chain.blocks().filter(at__lt=before)
    with transaction.atomic(using=OPS):
        deleted = _delete_by_key(rows, rows.order_by("at").values_list("pk", flat=True)[:_NARROW_STEP])
        if deleted:
            record_age_deletion(chain, rows=DeletedRows.DIGESTS, until=before)
    return deleted


def _delete_platform_events(now: datetime) -> None:
    before = _before(Record.AUDIT, now)
    rows: QuerySet[PlatformEvent] = QuerySet(PlatformEvent, using=OPS)
    if before is None or not rows.filter(at__lt=before - AUDIT_SPAN).exists():
        return
    with transaction.atomic(using=OPS):
        deleted = _delete_events(rows, before)
        if deleted:
            rows.bulk_create([PlatformEvent(**_deletion_record(deleted))])


def _delete_events(rows: QuerySet[Any], before: datetime) -> list[tuple[UUID, datetime, str]]:
    """Delete the oldest audit records, and return their ids, times and actions: none if the database protects one of them."""
    old = list(rows.filter(at__lt=before).order_by("at").values_list("id", "at", "action")[:_NARROW_STEP])
    deleted = _delete_by_key(rows, [event_id for event_id, *_ in old])
    if deleted < len(old):
        # The database still protects records of the former, higher age, until `arbor prepare` runs again.
        log.warning("audit_deletion_refused", records=len(old) - deleted)
        transaction.set_rollback(True, using=OPS)
        return []
    return old


def _deletion_record(deleted: list[tuple[UUID, datetime, str]]) -> dict[str, Any]:
    """Return the fields of the audit record that states which audit records were deleted."""
    first, last = deleted[0][1], deleted[-1][1]
    return {
        "action": AuditAction.AUDIT_DELETED,
        "actor": ACTOR,
        "message": f"deleted {counted(len(deleted), 'audit record')} from {first:%Y-%m-%d} to {last:%Y-%m-%d}, by age",
        "detail": {
            "rows": DeletedRows.EVENTS.value,
            "from": first.isoformat(),
            "until": last.isoformat(),
            "actions": dict(Counter(action for *_, action in deleted)),
        },
    }


def _delete_expired_rows(now: datetime) -> None:
    """Delete expired sessions of signed-in people, expired requests of programs, and the last runs of jobs that no longer exist."""
    # By the public ids: this role may not read the session keys, which sign people in.
    sessions = ConsoleSession.objects.using(OPS)
    expired = sessions.filter(expire_date__lt=now).values_list("public_id", flat=True)
    sessions.filter(public_id__in=list(expired[:_NARROW_STEP])).delete()
    delete_expired_requests(now=now)
    JobRun.objects.using(OPS).filter(ended_at__lt=now - _JOB_AGE).delete()


def _oldest_ids(rows: QuerySet[Any], column: str, count: int) -> list[UUID]:
    """Return the ids of the oldest rows, and lock them."""
    locked = rows.order_by(column).select_for_update(skip_locked=True)
    return list(locked.values_list("id", flat=True)[:count])


def _delete_by_key(rows: QuerySet[Any], keys: Iterable[UUID]) -> int:
    """Delete those of the rows that have these keys, by the operations role, and return their number."""
    # `_raw_delete` returns None where it deletes no row.
    return rows.filter(pk__in=list(keys))._raw_delete(OPS) or 0


_SWEEPS = {
    Record.HEARTBEATS: _Sweep(
        waiting=_AGENTS,
        model=Heartbeat,
        column="started_at",
        deletable=_HEARTBEAT_IS_OLD,
        others=(Percept,),
        step=_delete_heartbeats,
    ),
    Record.CALLS: _Sweep(
        waiting=_TENANTS,
        model=ExternalCall,
        column="requested_at",
        deletable="r.subject_key <> '' AND r.status IN ('complete', 'failed', 'retried')",
        ended=Q(status__in=[CallStatus.COMPLETE, CallStatus.FAILED, CallStatus.RETRIED]) & ~Q(subject_key=""),
        step_size=STEP,
    ),
    Record.CONVERSATIONS: _Sweep(
        waiting=_AGENTS,
        model=ChatSession,
        column="started_at",
        deletable="r.ended_at IS NOT NULL",
        ended=Q(ended_at__isnull=False),
        others=(ChatMessage, PartialReply),
        step_size=STEP // 10,
    ),
    Record.MESSAGES: _Sweep(
        waiting=_AGENTS,
        model=OutboxMessage,
        column="created_at",
        deletable="r.status NOT IN ('pending', 'sending')",
        ended=~Q(status__in=[DeliveryStatus.PENDING, DeliveryStatus.SENDING]),
        step_size=STEP,
    ),
    Record.APPROVALS: _Sweep(
        waiting=_AGENTS,
        model=ActionApproval,
        column="asked_at",
        deletable=APPROVAL_HAS_ENDED,
        step=delete_approvals,
    ),
    Record.PLANS: _Sweep(
        waiting=_AGENTS,
        model=Plan,
        column="ended_at",
        deletable=PLAN_IS_OLD,
        others=(PlanStep, Intent),
        step=delete_plans,
    ),
    Record.PROGRESS: _Sweep(
        waiting=AGENTS_WITH_OLD_PROGRESS,
        model=ProgressNote,
        column="at",
        others=(GoalMemoryLink,),
        step=delete_progress,
    ),
    Record.LEDGER: _Sweep(waiting=_TENANTS, model=LedgerEntry, column="at", step=_delete_ledger),
    Record.USAGE: _Sweep(waiting=_TENANTS, model=DailyUsage, column="day"),
    Record.AUDIT: _Sweep(
        waiting=_TENANTS, model=AuditEvent, column="at", deletable=_NO_PURGE, step=_delete_audit
    ),
    Record.WORKFLOWS: _Sweep(
        waiting=_TENANTS, model=WorkflowRun, column="ended_at", others=(WorkflowStep,), step_size=STEP // 10
    ),
    Record.DELIVERIES: _Sweep(
        waiting=_TENANTS,
        model=HookDelivery,
        column="at",
        deletable="r.status NOT IN ('retrying', 'resending')",
        ended=~Q(status__in=UNSENT),
    ),
    Record.SIGNALS: _Sweep(waiting=_TENANTS_BY_ID, model=SignalBatch, column="at", step=_delete_signals),
}


def history_sizes() -> dict[Record, int]:
    """Return the bytes that each kind of record takes in the database, with the rows that go with it and indexes. One statement."""
    owners = [
        (record, model._meta.db_table)
        for record, sweep in _SWEEPS.items()
        for model in (sweep.model, *sweep.others)
    ]
    with connections[OPS].cursor() as cursor:
        cursor.execute(
            "SELECT pg_total_relation_size(name::regclass) FROM unnest(%s::text[]) WITH ORDINALITY AS t (name, place) ORDER BY place",
            [[table for _, table in owners]],
        )
        sizes = [int(size) for (size,) in cursor.fetchall()]
    found = dict.fromkeys(_SWEEPS, 0)
    for (record, _), size in zip(owners, sizes, strict=True):
        found[record] += size
    return found
