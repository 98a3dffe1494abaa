"""One supervised part as it lives: its process, its output, and where it stands."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

from config.supervisor.launch import Child, spawn
from config.supervisor.nursery import Nursery
from config.supervisor.part import Part, Status

#: A line longer than this is cut into pieces.
LONGEST_LINE = 16_384
_READ_SIZE = 65_536


class Unit:
    """A part and its present process, if it has one. Decides nothing: the supervisor does."""

    def __init__(self, part: Part) -> None:
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

    def start(self, now: float, nursery: Nursery | None = None) -> None:
        """Start its process, which must not be running: in the nursery if that can be, else from nothing."""
        self.last_line = ""
        self._rest = b""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        try:
            launch = self.part.launch()
            self._stop_signal = launch.stop_signal
            forked = None if nursery is None else nursery.spawn(launch, output=writing)
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
