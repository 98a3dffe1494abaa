"""One part of the installation: its declaration, its process, and the rule for starting it again."""

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

#: A part that ran this long was well; if it ends now, that is a new story.
STABLE_AFTER_S = 30.0
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
#: From this number of quick ends in a row on, the status says so.
CRASH_LOOP_AFTER = 5


class Status(StrEnum):
    """Where a part stands."""

    #: Not started: something it needs is not ready.
    WAITING = "waiting"
    #: Its process runs but does not answer yet.
    STARTING = "starting"
    #: It answers.
    READY = "ready"
    #: A step that ended well.
    DONE = "done"
    #: It ended and will be started again in a moment.
    BACKOFF = "backoff"
    #: It ended again and again; it is still tried, at the longest delay.
    CRASH_LOOP = "crash loop"
    #: Without it nothing can go on, and it failed.
    FAILED = "failed"
    #: Ended because we wanted it.
    STOPPED = "stopped"


def _nothing() -> None:
    """Do nothing: the part needs no such step."""


def _at_once() -> bool:
    """Count as ready as soon as the process runs."""
    return True


@dataclass(frozen=True, kw_only=True)
class ManagedProcess:
    """One process of the installation, and how to tell how it is."""

    name: str
    #: Called for every start, so that a change of circumstances is met.
    launch: Callable[[], Launch]
    #: Names of the parts that must be ready (or done) before this one starts for the first time.
    needs: tuple[str, ...] = ()
    #: Done before every start; raises an ArborError when it cannot be.
    prepare: Callable[[], None] = _nothing
    #: Asked often while it starts; must answer within a fraction of a second.
    ready: Callable[[], bool] = _at_once
    #: Done each time it has become ready.
    after_ready: Callable[[], None] = _nothing
    #: A step: it ends by itself, and others wait until it has ended well.
    once: bool = False
    #: Everything ends when it cannot be started at all.
    essential: bool = False
    #: After this it is said that it is late.
    ready_within_s: float = 60.0
    #: How long its end is awaited before it is killed.
    stop_within_s: float = 5.0
    #: Lines of its output that tell nothing to a reader.
    noise: re.Pattern[str] | None = None


def restart_delay_s(quick_ends: int) -> float:
    """Return how long to wait after a number of quick ends in a row: 0.5 s, doubled each time, at most 30 s."""
    if quick_ends <= 0:
        return FIRST_DELAY_S
    return float(min(FIRST_DELAY_S * 2.0 ** min(quick_ends - 1, 16), LONGEST_DELAY_S))


#: A line longer than this is cut into pieces.
LONGEST_LINE = 16_384
_READ_SIZE = 65_536


class Unit:
    """A part and its present process, if it has one. Decides nothing: the supervisor does."""

    def __init__(self, part: ManagedProcess) -> None:
        self.part = part
        self.status = Status.WAITING
        self.started_at = 0.0
        self.next_start_at = 0.0
        self.quick_ends = 0
        self.restarts = 0
        self.was_ready = False
        self.said_late = False
        self.last_line = ""
        self.output: int | None = None
        self._process: Child | None = None
        self._stop_signal = signal.SIGTERM
        self._rest = b""

    @property
    def name(self) -> str:
        """The part's name."""
        return self.part.name

    @property
    def pid(self) -> int | None:
        """The process id, while there is one."""
        return None if self._process is None else self._process.pid

    def start(self, now: float, fork_server: ForkServer | None = None) -> None:
        """Start its process, which must not be running: in the fork server if that can be, else from nothing."""
        self.last_line = ""
        self._rest = b""
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
        self.status = Status.STARTING
        self.started_at = now
        self.said_late = False

    def has_ended(self) -> bool:
        """Say whether its process has ended; it stays in the process table until `reap`."""
        if self._process is None:
            return False
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return ended is not None

    def reap(self) -> int:
        """Kill what its process left in its group, and return its code. Negative: the signal that ended it."""
        assert self._process is not None
        # While the leader is unreaped, the number of the group cannot belong to anybody else.
        self.signal_group(signal.SIGKILL)
        code = self._process.wait()
        self._process = None
        return code

    def close_output(self) -> None:
        """Forget the pipe; whoever still holds its other end writes to nobody."""
        if self.output is not None:
            os.close(self.output)
            self.output = None

    def ask_to_stop(self) -> None:
        """Send the signal that asks its process to end."""
        if self._process is not None:
            # Not `Popen.send_signal`: it would reap a process that has just ended, and its group with it.
            os.kill(self._process.pid, self._stop_signal)

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to its process and everything that process started."""
        if self._process is not None:
            # macOS answers "not permitted" for a group in which only the dead are left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def read_lines(self) -> Iterator[str]:
        """Yield the complete lines its process has written since the last call."""
        while self.output is not None:
            try:
                piece = os.read(self.output, _READ_SIZE)
            except BlockingIOError:
                return
            if not piece:
                self.close_output()
                yield from self._split(b"\n" if self._rest else b"")
                return
            yield from self._split(piece)

    def _split(self, piece: bytes) -> Iterator[str]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
        for raw in lines:
            text = raw.decode("utf-8", errors="replace")
            if self.part.noise is None or not self.part.noise.search(text):
                self.last_line = text
                yield text

    def snapshot(self) -> dict[str, Any]:
        """Return what others may know of it, for the state file."""
        return {"name": self.name, "status": self.status.value, "pid": self.pid, "restarts": self.restarts}
