"""A real fleet with injected failures, and queries of its rows."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
import redis

from bench.support.database import unpack_actions
from bench.support.installation import Installation, PartProcess
from bench.support.stub_process import stub_model
from tests.acceptance.fleet.faulty_worker import FOLDER
from tests.support.cluster import PASSWORD, copy_cluster

ROOT = Path(__file__).parents[3]
#: Short leases: lost work is reclaimed within seconds. The stub always answers before the model's deadline.
SETTINGS = {
    "ARBOR_QUEUE_LEASE_S": "1.5",
    "ARBOR_RUN_LEASE_S": "2",
    "ARBOR_MODEL_DEADLINE_S": "3",
    "ARBOR_DISPATCH_PERIOD_S": "0.2",
    # A killed worker loses the calls of all its threads, and the loss counts for each of them.
    "ARBOR_MAX_ATTEMPTS": "100",
    "ARBOR_DEFAULT_MODEL": "openai/stub",
    # The limit of a hosted provider: that of a server on this machine would be lower.
    "ARBOR_PROVIDER_CALLS": "openai=1000",
}
PARTS = ("dispatcher", "heartbeat", "model", "scheduler")
_POLL_S = 0.05


@dataclass(frozen=True, kw_only=True)
class Agent:
    """An agent of the fleet; at `point` one of its heartbeats loses its worker, at none if empty."""

    id: str
    name: str
    point: str
    tenant: str
    model: str


class RealFleet:
    """Servers, workers and agents, thrown away afterwards."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.agents: list[Agent] = []
        self.parts: dict[str, PartProcess] = {}
        #: The heartbeats that had ended when the last ones were made due.
        self._ended_before = 0
        self._database: psycopg.Connection[Any] | None = None
        #: Heartbeats that have fallen due, by the agent's name.
        self.due: Counter[str] = Counter()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stub = stack.enter_context(stub_model())
            self._installation = Installation(
                settings={**SETTINGS, "OPENAI_BASE_URL": stub.base_url},
                command=(sys.executable, "-m", "tests.acceptance.fleet.faulty_worker"),
            )
            self._installation.set(FOLDER, str(self._installation.folder))
            self._installation.postgres.password = PASSWORD
            copy_cluster(self._installation.postgres.data_dir)
            stack.enter_context(self._installation)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._disconnect()
        self._stack.close()

    # --- Setup ------------------------------------------------------------------------------------------

    def populate(self, points: Sequence[tuple[str, str]]) -> None:
        """Create one agent for each point and model; half of them belong to a second tenant."""
        names = [f"A{number:02} {point}"[:60] for number, (point, _) in enumerate(points)]
        requested = [
            {"name": name, "tenant": "acme" if number % 2 else "globex", "model": model}
            for number, (name, (_, model)) in enumerate(zip(names, points, strict=True))
        ]
        done = subprocess.run(
            [sys.executable, "-m", "tests.acceptance.fleet.populate"],
            input=json.dumps(requested),
            env=self._installation.full_env,
            cwd=ROOT,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        agents = json.loads(done.stdout)
        self.agents = [
            Agent(
                id=agent["agent_id"],
                name=agent["name"],
                point=point,
                tenant=entry["tenant"],
                model=entry["model"],
            )
            for agent, entry, (point, _) in zip(agents, requested, points, strict=True)
        ]
        self._write_plan()

    def plan_kills(self, points: Mapping[str, str], *, in_batch: bool = False) -> None:
        """Plan the points at which the next heartbeats of these agents, by name, lose their workers.

        `in_batch`: only while the worker runs the work of several agents.
        """
        self.agents = [replace(agent, point=points.get(agent.name, "")) for agent in self.agents]
        for agent in self.agents:
            (self._installation.folder / agent.id).unlink(missing_ok=True)
        self._write_plan(in_batch=in_batch)

    def _write_plan(self, *, in_batch: bool = False) -> None:
        plan = {
            agent.id: {"name": agent.name, "point": agent.point, "in_batch": in_batch}
            for agent in self.agents
        }
        written = self._installation.folder / "plan.new"
        written.write_text(json.dumps(plan))
        # Replaced atomically: workers read the file at the same time.
        written.replace(self._installation.folder / "plan.json")

    def start(self) -> None:
        """Start the workers and the scheduler."""
        self.parts = {name: self._installation.part(name) for name in PARTS}
        # A second model worker goes on when the first one is killed with all its threads.
        self.parts["model-2"] = self._installation.part("model", number=2)
        for part in self.parts.values():
            part.start()
        for part in self.parts.values():
            part.wait_ready()

    def start_another(self, name: str) -> None:
        """Start a second part of that kind, called `NAME-2`."""
        part = self._installation.part(name, number=2)
        part.start()
        part.wait_ready()
        self.parts[f"{name}-2"] = part

    def retire(self, name: str) -> None:
        """End a part for good."""
        self.parts.pop(name).stop()

    # --- Rounds of heartbeats, and their rows -----------------------------------------------------------

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Query the database as its superuser."""
        return self._connection().execute(statement, values).fetchall()

    def unpack_actions(self) -> None:
        """Unpack the actions of all heartbeats into the table `unpacked_action`, for `rows`."""
        unpack_actions(self._connection())

    def _connection(self) -> psycopg.Connection[Any]:
        """Return the connection that all queries share: a new one for each poll would cost more than the poll."""
        if self._database is None:
            self._database = psycopg.connect(self._installation.postgres.superuser_url, autocommit=True)
        return self._database

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def make_due(self, agents: Sequence[Agent] | None = None) -> None:
        """Make these agents, or all, due now."""
        chosen = self.agents if agents is None else agents
        self.due.update(agent.name for agent in chosen)
        self._ended_before = self._ended()
        changed = self._connection().execute(
            # By an operator's request: the heartbeat of an idle agent would be skipped otherwise.
            "UPDATE heartbeats_heartbeatschedule SET next_due_at = now(), next_trigger = 'operator'"
            " WHERE state = 'idle' AND agent_id = ANY(%s::uuid[])",
            [[agent.id for agent in chosen]],
        )
        assert changed.rowcount == len(chosen)

    def wait_for(self, condition: Callable[[], bool], *, what: str, within_s: float = 60) -> None:
        """Wait for a condition, and meanwhile restart parts that ended, as `arbor up` does."""
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not within {within_s} s\n{self.describe()}"
            for part in self.parts.values():
                if not part.runs:
                    part.start()
            time.sleep(_POLL_S)

    def wait_until_some_are_done(self) -> None:
        """Wait until the first heartbeats of the round have ended."""
        self.wait_for(lambda: self._ended() > self._ended_before, what="a heartbeat ends")

    def wait_until_all_are_done(self) -> None:
        """Wait until every agent has had its heartbeat and waits for the next."""
        expected = self.due.total()
        self.wait_for(
            lambda: self._ended() >= expected and self._all_idle(), what="all heartbeats end", within_s=120
        )

    def agents_not_killed(self) -> list[Agent]:
        """Return the agents whose heartbeat has not yet lost its worker at its point."""
        return [
            agent
            for agent in self.agents
            if agent.point and not (self._installation.folder / agent.id).exists()
        ]

    def _ended(self) -> int:
        ((count,),) = self.rows(
            "SELECT count(*) FROM heartbeats_heartbeat WHERE status IN ('done', 'failed')"
        )
        return int(count)

    def _all_idle(self) -> bool:
        return not self.rows("SELECT FROM heartbeats_heartbeatschedule WHERE state <> 'idle'")

    def describe(self) -> str:
        """Return a description of the fleet for the message of a failed test."""
        states = self.rows(
            "SELECT state, count(*), min(lease_until), now() FROM heartbeats_heartbeatschedule GROUP BY 1"
        )
        logs = "\n".join(f"--- {name}\n{part.log_end(15)}" for name, part in self.parts.items())
        return f"{states}\n{logs}"

    # --- Failures ---------------------------------------------------------------------------------------

    def flush_broker(self) -> None:
        """Flush the broker."""
        with redis.Redis.from_url(self._installation.valkey.url) as broker:
            broker.flushall()

    def restart_broker(self) -> None:
        """Stop the broker, and start an empty one at the same address."""
        self._installation.valkey.stop()
        self._installation.valkey.start()

    def crash_database(self) -> None:
        """Kill the database server and restart it on its files."""
        self._disconnect()
        self._installation.crash_postgres()
