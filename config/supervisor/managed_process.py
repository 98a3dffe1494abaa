"""One part of the installation: its declaration, its process, and the rule for restarting it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from config.supervisor.fork_server import ForkServer
from config.supervisor.launch import Child, Launch, spawn

#: The seconds after which a part counts as stable, so that its next end starts a new count of quick ends.
STABLE_AFTER_S = 30.0
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
#: The number of quick ends in a row from which the status is "crash loop".
CRASH_LOOP_AFTER = 5


class PartStatus(StrEnum):
    """The status of a part."""

    #: Not started: something it needs is not ready.
    WAITING = "waiting"
    #: The process runs, but does not answer yet.
    STARTING = "starting"
    #: The process answers.
    READY = "ready"
    #: A step that ended well.
    DONE = "done"
    #: The process ended and is restarted after a delay.
    BACKOFF = "backoff"
    #: The process ended again and again; it is restarted after longer and longer delays.
    CRASH_LOOP = "crash loop"
    #: A step, or an essential part that was never ready, failed.
    FAILED = "failed"
    #: The process was stopped on request.
    STOPPED = "stopped"


def _do_nothing() -> None:
    """Do nothing: the part needs no such step."""


def _is_ready_at_once() -> bool:
    """Count as ready as soon as the process runs."""
    return True


@dataclass(frozen=True, kw_only=True)
class ManagedProcess:
    """The declaration of one process of the installation, with its checks."""

    name: str
    #: Called for every start, because the launch may change.
    launch: Callable[[], Launch]
    #: Names of the parts that must be ready (or done) before this one starts for the first time.
    needs: tuple[str, ...] = ()
    #: Called before every start; raises an ArborError on failure.
    prepare: Callable[[], None] = _do_nothing
    #: Called often while the process starts; must return within a fraction of a second.
    ready: Callable[[], bool] = _is_ready_at_once
    #: Called each time the process has become ready.
    after_ready: Callable[[], None] = _do_nothing
    #: Whether the part is a step that ends by itself, and that other parts wait for.
    once: bool = False
    #: Whether the installation stops when the part cannot be started.
    essential: bool = False
    #: Whether the installation counts as ready only once this part is.
    awaited: bool = True
    #: The time after which a late start is reported.
    ready_within_s: float = 60.0
    #: The time to end gracefully before the process is killed.
    stop_within_s: float = 5.0
    #: The lines of its output that are not logged.
    noise: re.Pattern[str] | None = None


def restart_delay_s(quick_ends: int) -> float:
    """Return the delay after a number of quick ends in a row: 0.5 s, doubled each time, at most 30 s."""
    if quick_ends <= 0:
        return FIRST_DELAY_S
    return float(min(FIRST_DELAY_S * 2.0 ** min(quick_ends - 1, 16), LONGEST_DELAY_S))


#: The most bytes of a line that wait for its end; then they are passed on as a line of their own.
_MAX_INCOMPLETE_LINE = 16_384
_READ_SIZE = 65_536
#: The most reads at once: more than a pipe holds, but not endless, so that a part that writes without a pause delays no other.
_MAX_READS = 16


class Unit:
    """A part with its current process, if any; the supervisor makes all decisions."""

    def __init__(self, part: ManagedProcess) -> None:
        self.part = part
        self.status = PartStatus.WAITING
        self.started_at = 0.0
        self.next_start_at = 0.0
        self.quick_ends = 0
        self.restarts = 0
        self.was_ready = False
        self.reported_late = False
        self.last_line = ""
        self.output: int | None = None
        self._process: Child | None = None
        self._stop_signal = signal.SIGTERM
        self._incomplete_line = b""

    @property
    def name(self) -> str:
        """The part's name."""
        return self.part.name

    @property
    def pid(self) -> int | None:
        """The process id, while there is one."""
        return None if self._process is None else self._process.pid

    def start(self, now: float, fork_server: ForkServer | None = None) -> None:
        """Start the process, which must not be running: forked by the fork server if possible, else as a new one."""
        self.last_line = ""
        self._incomplete_line = b""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        try:
            launch = self.part.launch()
            self._stop_signal = launch.stop_signal
            forked = None if fork_server is None else fork_server.spawn(launch, output=writing)
            self._process = forked or spawn(launch, output=writing)
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self.output = reading
        self.status = PartStatus.STARTING
        self.started_at = now
        self.reported_late = False

    def has_ended(self) -> bool:
        """Return whether the process has ended; it is a zombie until `reap`."""
        if self._process is None:
            return False
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return ended is not None

    def reap(self) -> int:
        """Kill the rest of the process group, and return the exit code. Negative: the signal that ended the process."""
        assert self._process is not None
        # While the leader is not reaped, no other group can get its number.
        self.signal_group(signal.SIGKILL)
        code = self._process.wait()
        self._process = None
        return code

    def close_output(self) -> None:
        """Close the pipe of the output."""
        if self.output is not None:
            os.close(self.output)
            self.output = None

    def ask_to_stop(self) -> None:
        """Send the signal that asks the process to end."""
        if self._process is not None:
            # Not `Popen.send_signal`, which would reap a process that has just ended, and so free its group's number.
            os.kill(self._process.pid, self._stop_signal)

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process and its group."""
        if self._process is not None:
            # macOS answers "not permitted" for a group of zombies.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def read_lines(self) -> Iterator[str]:
        """Yield the lines that the process has completed since the last call, and parts of overlong ones; read at most 1 MB."""
        for _ in range(_MAX_READS):
            if self.output is None:
                return
            try:
                chunk = os.read(self.output, _READ_SIZE)
            except BlockingIOError:
                return
            if not chunk:
                self.close_output()
                yield from self._split(b"\n" if self._incomplete_line else b"")
                return
            yield from self._split(chunk)

    def _split(self, chunk: bytes) -> Iterator[str]:
        *lines, self._incomplete_line = (self._incomplete_line + chunk).split(b"\n")
        if len(self._incomplete_line) > _MAX_INCOMPLETE_LINE:
            lines.append(self._incomplete_line)
            self._incomplete_line = b""
        for raw in lines:
            text = raw.decode("utf-8", errors="replace")
            if self.part.noise is None or not self.part.noise.search(text):
                self.last_line = text
                yield text

    def snapshot(self) -> dict[str, Any]:
        """Return the public state of the part for the state file."""
        return {"name": self.name, "status": self.status.value, "pid": self.pid, "restarts": self.restarts}
