"""Run the heartbeats of a batch to their next suspensions or ends.

Each transaction first locks the schedule rows under their epochs; a worker whose lease was lost finds no row and writes
nothing. Steps are pure, and all writes are at the end of a leg. After an error in a batch, the transaction is rolled back and
each heartbeat runs alone, so that the error ends only its own heartbeat.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, connections

from apps.heartbeats.services.legs.committing import commit, fail
from apps.heartbeats.services.legs.fetching import Fetcher, OpenNeed, Refusal, embeds_elsewhere, next_kind
from apps.heartbeats.services.legs.leases import fence, resolve_to_end, run, run_queued
from apps.heartbeats.services.legs.loading import load_batch
from apps.heartbeats.services.legs.members import LeasedHeartbeat
from apps.providers import token_counters
from apps.queues import MAX_BATCH_SIZE
from apps.signals.services.emission import collected_signals
from apps.tenants.scope import APP, tenant_transaction
from arbor.clock import Clock, SystemClock
from arbor.errors import StaleLease
from arbor.heartbeat.needs import Embedding
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps import HANDLERS
from arbor.pipeline.engine import Progress, advance
from arbor.signals import Signal

log = structlog.get_logger(__name__)

type LeaseToken = tuple[UUID, int]

#: Milliseconds of a leg, about: its locks block others.
LEG_MS = 150.0
#: The weight of the latest leg in the pace, for a full batch.
_LATEST = 0.2


class BatchSizer:
    """The moving average of the time of one heartbeat in a leg of this process, which limits batches."""

    def __init__(self) -> None:
        self._average_ms = 0.0

    @property
    def batch_size(self) -> int:
        """Return the number of heartbeats for a leg of LEG_MS."""
        return max(1, min(MAX_BATCH_SIZE, int(LEG_MS / max(self._average_ms, 1.0))))

    def count(self, *, heartbeats: int, elapsed_ms: float) -> None:
        """Add the time of a leg, weighted by its heartbeats: each takes longer in a small batch."""
        weight = _LATEST * min(1.0, heartbeats / MAX_BATCH_SIZE)
        self._average_ms += weight * (elapsed_ms / heartbeats - self._average_ms)


_batch_sizer = BatchSizer()


class BatchFailed(Exception):
    """A batch of several heartbeats failed; nothing was written."""


def advance_heartbeats(
    *, tenant_id: UUID, leases: Sequence[LeaseToken], clock: Clock | None = None, lost: bool = False
) -> set[UUID]:
    """Run agents' heartbeats under these leases (agent, epoch), until each waits for a model or has ended.

    Returns the agents whose heartbeats advanced, without those of stale and doubled messages. `lost`: their last worker
    lost the leases. Raises the last database error when all are done.
    """
    clock = clock or SystemClock()
    # Reads their files at the first call, while no transaction is open.
    token_counters()
    advanced: set[UUID] = set()
    # Doubled leases are removed; their heartbeats would run twice in one transaction.
    left = list(dict.fromkeys(leases))
    running: set[UUID] = set()
    if lost:
        # The heartbeat may have killed its worker: under a running lease the next death counts as an attempt.
        with tenant_transaction(tenant_id):
            running = run_queued(left)
    faults: list[Exception] = []
    while left:
        size = _batch_sizer.batch_size
        advanced |= _advance_batch(tenant_id, left[:size], clock, running, faults)
        left = left[size:]
    if faults:
        raise faults[-1]
    return advanced


def _advance_batch(
    tenant_id: UUID,
    leases: Sequence[LeaseToken],
    clock: Clock,
    running: set[UUID],
    faults: list[Exception],
) -> set[UUID]:
    if len(leases) > 1:
        leg = _Leg(tenant_id, leases, clock, running)
        try:
            return leg.run()
        except BatchFailed as failed:
            log.warning("batch_failed", heartbeats=len(leases), error=repr(failed.__cause__))
            running = leg.running
    advanced: set[UUID] = set()
    for lease in leases:
        try:
            if _advance_one(tenant_id, lease, clock, running):
                advanced.add(lease[0])
        except (OperationalError, InterfaceError) as fault:
            if not connections[APP].is_usable():
                raise
            # A deadlock or lock timeout: this heartbeat is reclaimed when its lease expires, the others go on.
            log.exception("heartbeat_deferred", agent_id=str(lease[0]), epoch=lease[1])
            faults.append(fault)
    return advanced


def advance_heartbeat(*, agent_id: UUID, tenant_id: UUID, epoch: int, clock: Clock | None = None) -> bool:
    """Run one agent's heartbeat under this lease. Returns False for a stale or doubled message."""
    return bool(advance_heartbeats(tenant_id=tenant_id, leases=[(agent_id, epoch)], clock=clock))


def _advance_one(tenant_id: UUID, lease: LeaseToken, clock: Clock, running: set[UUID]) -> bool:
    agent_id, epoch = lease
    try:
        return bool(_Leg(tenant_id, [lease], clock, running).run())
    except StaleLease:
        log.warning("lease_lost", agent_id=str(agent_id), epoch=epoch)
        return False
    except (OperationalError, InterfaceError):
        # A database error: the heartbeat is reclaimed when its lease expires.
        raise
    except Exception as error:
        # An error in a step would repeat at each retry, so the heartbeat ends as failed.
        log.exception("heartbeat_fault", agent_id=str(agent_id), epoch=epoch)
        with tenant_transaction(tenant_id):
            member = resolve_to_end(agent_id=agent_id, epoch=epoch)
            if member is not None:
                fail(member, error)
    return True


@dataclass(slots=True, eq=False)
class _RunningPipeline:
    """A running pipeline: its generator, and the need that it waits for."""

    member: LeasedHeartbeat
    steps: Generator[Any, Any, Progress[HeartbeatState]]
    need: Any = None

    def resume(self, answer: Any) -> None:
        """Send an answer; run to the next need or the end of the leg."""
        try:
            if isinstance(answer, Refusal):
                self.need = self.steps.throw(answer.error)
            else:
                self.need = self.steps.send(answer)
        except StopIteration as stop:
            self.need, self.member.progress = None, stop.value


class _Leg:
    """One leg of a batch: load, run steps, answer needs, commit."""

    def __init__(
        self, tenant_id: UUID, leases: Sequence[LeaseToken], clock: Clock, running: set[UUID]
    ) -> None:
        self._tenant_id = tenant_id
        self._leases = leases
        #: Agents whose leases this worker has set to running.
        self.running = set(running)
        self._clock = clock
        self._fetcher = Fetcher(tenant_id, clock.now())
        self._pipelines: list[_RunningPipeline] = []
        self._spent_s = 0.0

    def run(self) -> set[UUID]:
        """Run the leg. Raises BatchFailed for several heartbeats, the original error for one."""
        try:
            return self._run_leg()
        except (OperationalError, InterfaceError) as error:
            if len(self._leases) == 1 or not connections[APP].is_usable():
                raise
            raise BatchFailed from error
        except Exception as error:
            # Nothing was written: the heartbeats run one by one.
            if len(self._leases) == 1:
                raise
            raise BatchFailed from error

    def _run_leg(self) -> set[UUID]:
        started = time.perf_counter()
        with tenant_transaction(self._tenant_id, generic_plans=True), collected_signals() as signals:
            members = load_batch(self._leases, clock=self._clock, running=self.running)
            self._fetcher.members = members
            self._pipelines = [self._start(member) for member in members]
            if len(members) < len(self._leases):
                log.debug("messages_stale", stale=len(self._leases) - len(members))
            if not members:
                return set()
            for pipeline in self._pipelines:
                pipeline.resume(None)
            outside = self._answer_needs()
            if not outside:
                self._commit(members, signals, started)
            else:
                # A leg that waits for vectors has changed nothing yet.
                run([member.agent.id for member in members])
        self.running |= {member.agent.id for member in members}
        while outside:
            # Remote embedding, outside any transaction.
            self._spent_s += time.perf_counter() - started
            answers = self._fetcher.embed([self._open_need(pipeline) for pipeline in outside])
            started = time.perf_counter()
            with tenant_transaction(self._tenant_id, generic_plans=True), collected_signals() as signals:
                members = self._drop_lost(fence(members))
                if not members:
                    return set()
                for pipeline, answer in zip(outside, answers, strict=True):
                    if pipeline in self._pipelines:
                        pipeline.resume(answer)
                outside = self._answer_needs()
                if not outside:
                    self._commit(members, signals, started)
        return {member.agent.id for member in members}

    def _start(self, member: LeasedHeartbeat) -> _RunningPipeline:
        assert member.checkpoint is not None
        steps = advance(
            member.agent.graph,
            member.checkpoint,
            HANDLERS,
            clock=self._clock,
            resume_with=member.result,
            observer=member.steps.append,
        )
        return _RunningPipeline(member=member, steps=steps)

    def _drop_lost(self, members: list[LeasedHeartbeat]) -> list[LeasedHeartbeat]:
        """Drop the heartbeats that another worker has reclaimed; return the others."""
        current = {member.heartbeat_id for member in members}
        for pipeline in self._pipelines:
            if pipeline.member.heartbeat_id not in current:
                log.warning("lease_lost", agent_id=str(pipeline.member.agent.id), epoch=pipeline.member.epoch)
        self._pipelines = [
            pipeline for pipeline in self._pipelines if pipeline.member.heartbeat_id in current
        ]
        return members

    def _answer_needs(self) -> list[_RunningPipeline]:
        """Answer needs until all legs have ended; return the pipelines that wait for remote vectors."""
        while waiting := [pipeline for pipeline in self._pipelines if pipeline.need is not None]:
            kind = next_kind([self._open_need(pipeline) for pipeline in waiting])
            of_kind = [pipeline for pipeline in waiting if type(pipeline.need) is kind]
            open_needs = [self._open_need(pipeline) for pipeline in of_kind]
            answers: Sequence[Any]
            if kind is not Embedding or not embeds_elsewhere(open_needs):
                answers = self._fetcher.answer(kind, open_needs)
            elif self._fetcher.is_committed_to:
                # Locks must not wait for the network: fall back to words; maintenance embeds new memories.
                log.warning("embedding_skipped", reason="a transaction is open", heartbeats=len(open_needs))
                answers = [{} for _ in open_needs]
            else:
                self._fetcher.read_meanings(open_needs)
                return of_kind
            for pipeline, answer in zip(of_kind, answers, strict=True):
                pipeline.resume(answer)
        return []

    def _open_need(self, pipeline: _RunningPipeline) -> OpenNeed:
        return OpenNeed(member=pipeline.member, need=pipeline.need)

    def _commit(self, members: Sequence[LeasedHeartbeat], signals: list[Signal], started: float) -> None:
        """Commit; the time until progress is written is divided among the heartbeats."""

        def charge() -> None:
            elapsed_ms = (self._spent_s + time.perf_counter() - started) * 1000
            _batch_sizer.count(heartbeats=len(members), elapsed_ms=elapsed_ms)
            for member in members:
                member.elapsed_ms += elapsed_ms
                member.own_ms += elapsed_ms / len(members)

        commit(members, self._fetcher, signals=signals, charge=charge)
