"""A running fleet under measurement: its processes, and the rows in which they record their work."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psutil
import psycopg

from bench.support.database import fetch_value
from bench.support.figures import print_progress
from bench.support.installation import Installation, PartProcess
from bench.support.stub_process import RunningStub

#: Seconds between two polls of the database, and between updates that make agents due: below the dispatcher's period.
POLL_INTERVAL_S = 0.1
_GIVE_UP_AFTER_S = 120.0
#: The fleet is at rest when it uses less than this share of one core for a second.
_REST_SHARE = 0.15

#: Makes the idle agents due, and returns their slots.
DUE_NOW = (
    "UPDATE heartbeats_heartbeatschedule SET next_due_at = now()"
    " WHERE state = 'idle' AND next_due_at > now() + interval '1 second' RETURNING agent_id, next_due_at"
)
_ENDED = "SELECT count(*) FROM heartbeats_heartbeat WHERE status IN ('done', 'failed')"
#: Counts the agents that are due, or in a heartbeat.
UNDER_WAY = "SELECT count(*) FROM heartbeats_heartbeatschedule WHERE state <> 'idle' OR next_due_at <= now()"
#: Counts slots with two heartbeats, heartbeats with two memories, and agents with a wrong count of heartbeats.
DOUBLED = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM heartbeats_heartbeat WHERE status = 'done' GROUP BY agent_id, slot_at
            HAVING count(*) > 1) slots)
    + (SELECT count(*) FROM (SELECT 1 FROM memories_memory WHERE session = 'heartbeats' GROUP BY source
            HAVING count(*) > 1) memories)
    + (SELECT count(*) FROM agents_agentstate s WHERE s.heartbeats <> (SELECT count(*) FROM heartbeats_heartbeat h
            WHERE h.agent_id = s.agent_id AND h.status = 'done'))
"""


def start_parts(installation: Installation, names: Sequence[str]) -> list[PartProcess]:
    """Start these parts of `arbor up`, and return them once all are ready."""
    print_progress(f"starting {', '.join(names)}")
    parts = [installation.part(name) for name in names]
    for part in parts:
        part.start()
    for part in parts:
        part.wait_ready()
    return parts


class Fleet:
    """The running workers, with the database that records their work."""

    def __init__(
        self,
        *,
        database: psycopg.Connection[Any],
        parts: Sequence[PartProcess],
        installation: Installation,
        stub: RunningStub,
    ) -> None:
        self.database = database
        self._parts = parts
        self._servers = {
            "postgres": installation.postgres.pid,
            "valkey": installation.valkey.pid,
            "stub": stub.pid,
        }

    def ended(self) -> int:
        """Return the number of heartbeats that are done or failed."""
        return int(fetch_value(self.database, _ENDED))

    def run_until(self, *, ended: int) -> None:
        """Make all agents due repeatedly until `ended` heartbeats have ended."""
        last, progressed_at = -1, time.monotonic()
        while True:
            self.database.execute(DUE_NOW)
            now_ended = self.ended()
            if now_ended >= ended:
                return
            if now_ended != last:
                last, progressed_at = now_ended, time.monotonic()
            if time.monotonic() - progressed_at > _GIVE_UP_AFTER_S:
                raise RuntimeError(f"no heartbeat has ended for {_GIVE_UP_AFTER_S:.0f} s:\n{self.log_ends()}")
            time.sleep(POLL_INTERVAL_S)

    def drain(self) -> None:
        """Wait until no heartbeat is under way, so that all of them are counted."""
        deadline = time.monotonic() + _GIVE_UP_AFTER_S
        while fetch_value(self.database, UNDER_WAY):
            if time.monotonic() > deadline:
                raise RuntimeError(f"heartbeats are still under way:\n{self.log_ends()}")
            time.sleep(POLL_INTERVAL_S)

    def wait_for_rest(self) -> None:
        """Wait until maintenance and the servers have finished the work that the load has caused."""
        deadline = time.monotonic() + _GIVE_UP_AFTER_S
        used_s = sum(self.cpu_s().values())
        while time.monotonic() < deadline:
            time.sleep(1)
            before_s, used_s = used_s, sum(self.cpu_s().values())
            if used_s - before_s < _REST_SHARE:
                return
        print_progress(f"the fleet has not come to rest for {_GIVE_UP_AFTER_S:.0f} s")

    def log_ends(self) -> str:
        """Return the last lines of each part's log."""
        return "\n".join(f"--- {part.name}\n{part.log_end(10)}" for part in self._parts)

    def cpu_s(self) -> dict[str, float]:
        """Return the processor time used so far, by part and server."""
        used = {part.name: _cpu_of(part.pid) for part in self._parts}
        return used | {name: _cpu_of(pid) for name, pid in self._servers.items() if pid is not None}


def _cpu_of(pid: int) -> float:
    main = psutil.Process(pid)
    return sum(_own_cpu_s(process) for process in (main, *main.children(recursive=True)))


def _own_cpu_s(process: psutil.Process) -> float:
    try:
        return sum(process.cpu_times()[:2])
    except psutil.NoSuchProcess:  # a worker of autovacuum, which has just ended
        return 0.0
