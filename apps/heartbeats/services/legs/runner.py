"""Run the heartbeats of a batch to their next suspensions or ends.

Each transaction first locks the schedule rows under their epochs; a worker whose lease was lost finds no row and writes
nothing. Steps are pure, and all writes are at the end of a leg. After an error in a batch, the transaction is rolled back and
each heartbeat runs alone, so that the error ends only its own heartbeat.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, connections

from apps.heartbeats.services.legs.committing import commit, fail
from apps.heartbeats.services.legs.fetching import Fetcher, embeds_elsewhere, next_kind
from apps.heartbeats.services.legs.leases import fence, resolve_to_end, set_queued_running, set_running
from apps.heartbeats.services.legs.loading import load_batch
from apps.heartbeats.services.legs.members import LeasedHeartbeat, LeaseToken
from apps.providers import token_counters
from apps.queues import MAX_BATCH_SIZE
from apps.signals.services.emission import collected_signals
from apps.tenants.scope import APP, tenant_transaction
from arbor.clock import SystemClock
from arbor.errors import StaleLease
from arbor.heartbeat.needs import Embedding
from arbor.heartbeat.steps import HANDLERS
from arbor.pipeline.engine import advance
from arbor.signals import Signal

log = structlog.get_logger(__name__)

_DATABASE_ERRORS = (OperationalError, InterfaceError)
#: Milliseconds of a leg, about: its locks block others.
LEG_MS = 150.0
#: The weight of the latest leg in the average, for a full batch.
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


def advance_heartbeats(*, tenant_id: UUID, leases: Sequence[LeaseToken], lost: bool = False) -> set[UUID]:
    """Run agents' heartbeats under these leases (agent, epoch), until each waits for a model or has ended.

    Returns the agents whose heartbeats advanced, without those of stale and doubled messages. `lost`: their last worker
    lost the leases. Raises the last database error when all are done.
    """
    # Reads their files at the first call, while no transaction is open.
    token_counters()
    advanced: set[UUID] = set()
    # Doubled leases are removed; their heartbeats would run twice in one transaction.
    left = list(dict.fromkeys(leases))
    running: set[UUID] = set()
    if lost:
        # The heartbeat may have killed its worker: under a running lease the next death counts as an attempt.
        with tenant_transaction(tenant_id):
            running = set_queued_running(left)
    faults: list[Exception] = []
    while left:
        size = _batch_sizer.batch_size
        advanced |= _advance_batch(tenant_id, left[:size], running, faults)
        left = left[size:]
    if faults:
        raise faults[-1]
    return advanced


def _advance_batch(
    tenant_id: UUID,
    leases: Sequence[LeaseToken],
    running: set[UUID],
    faults: list[Exception],
) -> set[UUID]:
    if len(leases) > 1:
        leg = _Leg(tenant_id, leases, running)
        try:
            return leg.run()
        except Exception as error:
            if isinstance(error, _DATABASE_ERRORS) and not connections[APP].is_usable():
                raise
            # Nothing was written: the heartbeats run one by one.
            log.warning("batch_failed", heartbeats=len(leases), error=repr(error))
            running = leg.running
    advanced: set[UUID] = set()
    for lease in leases:
        try:
            if _advance_one(tenant_id, lease, running):
                advanced.add(lease[0])
        except _DATABASE_ERRORS as fault:
            if not connections[APP].is_usable():
                raise
            # A deadlock or lock timeout: this heartbeat is reclaimed when its lease expires, the others go on.
            log.exception("heartbeat_deferred", agent_id=str(lease[0]), epoch=lease[1])
            faults.append(fault)
    return advanced


def advance_heartbeat(*, agent_id: UUID, tenant_id: UUID, epoch: int) -> bool:
    """Run one agent's heartbeat under this lease. Returns False for a stale or doubled message."""
    return bool(advance_heartbeats(tenant_id=tenant_id, leases=[(agent_id, epoch)]))


def _advance_one(tenant_id: UUID, lease: LeaseToken, running: set[UUID]) -> bool:
    agent_id, epoch = lease
    try:
        return bool(_Leg(tenant_id, [lease], running).run())
    except StaleLease:
        log.warning("lease_lost", agent_id=str(agent_id), epoch=epoch)
        return False
    except _DATABASE_ERRORS:
        # A database error: the heartbeat is reclaimed when its lease expires.
        raise
    except Exception as error:
        # An error in a step would repeat at each retry, so the heartbeat ends as failed.
        log.exception("heartbeat_failed", agent_id=str(agent_id), epoch=epoch)
        with tenant_transaction(tenant_id):
            member = resolve_to_end(agent_id=agent_id, epoch=epoch)
            if member is not None:
                fail(member, error=error)
    return True


class _Leg:
    """One leg of a batch: load, run steps, answer needs, commit."""

    def __init__(self, tenant_id: UUID, leases: Sequence[LeaseToken], running: set[UUID]) -> None:
        self._tenant_id = tenant_id
        self._leases = leases
        #: Agents whose leases this worker has set to running.
        self.running = set(running)
        self._clock = SystemClock()
        self._fetcher = Fetcher(tenant_id, self._clock.now())
        self._spent_s = 0.0

    def run(self) -> set[UUID]:
        """Run the leg; return the agents whose heartbeats advanced."""
        members: list[LeasedHeartbeat] = []
        answers: Mapping[LeasedHeartbeat, Any] | None = None
        while True:
            started = time.perf_counter()
            with tenant_transaction(self._tenant_id, generic_plans=True), collected_signals() as signals:
                members = self._load() if answers is None else self._fence(members, answers)
                if not members:
                    return set()
                outside = self._answer_needs(members)
                if not outside:
                    self._commit(members, signals, started)
                elif answers is None:
                    # A leg that waits for vectors has changed nothing yet.
                    set_running([member.agent.id for member in members])
            agents = {member.agent.id for member in members}
            if not outside:
                return agents
            self.running |= agents
            self._spent_s += time.perf_counter() - started
            # Remote embedding, outside any transaction.
            answers = dict(zip(outside, self._fetcher.embed(outside), strict=True))

    def _load(self) -> list[LeasedHeartbeat]:
        """Load the heartbeats, and run each to its first need or the end of its leg."""
        members = load_batch(self._leases, clock=self._clock, running=self.running)
        if len(members) < len(self._leases):
            log.debug("messages_stale", stale=len(self._leases) - len(members))
        self._fetcher.members = members
        for member in members:
            member.pipeline = advance(
                member.agent.graph,
                member.checkpoint,
                HANDLERS,
                clock=self._clock,
                resume_with=member.stored.answer if member.stored else None,
                observer=member.steps.append,
            )
            # Starts the generator.
            member.resume(None)
        return members

    def _fence(
        self, members: Sequence[LeasedHeartbeat], answers: Mapping[LeasedHeartbeat, Any]
    ) -> list[LeasedHeartbeat]:
        """Lock the heartbeats again, drop those that another worker has reclaimed, and resume the others with their answers."""
        current = self._fetcher.members = fence(members)
        for member in members:
            if member not in current:
                log.warning("lease_lost", agent_id=str(member.agent.id), epoch=member.epoch)
            elif member in answers:
                member.resume(answers[member])
        return current

    def _answer_needs(self, members: Sequence[LeasedHeartbeat]) -> list[LeasedHeartbeat]:
        """Answer needs until all legs have ended; return the heartbeats that wait for remote vectors."""
        while waiting := [member for member in members if member.need is not None]:
            kind = next_kind(waiting)
            asking = [member for member in waiting if type(member.need) is kind]
            answers: Sequence[Any]
            if kind is not Embedding or not embeds_elsewhere(asking):
                answers = self._fetcher.answer(kind, asking)
            elif self._fetcher.has_locks:
                # Locks must not wait for the network: fall back to words; maintenance embeds new memories.
                log.warning("embedding_skipped", reason="a transaction is open", heartbeats=len(asking))
                answers = [{} for _ in asking]
            else:
                self._fetcher.read_meanings(asking)
                return asking
            for member, answer in zip(asking, answers, strict=True):
                member.resume(answer)
        return []

    def _commit(self, members: Sequence[LeasedHeartbeat], signals: list[Signal], started: float) -> None:
        """Commit; the time until progress is written is divided among the heartbeats."""

        def charge() -> None:
            elapsed_ms = (self._spent_s + time.perf_counter() - started) * 1000
            _batch_sizer.count(heartbeats=len(members), elapsed_ms=elapsed_ms)
            for member in members:
                member.elapsed_ms += elapsed_ms
                member.own_ms += elapsed_ms / len(members)

        commit(members, fetcher=self._fetcher, signals=signals, charge=charge)
