"""Start a child process so that it cannot outlive the process that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

#: linux/prctl.h: the signal this process gets when its parent ends, however that ended.
PR_SET_PDEATHSIG = 1

type Output = int | IO[bytes] | None


class Child(Protocol):
    """A process of the supervisor, forked or started."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def wait(self) -> int:
        """Wait for its end and return its code; negative: the signal that ended it."""


@dataclass(frozen=True, kw_only=True)
class OsUser:
    """The operating system's user that a process runs as when we are root."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Everything needed to start one process, as many times as it takes."""

    argv: tuple[str, ...]
    #: The whole environment of the process; nothing is inherited that is not in here.
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    #: The same as arguments of `arbor`, when it is one of our own commands: the fork server can then become it.
    arbor: tuple[str, ...] = ()
    #: Descriptors of ours that the process keeps, beyond its output.
    keep: tuple[int, ...] = ()
    #: None: the user we are.
    user: OsUser | None = None
    #: Asks the process to end and to finish what it holds.
    stop_signal: signal.Signals = signal.SIGTERM
    #: Sent by the kernel when we are gone (Linux): nobody is left to wait for a patient end.
    orphan_signal: signal.Signals = signal.SIGTERM


def spawn(launch: Launch, *, output: Output = None) -> subprocess.Popen[bytes]:
    """Start the process in a session of its own, its two outputs joined into `output`.

    Call it from a thread that lives as long as the process should: the kernel's parent-death signal
    follows the thread, not the program.
    """
    user = launch.user
    with warnings.catch_warnings():
        # Python warns of any fork beside threads; between fork and exec we only make two system calls.
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(  # noqa: S603 (argv comes from our own parts)
            launch.argv,
            env=dict(launch.env),
            cwd=launch.cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output is not None else None,
            start_new_session=True,
            pass_fds=launch.keep,
            user=None if user is None else user.uid,
            group=None if user is None else user.gid,
            extra_groups=None if user is None else (),
            preexec_fn=end_with_parent(launch.orphan_signal, parent=os.getpid()),
        )


def end_with_parent(orphan_signal: signal.Signals, *, parent: int) -> Callable[[], None] | None:
    """Return what a new process calls to get that signal when its parent ends; None where no kernel can do it."""
    if sys.platform != "linux":
        return None
    # Looked up here, before the fork: afterwards as little as possible may happen.
    prctl = ctypes.CDLL(None).prctl
    number = int(orphan_signal)

    def arm() -> None:
        prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the kernel knew of our wish
            os._exit(1)

    return arm
