"""The folder of a running installation, and the orphans of an earlier, killed run."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from arbor.errors import AlreadyRunning, ConfigurationInvalid
from config.supervisor import MARK

#: The start of a process among the fields of /proc/PID/stat after its name, in ticks since the boot.
_STARTED_AT = 19


def write_private(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file for the owner only, atomically."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
    unfinished.replace(path)


class RunFolder:
    """The folder `run/` in the data folder, whose files are needed only while the installation runs."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "run"
        self.state_file = self.path / "up.json"
        #: The addresses of the servers, read by the settings of every process.
        self.servers_file = self.path / "servers.json"
        #: The report of `arbor prepare` for the supervisor; absent until the database is prepared.
        self.prepared_file = self.path / "prepared.json"

    def make(self) -> None:
        """Create the folder, for the owner only, and the data folder. Raises ConfigurationInvalid where that is not possible."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigurationInvalid(
                f"the data folder {self.path.parent} cannot be made: {error.strerror}; name another one in ARBOR_DATA_DIR"
            ) from error

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
            # Older versions, which may still run, wrote the time by the system's clock.
            starts = (_started_at(process), process.create_time())
            is_same = state["created"] in starts and process.status() != psutil.STATUS_ZOMBIE
        except (KeyError, psutil.NoSuchProcess):
            return None
        return process if is_same else None

    def is_preparing(self) -> bool:
        """Return whether a supervisor runs from this folder whose step `prepare` has not ended."""
        return not self.prepared_file.exists() and self.supervisor() is not None

    def write_state(self, **fields: Any) -> None:
        """Write the state of this supervisor: its process, and further fields such as its parts."""
        own_process = psutil.Process()
        state = {"pid": own_process.pid, "created": _started_at(own_process), **fields}
        write_private(self.state_file, state)

    def state(self) -> dict[str, Any]:
        """Return the state that the supervisor last wrote; empty without one."""
        try:
            state: dict[str, Any] = json.loads(self.state_file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        return state

    def clear(self) -> None:
        """Remove the files that only a running installation has."""
        for file in (self.state_file, self.servers_file, *self.path.glob("*.ready")):
            file.unlink(missing_ok=True)


def _started_at(process: psutil.Process) -> float:
    """Return when a process has started: on Linux in seconds since the boot, which the system's clock does not change."""
    if sys.platform != "linux":
        return process.create_time()
    try:
        line = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise psutil.NoSuchProcess(process.pid) from None
    # The name of the program, in parentheses, may contain blanks.
    ticks = int(line.rpartition(")")[2].split()[_STARTED_AT])
    return ticks / os.sysconf("SC_CLK_TCK")


#: The seconds in which an orphan must end before it is killed.
_END_WITHIN_S = 3.0


def mark(data_dir: Path) -> dict[str, str]:
    """Return the environment variable by which `find_orphans` recognizes a process."""
    return {MARK: str(data_dir)}


def find_orphans(data_dir: Path) -> list[psutil.Process]:
    """Return the marked processes of this installation, except this one and its parents."""
    own_pids = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    own_data_dir = str(data_dir)
    orphans = []
    for process in psutil.process_iter():
        if process.pid in own_pids:
            continue
        try:
            if process.environ().get(MARK) == own_data_dir and process.status() != psutil.STATUS_ZOMBIE:
                orphans.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue  # ended meanwhile, or a process of another user
    return orphans


def end_orphans(
    orphans: Iterable[psutil.Process],
    *,
    stop_signal: signal.Signals = signal.SIGTERM,
    within_s: float = _END_WITHIN_S,
) -> list[psutil.Process]:
    """Ask processes to end, then kill the others; return those that still run."""
    left = list(orphans)
    for number in (stop_signal, signal.SIGKILL):
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.send_signal(number)
        _ended, left = psutil.wait_procs(left, timeout=within_s)
        if not left:
            break
    return left
