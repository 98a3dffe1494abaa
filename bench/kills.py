"""Lost and doubled work of a fleet whose processes are killed at random moments.

Processes of a small, busy fleet get SIGKILL one after another and are restarted. Sometimes the database server crashes, or
the broker loses its data. At the end `bench.audit` checks the rows.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import datetime
from typing import Any
from uuid import UUID

import psutil
import psycopg
import redis

from bench.audit import Fault, audit
from bench.fleet import DUE_NOW, POLL_INTERVAL_S, UNDER_WAY, start_parts
from bench.kill_plan import VICTIMS, Victim
from bench.support.database import fetch_value
from bench.support.figures import print_progress
from bench.support.installation import Installation, PartProcess
from bench.support.population import populate

PARTS = ("dispatcher", "heartbeat", "model", "scheduler")
#: Templates of agents that may write to their users.
TEMPLATES = ("Researcher", "Scout", "Monitor")
#: Kills without progress, after which killing pauses until a heartbeat ends.
_WITHOUT_PROGRESS = 5
_STUCK_AFTER_S = 120.0
_REPORT_EVERY_S = 15.0

_ENDED = "SELECT count(*) FROM heartbeats_heartbeat WHERE ended_at IS NOT NULL"
_COUNTS = """
SELECT count(*) FILTER (WHERE status = 'done'), count(*) FILTER (WHERE status = 'skipped'),
    count(*) FILTER (WHERE status = 'failed'), max(reason) FILTER (WHERE status = 'failed')
FROM heartbeats_heartbeat
"""


def measure(
    installation: Installation,
    *,
    kills: int,
    agents: int,
    tenants: int,
    gap_s: float,
    crash_every: int,
    flush_every: int,
    seed: int,
) -> dict[str, Any]:
    """Return lost and doubled work after a number of kills, and the kills by process."""
    populate(agents=agents, tenants=tenants, templates=TEMPLATES)
    fleet = _RestartedFleet(installation, {part.name: part for part in start_parts(installation, PARTS)})
    started = time.monotonic()
    killer = _Killer(fleet, random.Random(seed), gap_s=gap_s)
    killer.run(kills=kills, crash_every=crash_every, flush_every=flush_every)
    took_s = time.monotonic() - started
    print_progress("waiting until all heartbeats have ended")
    fleet.drain()
    with fleet.connect() as database:
        faults = audit(database, fleet.due)
        row = database.execute(_COUNTS).fetchone()
    assert row is not None
    done, skipped, failed, reason = row
    if reason:
        print_progress(f"a heartbeat failed: {reason}")
    lost, doubled = sum(faults[Fault.LOST].values()), sum(faults[Fault.DOUBLED].values())
    for fault, checks in faults.items():
        for name, count in checks.items():
            if count:
                print_progress(f"{fault}: {name}: {count}")
    return {
        "kills": killer.killed.total(),
        "seed": seed,
        "agents": agents,
        "tenants": tenants,
        "seconds": round(took_s, 1),
        "kills_by_process": dict(killer.killed.most_common()),
        "database_crashes": killer.crashes,
        "broker_flushes": killer.flushes,
        "due": len(fleet.due),
        "completed": done,
        "skipped": skipped,
        "failed": failed,
        "lost": lost,
        "doubled": doubled,
        "checks": {fault.value: checks for fault, checks in faults.items()},
        "exactly_once": lost == 0 and doubled == 0,
    }


class _RestartedFleet:
    """A fleet whose agents are made due as soon as they are idle, and whose processes are restarted when they end."""

    def __init__(self, installation: Installation, parts: dict[str, PartProcess]) -> None:
        self.installation = installation
        self.parts = parts
        #: Every slot at which an agent was made due.
        self.due: list[tuple[UUID, datetime]] = []

    def connect(self) -> psycopg.Connection[Any]:
        """Open a new connection, because a crash of the server breaks old ones."""
        return psycopg.connect(self.installation.postgres.superuser_url, autocommit=True)

    def restart_ended(self) -> None:
        """Start the parts again whose main process has ended."""
        for part in self.parts.values():
            if not part.runs:
                part.start()

    def make_due(self, database: psycopg.Connection[Any]) -> None:
        """Make every idle agent due, and record the slots."""
        self.due += database.execute(DUE_NOW).fetchall()

    def drain(self) -> None:
        """Wait until no heartbeat is under way, or none has ended for long: the audit then reports the open ones."""
        last, progressed_at = -1, time.monotonic()
        with self.connect() as database:
            while fetch_value(database, UNDER_WAY) and time.monotonic() < progressed_at + _STUCK_AFTER_S:
                self.restart_ended()
                ended = fetch_value(database, _ENDED)
                if ended != last:
                    last, progressed_at = ended, time.monotonic()
                time.sleep(POLL_INTERVAL_S)

    def log_ends(self) -> str:
        """Return the last lines of each part's log."""
        return "\n".join(f"--- {part.name}\n{part.log_end(15)}" for part in self.parts.values())


class _Killer:
    """Kills one process after the other, at random moments."""

    def __init__(self, fleet: _RestartedFleet, dice: random.Random, *, gap_s: float) -> None:
        self._fleet = fleet
        self._dice = dice
        self._gap_s = gap_s
        self.killed: Counter[str] = Counter()
        self.crashes = 0
        self.flushes = 0
        #: The last progress: the number of ended heartbeats, the number of kills, and the time.
        self._progress = (-1, 0, time.monotonic())

    def run(self, *, kills: int, crash_every: int, flush_every: int) -> None:
        """Kill a number of processes; crash the database and flush the broker after the given numbers of kills."""
        print_progress(f"killing {kills} processes")
        database, reported_at = self._fleet.connect(), time.monotonic()
        due_at = time.monotonic()
        while (killed := self.killed.total()) < kills:
            self._fleet.restart_ended()
            self._fleet.make_due(database)
            now = time.monotonic()
            if self._may_kill(database) and now >= due_at and self._kill():
                due_at = now + self._dice.expovariate(1 / self._gap_s)
                if flush_every and (killed + 1) % flush_every == 0:
                    self._flush()
                if crash_every and (killed + 1) % crash_every == 0:
                    database.close()
                    self._crash()
                    database = self._fleet.connect()
            if now > reported_at + _REPORT_EVERY_S:
                reported_at = now
                print_progress(
                    f"{self.killed.total()} kills, {fetch_value(database, _ENDED)} heartbeats ended"
                )
            # Random pauses, so that kills fall at any moment of a heartbeat.
            time.sleep(self._dice.uniform(0, 2 * POLL_INTERVAL_S))
        database.close()

    def _may_kill(self, database: psycopg.Connection[Any]) -> bool:
        """Return whether the fleet has made progress lately. Raises RuntimeError when it is stuck."""
        ended, killed, now = int(fetch_value(database, _ENDED)), self.killed.total(), time.monotonic()
        if ended != self._progress[0]:
            self._progress = (ended, killed, now)
        elif now > self._progress[2] + _STUCK_AFTER_S:
            raise RuntimeError(
                f"no heartbeat has ended for {_STUCK_AFTER_S:.0f} s:\n{self._fleet.log_ends()}"
            )
        return killed < self._progress[1] + _WITHOUT_PROGRESS

    def _kill(self) -> bool:
        """Kill a process of a randomly drawn kind; return whether there was one."""
        victim = self._dice.choices(VICTIMS, [victim.weight for victim in VICTIMS])[0]
        processes = self._processes_of(victim)
        if not processes:
            return False
        process = self._dice.choice(processes)
        try:
            process.kill()
        except psutil.NoSuchProcess:
            return False
        self.killed[victim.name] += 1
        return True

    def _processes_of(self, victim: Victim) -> list[psutil.Process]:
        part = self._fleet.parts[victim.part]
        # Parts that are still starting are not killed, or they would never do any work.
        processes = part.processes() if part.runs and part.ready else []
        return processes[1:] if victim.child else processes[:1]

    def _crash(self) -> None:
        self._fleet.installation.crash_postgres()
        self.crashes += 1

    def _flush(self) -> None:
        with redis.Redis.from_url(self._fleet.installation.valkey.url) as broker:
            broker.flushall()
        self.flushes += 1
