"""An installation by `arbor up`, in a data folder of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg

from config.environment import with_user
from config.secrets import SecretFolder, SecretName
from config.servers.process import processes_in
from config.supervisor.run_folder import find_orphans
from tests.support.cluster import PASSWORD, copy_cluster

ROOT = Path(__file__).parents[2]
#: Starts and commands may take long on a busy machine, but must not hang.
STARTED_WITHIN_S = 180
ANSWERED_WITHIN_S = 120


class Installation:
    """One `arbor up` in a data folder of its own, and its output."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.env = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("ARBOR_", "DATABASE"))
            },
            "ARBOR_DATA_DIR": str(folder),
            # The developer's `.env` file may name a model or a server.
            "ARBOR_ENV_FILE": "",
            **settings,
        }
        self.lines: list[str] = []
        self.process: subprocess.Popen[str] | None = None

    def use_migrated_cluster(self) -> None:
        """Create the database as a copy of the migrated cluster, without rows; `test_up.py` starts without a database instead."""
        copy_cluster(self.folder / "postgres")
        secrets = SecretFolder(path=self.folder / "secrets")
        secrets.path.mkdir(mode=0o700)
        secrets.file(SecretName.POSTGRES_PASSWORD).touch(mode=0o600)
        secrets.file(SecretName.POSTGRES_PASSWORD).write_text(PASSWORD)

    def start(self, *arguments: str, within_s: float = STARTED_WITHIN_S) -> None:
        """Start the installation and wait for the panel."""
        self.lines = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "config.cli", "up", *arguments],
            cwd=ROOT,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, args=[self.process], daemon=True).start()
        self.wait_for(lambda: "Arbor runs" in self.output, within_s=within_s)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.lines.append(line)
        process.stdout.close()

    @property
    def output(self) -> str:
        return "".join(self.lines)

    @property
    def ready_in_s(self) -> float:
        match = re.search(r"ready in ([\d.]+) s", self.output)
        assert match, self.output
        return float(match[1])

    def arbor(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another command on this installation."""
        command = [sys.executable, "-m", "config.cli", *arguments]
        return subprocess.run(
            command,
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWERED_WITHIN_S,
        )

    def status(self) -> dict[str, Any]:
        result = self.arbor("status", "--json")
        assert result.returncode == 0, result.stderr
        status: dict[str, Any] = json.loads(result.stdout)
        return status

    def part(self, name: str) -> dict[str, Any]:
        state = json.loads((self.folder / "run" / "up.json").read_text())
        return next(part for part in state["parts"] if part["name"] == name)

    def stop(self, number: signal.Signals = signal.SIGINT) -> float:
        """Stop the installation by a signal; return the duration in seconds."""
        assert self.process is not None
        started = time.monotonic()
        self.process.send_signal(number)
        assert self.process.wait(30) == 0, self.output
        return time.monotonic() - started

    def completed_heartbeats(self) -> int:
        """Count the completed heartbeats; `arbor status` counts them too, but takes a second of a processor."""
        with self._owner_session() as session:
            return _count_completed(session)

    def preserved_heartbeats(self) -> int:
        """Count the heartbeats that completed before the database was started."""
        with self._owner_session() as session:
            return _count_completed(session, "ended_at < pg_postmaster_start_time()")

    def wait_for_heartbeats(self, completed: int, *, within_s: float) -> None:
        """Wait until this number of heartbeats has completed, over one connection."""
        with self._owner_session() as session:
            self.wait_for(lambda: _count_completed(session) >= completed, within_s=within_s)

    def _owner_session(self) -> psycopg.Connection[Any]:
        """Connect as the tables' owner."""
        servers = json.loads((self.folder / "run" / "servers.json").read_text())
        password = (self.folder / "secrets" / "postgres_owner_password").read_text().strip()
        return psycopg.connect(with_user(servers["database_url"], "arbor_owner", password), autocommit=True)

    def wait_for(self, condition: Callable[[], bool], *, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while not condition():
            assert self.process is not None
            assert self.process.poll() is None, f"it ended:\n{self.output}"
            assert time.monotonic() < deadline, f"not within {within_s} s:\n{self.output}"
            time.sleep(0.1)

    def processes(self) -> list[psutil.Process]:
        """Return the running processes of the installation."""
        servers = processes_in(self.folder / "postgres", "postgres") + processes_in(
            self.folder / "valkey", "valkey-server"
        )
        return find_orphans(self.folder) + servers


def _count_completed(session: psycopg.Connection[Any], condition: LiteralString = "true") -> int:
    row = session.execute(
        f"SELECT count(*) FROM heartbeats_heartbeat WHERE status = 'done' AND {condition}"
    ).fetchone()
    assert row is not None
    return int(row[0])
