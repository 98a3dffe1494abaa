"""How many heartbeats a machine completes, and what each costs.

Every agent is due again as soon as its heartbeat has ended, so the fleet never waits for work. Counted are the
heartbeats that ended within the measured time, by their own rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psutil
import psycopg

from bench import minds
from bench.database import Statement, is_control, reset_statements, statements, superuser
from bench.figures import quantile
from bench.installation import Installation, PartProcess
from bench.population import populate
from bench.progress import say
from bench.stub_process import RunningStub

#: The parts of `arbor up` that heartbeats need.
PARTS = ("dispatcher", "heartbeat", "model", "maintenance", "beat")
#: Agents are made due again this often: well under the dispatcher's period.
_AGAIN_EVERY_S = 0.1
_GIVE_UP_AFTER_S = 120.0
_CLAIM = "WITH tenants AS MATERIALIZED"

_DUE_NOW = (
    "UPDATE heartbeats_heartbeatschedule SET next_due_at = now()"
    " WHERE state = 'idle' AND next_due_at > now() + interval '1 second'"
)
_ENDED = "SELECT count(*) FROM heartbeats_heartbeat WHERE status IN ('done', 'failed')"
_COUNTS = """
SELECT count(*) FILTER (WHERE status = 'done'), count(*) FILTER (WHERE status = 'failed'),
    count(*) FILTER (WHERE status = 'skipped'), max(reason) FILTER (WHERE status = 'failed')
FROM heartbeats_heartbeat WHERE ended_at > %s AND ended_at <= %s
"""
#: How often the model was asked: a beat that recalls goes on with what it found.
_TURNS = """
SELECT greatest(1, turns), count(*) FROM heartbeats_heartbeat
WHERE status = 'done' AND ended_at > %s AND ended_at <= %s GROUP BY 1 ORDER BY 1
"""
#: A slot with two heartbeats, a heartbeat with two memories of itself, an agent that counted one twice.
_DOUBLED = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM heartbeats_heartbeat WHERE status = 'done' GROUP BY agent_id, slot_at
            HAVING count(*) > 1) slots)
    + (SELECT count(*) FROM (SELECT 1 FROM memories_memory WHERE session = 'heartbeats' GROUP BY source
            HAVING count(*) > 1) memories)
    + (SELECT count(*) FROM agents_agentstate s WHERE s.beats <> (SELECT count(*) FROM heartbeats_heartbeat h
            WHERE h.agent_id = s.agent_id AND h.status = 'done'))
"""


def measure(
    place: Installation,
    *,
    agents: int,
    tenants: int,
    seconds: float,
    beats: int | None,
    memories: int,
    latency_ms: float,
    stub: RunningStub,
) -> dict[str, Any]:
    """Return beats per second and what a beat costs, in the steady state."""
    population = populate(agents=agents, tenants=tenants)
    if memories:
        with superuser(place) as database:
            minds.load(database, minds.conversations(memories), population)
    fleet = [place.part(name) for name in PARTS]
    say("starting the workers")
    for part in fleet:
        part.start()
    for part in fleet:
        part.wait_ready()
    with superuser(place) as database:
        fleet_at_work = _Fleet(database, fleet, place, stub)
        say("warming up")
        fleet_at_work.run_until(ended=agents)
        window = fleet_at_work.measure(agents=agents, seconds=seconds, beats=beats)
        fleet_at_work.drain()
        doubled = _one(database, _DOUBLED)
    setting = {"agents": agents, "tenants": tenants, "memories": memories, "latency_ms": latency_ms}
    return {**setting, **window, "doubled": doubled}


class _Fleet:
    """The running workers, and the database that knows what they did."""

    def __init__(
        self,
        database: psycopg.Connection[Any],
        parts: Sequence[PartProcess],
        place: Installation,
        stub: RunningStub,
    ) -> None:
        self._database = database
        self._parts = parts
        self._servers = {"postgres": place.postgres.pid, "valkey": place.valkey.pid, "stub": stub.pid}

    def run_until(self, *, ended: int) -> None:
        """Keep all agents due until so many heartbeats have ended."""
        last, moved = -1, time.monotonic()
        while True:
            self._database.execute(_DUE_NOW)
            now_ended = _one(self._database, _ENDED)
            if now_ended >= ended:
                return
            if now_ended != last:
                last, moved = now_ended, time.monotonic()
            if time.monotonic() - moved > _GIVE_UP_AFTER_S:
                logs = "\n".join(part.log_end(10) for part in self._parts)
                raise RuntimeError(f"no heartbeat has ended for {_GIVE_UP_AFTER_S:.0f} s:\n{logs}")
            time.sleep(_AGAIN_EVERY_S)

    def measure(self, *, agents: int, seconds: float, beats: int | None) -> dict[str, Any]:
        """Measure so many heartbeats, or whole rounds of all agents until so many seconds have gone by.

        Queues are first in, first out, so agents that were due together go through their steps together, and end
        together: over a part of a round, too many or too few of them would be seen to end.
        """
        say(f"measuring {f'{beats} heartbeats' if beats else f'{seconds:.0f} s'}")
        reset_statements(self._database)
        cpu_before, since, started = self._cpu_s(), _one(self._database, "SELECT now()"), time.monotonic()
        goal = _one(self._database, _ENDED) + (beats or agents)
        self.run_until(ended=goal)
        while beats is None and time.monotonic() < started + seconds:
            goal += agents
            self.run_until(ended=goal)
        until, took_s = _one(self._database, "SELECT now()"), time.monotonic() - started
        cpu_after, sent = self._cpu_s(), statements(self._database)
        row = self._database.execute(_COUNTS, [since, until]).fetchone()
        assert row is not None
        completed, failed, skipped, reason = row
        if reason:
            say(f"a heartbeat failed: {reason}")
        own_ms = [
            ms
            for (ms,) in self._database.execute(
                "SELECT own_ms FROM heartbeats_heartbeat WHERE status = 'done' AND ended_at > %s AND ended_at <= %s",
                [since, until],
            )
        ]
        turns = dict(self._database.execute(_TURNS, [since, until]).fetchall())
        done = max(completed, 1)
        _say_costliest(sent, done)
        return {
            "seconds": round(took_s, 1),
            "beats_per_s": round(completed / took_s, 1),
            "own_ms_p50": quantile(own_ms, 0.5),
            "own_ms_p95": quantile(own_ms, 0.95),
            "beats_by_turns": {str(number): count for number, count in turns.items()},
            "calls_per_beat": round(sum(number * count for number, count in turns.items()) / done, 2),
            "queries_per_beat": round(sum(each.calls for each in sent if not is_control(each)) / done, 1),
            "transactions_per_beat": round(_calls(sent, "COMMIT") / done, 1),
            "claim_ms_per_agent": _claim_ms(sent),
            "cpu_ms_per_beat": {
                name: round((cpu_after[name] - cpu_before[name]) * 1000 / done, 2) for name in cpu_after
            },
            "completed": completed,
            "failed": failed,
            "skipped": skipped,
        }

    def drain(self) -> None:
        """Wait until no heartbeat is under way: only then can all be counted."""
        deadline = time.monotonic() + _GIVE_UP_AFTER_S
        while _one(self._database, "SELECT count(*) FROM heartbeats_heartbeatschedule WHERE state <> 'idle'"):
            if time.monotonic() > deadline:
                raise RuntimeError("heartbeats are still under way")
            time.sleep(_AGAIN_EVERY_S)

    def _cpu_s(self) -> dict[str, float]:
        """Return the processor time used so far, by part."""
        used = {part.name: _cpu_of(part.pid) for part in self._parts}
        return used | {name: _cpu_of(pid) for name, pid in self._servers.items() if pid is not None}


def _cpu_of(pid: int) -> float:
    main = psutil.Process(pid)
    return sum(
        sum(times[:2]) for times in (each.cpu_times() for each in (main, *main.children(recursive=True)))
    )


def _one(database: psycopg.Connection[Any], statement: str) -> Any:
    row = database.execute(statement).fetchone()
    assert row is not None
    return row[0]


def _calls(sent: Sequence[Statement], start: str) -> int:
    return sum(each.calls for each in sent if each.text.startswith(start))


def _claim_ms(sent: Sequence[Statement]) -> float:
    claims = [each for each in sent if each.text.startswith(_CLAIM)]
    rows = sum(each.rows for each in claims)
    return round(sum(each.total_ms for each in claims) / rows, 3) if rows else 0.0


def _say_costliest(sent: Sequence[Statement], beats: int) -> None:
    for each in sent[:45]:
        say(f"{each.total_ms / beats:7.3f} ms {each.calls / beats:6.2f}×  {each.text[:110]}")
