"""Walk the heartbeats of a batch from where they are to their next suspensions or their ends.

Law 2: each transaction first locks the schedule rows under their epochs (the tokens of the leases). A worker whose lease
was lost finds no row, and writes nothing. Thinking is pure, and everything is written at the end of a leg: whatever goes
wrong before, the transaction is rolled back, and each heartbeat of the batch is walked by itself, where a fault ends that
heartbeat only.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, connections

from apps.heartbeats.services.committing import commit, fail
from apps.heartbeats.services.fetching import Fetcher, OpenNeed, Refusal, embeds_elsewhere, next_kind
from apps.heartbeats.services.leases import fence, resolve_to_end, run, run_queued
from apps.heartbeats.services.loading import load_batch
from apps.heartbeats.services.members import LeasedHeartbeat
from apps.queues import MAX_BATCH_SIZE
from apps.tenants.scope import APP, tenant_transaction
from arbor.clock import Clock, SystemClock
from arbor.errors import StaleLease
from arbor.heartbeat.beat import Beat
from arbor.heartbeat.needs import Embedding
from arbor.heartbeat.steps.registry import HANDLERS
from arbor.pipeline.engine import Progress, advance

log = structlog.get_logger(__name__)

type LeaseToken = tuple[UUID, int]

#: A leg is cut at about so many milliseconds: what it has locked, others wait for.
LEG_MS = 150.0
#: The weight of the latest leg in the pace of this process, if it was a full one.
_LATEST = 0.2


class Pace:
    """The pace of this process: the time that one heartbeat has lately taken in a leg, by which batches are cut."""

    def __init__(self) -> None:
        self._ms_each = 0.0

    @property
    def batch_size(self) -> int:
        """Return how many heartbeats go into a leg of LEG_MS."""
        return max(1, min(MAX_BATCH_SIZE, int(LEG_MS / max(self._ms_each, 1.0))))

    def count(self, *, heartbeats: int, elapsed_ms: float) -> None:
        """Take the time of a leg into account, by its heartbeats: in a small batch each takes longer."""
        weight = _LATEST * min(1.0, heartbeats / MAX_BATCH_SIZE)
        self._ms_each += weight * (elapsed_ms / heartbeats - self._ms_each)


_pace = Pace()


class BatchFailed(Exception):
    """A batch of several heartbeats could not be walked together; nothing of it was written."""


def advance_heartbeats(
    *, tenant_id: UUID, leases: Sequence[LeaseToken], clock: Clock | None = None, lost: bool = False
) -> set[UUID]:
    """Walk agents' heartbeats on under these leases (agent, epoch), until each waits for a model or has ended.

    Returns the agents whose heartbeats went on: a stale or doubled message is left out, and nothing is done for it.
    `lost`: the worker that had them before did not come back. Raises the last fault of the database when all are done.
    """
    clock = clock or SystemClock()
    advanced: set[UUID] = set()
    # Twice the same lease in one list would be walked twice in one transaction.
    left = list(dict.fromkeys(leases))
    running: set[UUID] = set()
    if lost:
        # Its worker may have died of it: set to run, the next such death counts, and in the end it is given up.
        with tenant_transaction(tenant_id):
            running = run_queued(left)
    faults: list[Exception] = []
    while left:
        size = _pace.batch_size
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
            return leg.walk()
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
            # A deadlock, a lock that did not come in time: this one's lease brings it back, the others go on.
            log.exception("heartbeat_deferred", agent_id=str(lease[0]), epoch=lease[1])
            faults.append(fault)
    return advanced


def advance_heartbeat(*, agent_id: UUID, tenant_id: UUID, epoch: int, clock: Clock | None = None) -> bool:
    """Walk one agent's heartbeat on under this lease. Returns False when the message was stale or doubled."""
    return bool(advance_heartbeats(tenant_id=tenant_id, leases=[(agent_id, epoch)], clock=clock))


def _advance_one(tenant_id: UUID, lease: LeaseToken, clock: Clock, running: set[UUID]) -> bool:
    agent_id, epoch = lease
    try:
        return bool(_Leg(tenant_id, [lease], clock, running).walk())
    except StaleLease:
        log.warning("lease_lost", agent_id=str(agent_id), epoch=epoch)
        return False
    except (OperationalError, InterfaceError):
        # The database's fault, not the heartbeat's: its lease brings it back.
        raise
    except Exception as error:
        # A fault in a step would come again at each retry: it is this heartbeat's failure, recorded as such.
        log.exception("heartbeat_fault", agent_id=str(agent_id), epoch=epoch)
        with tenant_transaction(tenant_id):
            member = resolve_to_end(agent_id=agent_id, epoch=epoch)
            if member is not None:
                fail(member, error)
    return True


@dataclass(slots=True, eq=False)
class _Thought:
    """A heartbeat that is thinking: its generator, and what it needs to go on."""

    member: LeasedHeartbeat
    walking: Generator[Any, Any, Progress[Beat]]
    need: Any = None

    def go_on(self, answer: Any) -> None:
        """Think on with an answer, to the next need or to the end of the leg."""
        try:
            if isinstance(answer, Refusal):
                self.need = self.walking.throw(answer.error)
            else:
                self.need = self.walking.send(answer)
        except StopIteration as stop:
            self.need, self.member.progress = None, stop.value


class _Leg:
    """One leg of several heartbeats: load, think, fetch, think on, commit."""

    def __init__(
        self, tenant_id: UUID, leases: Sequence[LeaseToken], clock: Clock, running: set[UUID]
    ) -> None:
        self._tenant_id = tenant_id
        self._leases = leases
        #: Agents whose leases this worker has set to run.
        self.running = set(running)
        self._clock = clock
        self._fetcher = Fetcher(tenant_id, clock.now())
        self._thoughts: list[_Thought] = []
        self._spent_s = 0.0

    def walk(self) -> set[UUID]:
        """Walk the leg; raises BatchFailed for a batch of several, and for a single heartbeat whatever went wrong."""
        try:
            return self._walk()
        except (OperationalError, InterfaceError) as error:
            if len(self._leases) == 1 or not connections[APP].is_usable():
                raise
            raise BatchFailed from error
        except Exception as error:
            # Whatever it is: nothing was written, and the heartbeats are walked one by one.
            if len(self._leases) == 1:
                raise
            raise BatchFailed from error

    def _walk(self) -> set[UUID]:
        started = time.perf_counter()
        with tenant_transaction(self._tenant_id, generic_plans=True):
            members = load_batch(self._leases, clock=self._clock, running=self.running)
            self._fetcher.members = members
            self._thoughts = [self._thinking(member) for member in members]
            if len(members) < len(self._leases):
                log.debug("messages_stale", stale=len(self._leases) - len(members))
            if not members:
                return set()
            for thought in self._thoughts:
                thought.go_on(None)
            outside = self._think()
            if not outside:
                self._commit(members, started)
            else:
                run([member.agent.id for member in members])
        self.running |= {member.agent.id for member in members}
        while outside:
            # Vectors that come over the network: outside of any transaction (law 3).
            self._spent_s += time.perf_counter() - started
            answers = self._fetcher.embed([self._asked(thought) for thought in outside])
            started = time.perf_counter()
            with tenant_transaction(self._tenant_id, generic_plans=True):
                members = self._keep(fence(members))
                if not members:
                    return set()
                for thought, answer in zip(outside, answers, strict=True):
                    if thought in self._thoughts:
                        thought.go_on(answer)
                outside = self._think()
                if not outside:
                    self._commit(members, started)
        return {member.agent.id for member in members}

    def _thinking(self, member: LeasedHeartbeat) -> _Thought:
        assert member.checkpoint is not None
        walking = advance(
            member.agent.graph,
            member.checkpoint,
            HANDLERS,
            clock=self._clock,
            resume_with=member.result,
            observer=member.steps.append,
        )
        return _Thought(member=member, walking=walking)

    def _keep(self, members: list[LeasedHeartbeat]) -> list[LeasedHeartbeat]:
        """Forget the heartbeats that another worker has taken over; return those that are left."""
        kept = {member.heartbeat_id for member in members}
        for thought in self._thoughts:
            if thought.member.heartbeat_id not in kept:
                log.warning("lease_lost", agent_id=str(thought.member.agent.id), epoch=thought.member.epoch)
        self._thoughts = [thought for thought in self._thoughts if thought.member.heartbeat_id in kept]
        return members

    def _think(self) -> list[_Thought]:
        """Answer needs until all heartbeats are through their legs; return those that wait for something outside."""
        while waiting := [thought for thought in self._thoughts if thought.need is not None]:
            kind = next_kind([self._asked(thought) for thought in waiting])
            some = [thought for thought in waiting if type(thought.need) is kind]
            asked = [self._asked(thought) for thought in some]
            answers: Sequence[Any]
            if kind is not Embedding or not embeds_elsewhere(asked):
                answers = self._fetcher.answer(kind, asked)
            elif self._fetcher.is_committed_to:
                # What is locked may not wait for a network: words alone decide, and maintenance embeds what is stored.
                log.warning("embedding_skipped", reason="a transaction is open", heartbeats=len(asked))
                answers = [{} for _ in asked]
            else:
                self._fetcher.read_meanings(asked)
                return some
            for thought, answer in zip(some, answers, strict=True):
                thought.go_on(answer)
        return []

    def _asked(self, thought: _Thought) -> OpenNeed:
        return OpenNeed(member=thought.member, need=thought.need)

    def _commit(self, members: Sequence[LeasedHeartbeat], started: float) -> None:
        """Write everything; the time up to the last statement is shared by the heartbeats."""

        def charge() -> None:
            elapsed_ms = (self._spent_s + time.perf_counter() - started) * 1000
            _pace.count(heartbeats=len(members), elapsed_ms=elapsed_ms)
            for member in members:
                member.elapsed_ms += elapsed_ms
                member.own_ms += elapsed_ms / len(members)

        commit(members, self._fetcher, charge=charge)
