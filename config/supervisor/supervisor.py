"""Run the parts of one installation: one thread with one loop starts, watches, restarts and ends them."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import psutil

from arbor.errors import ArborError, ServerError
from config.supervisor.fork_server import ForkServer
from config.supervisor.log import Log
from config.supervisor.managed_process import (
    CRASH_LOOP_AFTER,
    STABLE_AFTER_S,
    ManagedProcess,
    PartStatus,
    Unit,
    restart_delay_s,
)

#: The seconds between polls while a part starts or ends, and while all are ready.
_BUSY_POLL_S, _QUIET_POLL_S = 0.05, 0.5
#: The seconds in which killed orphans must end.
ORPHAN_EXIT_WITHIN_S = 2.0
_SATISFIED = {PartStatus.READY, PartStatus.DONE}
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    """Starts parts in the order of their needs, restarts those that end, and ends all of them together.

    The supervisor must run in the main thread, because a part gets a signal when the thread that started the part ends.
    """

    def __init__(
        self,
        parts: Sequence[ManagedProcess],
        *,
        log: Log,
        on_change: Callable[[list[dict[str, Any]]], None] = lambda _parts: None,
        on_ready: Callable[[], None] = lambda: None,
        fork_server: ForkServer | None = None,
    ) -> None:
        """Check the needs of the parts, which are given in starting order. Raises ServerError for unknown or cyclic needs.

        `on_change` is called at every change of a part's status, `on_ready` once when all awaited parts are ready. With a fork
        server, which is one of the parts, this process adopts every orphan below it.
        """
        self._units = [Unit(part) for part in parts]
        self._by_name = {unit.name: unit for unit in self._units}
        unknown = {need for part in parts for need in part.needs} - set(self._by_name)
        if unknown:
            raise ServerError(f"parts are needed that do not exist: {', '.join(sorted(unknown))}")
        self._needs = {part.name: _all_needs(part, {part.name: part for part in parts}) for part in parts}
        self._log = log
        self._on_change = on_change
        self._on_ready = on_ready
        self._fork_server = fork_server
        self._selector = selectors.DefaultSelector()
        self._stop_requests = 0
        self._failure: str | None = None
        self._last_snapshot: list[dict[str, Any]] = []
        self._reported_ready = False
        self._reported_unwritten = False

    def run(self) -> None:
        """Run until asked to stop. Raises ServerError when a part with `once` fails, or an essential part before it was ready."""
        with self._wake_on_signals():
            if self._fork_server is not None:
                self._fork_server.adopt_orphans()
            try:
                while not self._stop_requests and self._failure is None:
                    for unit in self._units:
                        self._advance(unit)
                    self._reap_orphans()
                    self._report_changes()
                    self._relay_output(_BUSY_POLL_S if self._is_busy() else _QUIET_POLL_S)
            finally:
                self._stop_all()
        if self._failure is not None:
            raise ServerError(self._failure)

    def request_stop(self) -> None:
        """Request the end; a further request kills the parts that are ending."""
        self._stop_requests += 1

    # --- Starting and watching -----------------------------------------------------------------------

    def _advance(self, unit: Unit) -> None:
        now = time.monotonic()
        match unit.status:
            case PartStatus.WAITING:
                if all(self._by_name[need].status in _SATISFIED for need in unit.part.needs):
                    self._start(unit)
            case PartStatus.BACKOFF | PartStatus.CRASH_LOOP:
                if now >= unit.next_start_at:
                    unit.restarts += 1
                    self._start(unit)
            case PartStatus.STARTING | PartStatus.READY:
                if unit.has_ended():
                    self._handle_end(unit, now)
                elif unit.status is PartStatus.STARTING:
                    self._await_ready(unit, now)
                elif now - unit.started_at > STABLE_AFTER_S:
                    unit.quick_ends = 0

    def _start(self, unit: Unit) -> None:
        try:
            unit.part.prepare()
            unit.start(time.monotonic(), self._fork_server)
        except (ArborError, OSError) as error:
            self._handle_failure(unit, f"cannot start: {error}")
            return
        assert unit.output is not None
        self._selector.register(unit.output, selectors.EVENT_READ, unit)

    def _await_ready(self, unit: Unit, now: float) -> None:
        if unit.part.once:
            return
        if unit.part.ready():
            try:
                unit.part.after_ready()
            except ArborError as error:
                unit.signal_group(signal.SIGKILL)
                self._collect(unit)
                self._handle_failure(unit, str(error))
                return
            unit.status = PartStatus.READY
            unit.was_ready = True
        elif now - unit.started_at > unit.part.ready_within_s and not unit.reported_late:
            unit.reported_late = True
            self._log.report(
                f"is not ready after {unit.part.ready_within_s:.0f} s", name=unit.name, alarm=True
            )

    def _handle_end(self, unit: Unit, now: float) -> None:
        duration_s = now - unit.started_at
        code = self._collect(unit)
        if unit.part.once and code == 0:
            unit.status = PartStatus.DONE
            return
        if duration_s > STABLE_AFTER_S:
            unit.quick_ends = 0
        self._handle_failure(unit, f"ended after {duration_s:.0f} s {_describe(code)}")

    def _handle_failure(self, unit: Unit, what: str) -> None:
        first_time = not unit.was_ready
        if unit.part.once or (unit.part.essential and first_time):
            unit.status = PartStatus.FAILED
            # The log has the whole output; its last line is usually the reason.
            reason = f": {unit.last_line.strip()}" if unit.last_line else ""
            self._failure = f"{unit.name} {what}{reason}"
            return
        unit.quick_ends += 1
        delay = restart_delay_s(unit.quick_ends)
        unit.next_start_at = time.monotonic() + delay
        looping = unit.quick_ends >= CRASH_LOOP_AFTER
        unit.status = PartStatus.CRASH_LOOP if looping else PartStatus.BACKOFF
        times = f" ({unit.quick_ends} times in a row)" if looping else ""
        self._log.report(f"{what}{times}; starting again in {delay:g} s", name=unit.name, alarm=True)

    def _collect(self, unit: Unit) -> int:
        """Log the last output of a process that has ended or is being killed; return its exit code."""
        code = unit.reap()
        self._relay(unit)
        if unit.output is not None:
            self._selector.unregister(unit.output)
            unit.close_output()
        return code

    def _reap_orphans(self) -> None:
        """Reap adopted processes that have ended, except those of the parts, which `_collect` reaps."""
        if self._fork_server is None:
            return
        known = {unit.pid for unit in self._units}
        # Without any child, for example after the end of the first part, the system reports an error.
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if ended.si_pid in known:
                    return  # `_collect` reaps this process first; the orphans that ended after it are reaped then
                os.waitpid(ended.si_pid, 0)

    # --- Stopping ------------------------------------------------------------------------------------

    def _stop_all(self) -> None:
        """Stop the parts that no running part needs, layer by layer, until nothing runs."""
        if any(unit.pid for unit in self._units):
            self._log.report("stopping")
        while running := [unit for unit in self._units if unit.pid is not None]:
            needed = {need for unit in running for need in self._needs[unit.name]}
            self._stop_layer([unit for unit in running if unit.name not in needed])
        self._end_orphans()
        self._report_changes()
        self._selector.close()

    def _end_orphans(self) -> None:
        """Kill the processes that left the group of their part and outlived it."""
        if self._fork_server is None:
            return
        self._fork_server.close()
        orphans = psutil.Process().children(recursive=True)
        for orphan in orphans:
            with contextlib.suppress(psutil.NoSuchProcess):
                orphan.kill()
        psutil.wait_procs(orphans, timeout=ORPHAN_EXIT_WITHIN_S)

    def _stop_layer(self, units: Sequence[Unit]) -> None:
        """Ask parts to stop, and wait; kill a part after its time is over, or all of them at a further request to stop."""
        requests_before = self._stop_requests
        for unit in units:
            unit.ask_to_stop()
        started = time.monotonic()
        left = list(units)
        while left:
            is_urgent = self._stop_requests > max(requests_before, 1)
            for unit in list(left):
                if unit.has_ended():
                    self._collect(unit)
                    unit.status = PartStatus.STOPPED
                    left.remove(unit)
                elif is_urgent or time.monotonic() - started > unit.part.stop_within_s:
                    self._log.report("does not end by itself and is killed", name=unit.name, alarm=True)
                    unit.signal_group(signal.SIGKILL)
                    self._collect(unit)
                    unit.status = PartStatus.STOPPED
                    left.remove(unit)
            self._relay_output(_BUSY_POLL_S)

    # --- Output, signals, changes --------------------------------------------------------------------

    def _relay_output(self, timeout_s: float) -> None:
        for key, _events in self._selector.select(timeout_s):
            if key.data is None:  # the pipe of `_wake_on_signals`
                with contextlib.suppress(BlockingIOError):
                    os.read(key.fd, 1024)
            else:
                self._relay(key.data)

    def _relay(self, unit: Unit) -> None:
        pipe = unit.output
        for line in unit.read_lines():
            self._log.write(unit.name, line)
        if pipe is not None and unit.output is None:  # the process closed its output
            self._selector.unregister(pipe)

    @contextlib.contextmanager
    def _wake_on_signals(self) -> Iterator[None]:
        """Make signals end the wait for output: a request to stop, or the end of a child."""
        reading, writing = os.pipe()
        for end in (reading, writing):
            os.set_blocking(end, False)
        self._selector.register(reading, selectors.EVENT_READ, None)

        def on_stop(_number: int, _frame: FrameType | None) -> None:
            self.request_stop()

        previous_handlers = {number: signal.signal(number, on_stop) for number in _STOP_SIGNALS}
        previous_handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        wakeup_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup_before)
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)
            os.close(reading)
            os.close(writing)

    def _is_busy(self) -> bool:
        return any(unit.status not in _SATISFIED for unit in self._units)

    def _report_changes(self) -> None:
        snapshot = [unit.snapshot() for unit in self._units]
        if snapshot != self._last_snapshot:
            try:
                self._on_change(snapshot)
            except OSError as error:  # such as a full disk; the next round tries again
                if not self._reported_unwritten:
                    self._log.report(f"the state cannot be written: {error}", alarm=True)
                self._reported_unwritten = True
            else:
                self._last_snapshot, self._reported_unwritten = snapshot, False
        awaited = (unit for unit in self._units if unit.part.awaited)
        if not self._reported_ready and all(unit.status in _SATISFIED for unit in awaited):
            self._reported_ready = True
            self._on_ready()


def _all_needs(
    part: ManagedProcess, parts: Mapping[str, ManagedProcess], path: tuple[str, ...] = ()
) -> frozenset[str]:
    """Return the names of the parts that a part needs, directly or through others."""
    if part.name in path:
        raise ServerError(f"parts need each other in a circle: {' → '.join((*path, part.name))}")
    direct = frozenset(part.needs)
    return direct.union(*(_all_needs(parts[need], parts, (*path, part.name)) for need in direct))


def _describe(code: int) -> str:
    if code >= 0:
        return f"with code {code}"
    # Most real-time signals have no name.
    name = next((known.name for known in signal.Signals if known == -code), str(-code))
    return f"by signal {name}"
