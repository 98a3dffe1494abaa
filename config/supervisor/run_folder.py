"""The folder of a running installation, and the processes that an earlier, killed run left."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from arbor.errors import AlreadyRunning
from config.supervisor import MARK


def write_private(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file for the owner only, whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
    unfinished.replace(path)


class RunFolder:
    """`run/` in the data folder. Nothing in it outlives the run, and nothing in it is missed after a crash."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "run"
        self.state_file = self.path / "up.json"
        #: Read by the settings of every process: where the servers are.
        self.servers_file = self.path / "servers.json"
        #: What the preparing step reports to whoever started it.
        self.prepared_file = self.path / "prepared.json"

    def make(self) -> None:
        """Make the folder, for the owner only."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def ready_file(self, name: str) -> Path:
        """Return the file that a part touches when it has become ready."""
        return self.path / f"{name}.ready"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder for one supervisor. Raises AlreadyRunning; the lock ends with the process."""
        self.make()
        with (self.path / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AlreadyRunning(f"Arbor already runs from {self.path.parent}") from None
            yield

    def supervisor(self) -> psutil.Process | None:
        """Return the supervisor that runs from this folder now, if one does."""
        state = self.state()
        try:
            process = psutil.Process(state["pid"])
            same = process.create_time() == state["created"] and process.status() != psutil.STATUS_ZOMBIE
        except (KeyError, psutil.NoSuchProcess):
            return None
        return process if same else None

    def note(self, **news: Any) -> None:
        """Write what others may know of this supervisor: how to find it, and its parts."""
        ourselves = psutil.Process()
        write_private(self.state_file, {"pid": ourselves.pid, "created": ourselves.create_time(), **news})

    def state(self) -> dict[str, Any]:
        """Return what the supervisor last wrote of itself, or nothing."""
        try:
            state: dict[str, Any] = json.loads(self.state_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return state

    def clear(self) -> None:
        """Remove what only a running installation has."""
        for file in (self.state_file, self.servers_file, *self.path.glob("*.ready")):
            file.unlink(missing_ok=True)


_PATIENCE_S = 3.0


def mark(data_dir: Path) -> dict[str, str]:
    """Return what to add to a part's environment so that it can be found again."""
    return {MARK: str(data_dir)}


def find_orphans(data_dir: Path) -> list[psutil.Process]:
    """Return the marked processes of this installation, except ourselves and our parents."""
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    wanted = str(data_dir)
    orphans = []
    for process in psutil.process_iter():
        if process.pid in ours:
            continue
        try:
            if process.environ().get(MARK) == wanted and process.status() != psutil.STATUS_ZOMBIE:
                orphans.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue  # gone meanwhile, or another user's and so not ours
    return orphans


def end_orphans(
    orphans: Iterable[psutil.Process],
    *,
    stop_signal: signal.Signals = signal.SIGTERM,
    within_s: float = _PATIENCE_S,
) -> list[psutil.Process]:
    """Ask processes to end, then kill those that have not; return those that are left."""
    left = list(orphans)
    for wish in (stop_signal, signal.SIGKILL):
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(wish)
        _gone, left = psutil.wait_procs(left, timeout=within_s)
        if not left:
            break
    return left
