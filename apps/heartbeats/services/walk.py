"""A heartbeat walked from where it stands to its next suspension or its end, in short transactions.

Law 2: each transaction first locks the schedule row under its epoch (the lease's token) and the heartbeat at its step.
A worker whose lease was lost finds no row, and writes nothing. Steps that changed nothing are not stored when the walk
leaves the database: whoever takes over repeats them.
"""

from __future__ import annotations

import time
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError

from apps.heartbeats.handlers.registry import HANDLERS
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.storing import fence, finish, store, stored_checkpoint, suspend
from apps.heartbeats.services.taking import retake, take
from apps.heartbeats.services.values import Walk
from apps.tenants.scope import tenant_transaction
from arbor.clock import Clock, SystemClock
from arbor.errors import StaleLease
from arbor.pipeline.engine import Outcome, Phase, Progress, ProgressStatus, advance

log = structlog.get_logger(__name__)

_ENDED = {
    Outcome.SUCCESS: HeartbeatStatus.DONE,
    Outcome.PARTIAL: HeartbeatStatus.DONE,
    Outcome.SKIPPED: HeartbeatStatus.SKIPPED,
    Outcome.FAILURE: HeartbeatStatus.FAILED,
    Outcome.RETRY: HeartbeatStatus.FAILED,
}


def advance_heartbeat(*, agent_id: UUID, tenant_id: UUID, epoch: int, clock: Clock | None = None) -> bool:
    """Walk the agent's heartbeat on under this lease, until it waits for a model or has ended.

    Returns False when the message was stale or doubled: nothing is done then.
    """
    clock = clock or SystemClock()
    started = time.perf_counter()
    try:
        with tenant_transaction(tenant_id):
            walk = take(agent_id=agent_id, epoch=epoch, clock=clock)
            if walk is None:
                log.info("stale_message", agent_id=str(agent_id), epoch=epoch)
                return False
            progress = _walk_inside(walk, started, clock)
        while progress.status is ProgressStatus.CROSSING:
            started = time.perf_counter()
            progress = _step(walk, Phase.OUTSIDE, clock)
            if progress.status is not ProgressStatus.CROSSING:
                raise RuntimeError(
                    f"a node outside a transaction may not end or suspend, yet it {progress.status}"
                )
            with tenant_transaction(tenant_id):
                fence(walk)
                progress = _walk_inside(walk, started, clock)
    except StaleLease:
        log.warning("stale_lease", agent_id=str(agent_id), epoch=epoch)
        return False
    except (OperationalError, InterfaceError):
        # The database went away: the lease brings the heartbeat back.
        raise
    except Exception as error:
        # A fault in a handler would come again at each retry: it is this heartbeat's failure, recorded as such.
        log.exception("heartbeat_fault", agent_id=str(agent_id), epoch=epoch)
        _fail(agent_id=agent_id, tenant_id=tenant_id, epoch=epoch, error=error)
    return True


def _fail(*, agent_id: UUID, tenant_id: UUID, epoch: int, error: Exception) -> None:
    """End the heartbeat as failed, from where it was last stored."""
    with tenant_transaction(tenant_id):
        walk = retake(agent_id=agent_id, epoch=epoch)
        if walk is not None:
            notes = "; ".join(getattr(error, "__notes__", ()))
            finish(walk, HeartbeatStatus.FAILED, reason=f"{type(error).__name__}: {error} {notes}".strip())


def _walk_inside(walk: Walk, started: float, clock: Clock) -> Progress:
    """Walk the nodes that run in the transaction that is open, and store how far it came."""
    progress = _step(walk, Phase.INSIDE, clock)
    walk.own_ms += (time.perf_counter() - started) * 1000
    if progress.status is ProgressStatus.SUSPENDED and progress.suspension is not None:
        suspend(walk, progress.suspension)
    elif progress.status is ProgressStatus.FINISHED:
        finish(walk, _ENDED[progress.outcome or Outcome.FAILURE], reason=progress.fault)
    elif any(step.changed for step in walk.steps):
        store(walk, status=HeartbeatStatus.RUNNING, checkpoint=stored_checkpoint(walk))
    return progress


def _step(walk: Walk, phase: Phase, clock: Clock) -> Progress:
    progress = advance(
        walk.graph,
        walk.checkpoint,
        HANDLERS,
        phase=phase,
        clock=clock,
        resume_with=walk.result,
        observer=walk.steps.append,
    )
    if progress.status is not ProgressStatus.CROSSING or not progress.checkpoint.waiting:
        walk.result = None
    walk.checkpoint = progress.checkpoint
    return progress
