"""The base of both embedded servers: start, wait until ready, stop, and end processes of an earlier run."""

from __future__ import annotations

import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from arbor.errors import ServerError
from config.supervisor.launch import Launch, spawn
from config.supervisor.run_folder import end_orphans

#: The limit of a start, which after a crash replays the log.
READY_WITHIN_S = 60.0
STOP_WITHIN_S = 8.0
_POLL_S = 0.02


def processes_in(folder: Path, program: str) -> list[psutil.Process]:
    """Return the running processes of that program whose working directory is `folder`."""
    processes = []
    for process in psutil.process_iter(["name"]):
        if not (process.info["name"] or "").startswith(program):
            continue
        try:
            if Path(process.cwd()) == folder and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return processes


class EmbeddedServer(ABC):
    """One server process, a child of this process.

    A caller either uses it as a context manager (`with server:`), or passes `prepare`, `launch`, `is_ready` and `after_ready`
    to the supervisor, which restarts the server when it ends.
    """

    #: The name for people.
    title: str
    #: The program's name in the process table.
    program: str

    def __init__(self, data_dir: Path, *, throwaway: bool = False) -> None:
        self.data_dir = data_dir.resolve()
        self.log_path = self.data_dir.with_name(f"{self.data_dir.name}.log")
        self._throwaway = throwaway
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Create the files that the server needs, and remove the remains of an earlier run."""

    @abstractmethod
    def launch(self) -> Launch:
        """Return the launch of its process."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether the server answers now; never blocks for long."""

    def after_ready(self) -> None:  # noqa: B027 (a server may need nothing)
        """Create the required objects in the running server."""

    def start(self) -> None:
        """Start the server and wait until it answers. Raises ServerError with the end of its log."""
        self.prepare()
        with self.log_path.open("ab") as log:
            self._process = spawn(self.launch(), output=log)
        try:
            self._wait_until_ready(self._process)
            self.after_ready()
        except BaseException:
            self.stop()
            raise

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while not self.is_ready():
            if process.poll() is not None:
                raise ServerError(
                    f"{self.title} ended with code {process.returncode} while starting:\n{self._log_end()}"
                )
            if time.monotonic() > deadline:
                raise ServerError(
                    f"{self.title} is not ready after {READY_WITHIN_S:.0f} s:\n{self._log_end()}"
                )
            time.sleep(_POLL_S)

    def _log_end(self) -> str:
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-10:])

    def stop(self) -> None:
        """End the server, gracefully at first; delete the files of a temporary one."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(self.launch().stop_signal)
            try:
                process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._throwaway:
            shutil.rmtree(self.data_dir.parent, ignore_errors=True)

    @property
    def pid(self) -> int | None:
        """The process id while the server runs as a child of this process."""
        return None if self._process is None else self._process.pid

    def end_orphans(self) -> None:
        """End servers of an earlier run on the same files, which two servers would destroy. Raises ServerError if one does not end."""
        orphans = processes_in(self.data_dir, self.program)
        left = end_orphans(orphans, stop_signal=self.launch().stop_signal, within_s=STOP_WITHIN_S)
        if left:
            raise ServerError(f"{self.title} of an earlier run does not end: process {left[0].pid}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()
