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

#: From linux/prctl.h: sets the signal that this process gets when its parent ends.
PR_SET_PDEATHSIG = 1

type Output = int | IO[bytes] | None


class Child(Protocol):
    """A process of the supervisor, forked or started."""

    @property
    def pid(self) -> int:
        """The process id."""

    def wait(self) -> int:
        """Wait for its end and return its code; negative: the signal that ended it."""


@dataclass(frozen=True, kw_only=True)
class OsUser:
    """The operating system's user that a process runs as under root."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Everything needed to start one process, any number of times."""

    argv: tuple[str, ...]
    #: The whole environment of the process; nothing else is inherited.
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    #: The arguments of `arbor`, for one of its own commands, which the fork server can run.
    arbor_arguments: tuple[str, ...] = ()
    #: Descriptors of this process that the new process inherits, besides its output.
    inherited: tuple[int, ...] = ()
    #: None: the current user.
    user: OsUser | None = None
    #: The signal that asks the process to end gracefully.
    stop_signal: signal.Signals = signal.SIGTERM
    #: The signal that the kernel sends to the process when its parent, this process, has ended (Linux).
    orphan_signal: signal.Signals = signal.SIGTERM


def spawn(launch: Launch, *, output: Output = None) -> subprocess.Popen[bytes]:
    """Start the process in a session of its own, its two outputs joined into `output`.

    Call this from a thread that lives as long as the process should: the kernel sends the parent-death signal when the
    thread ends, not the program.
    """
    user = launch.user
    with warnings.catch_warnings():
        # Python warns of any fork beside threads; between fork and exec there are only two system calls.
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(  # noqa: S603 (argv comes from Arbor's own parts)
            launch.argv,
            env=dict(launch.env),
            cwd=launch.cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output is not None else None,
            start_new_session=True,
            pass_fds=launch.inherited,
            user=None if user is None else user.uid,
            group=None if user is None else user.gid,
            extra_groups=None if user is None else (),
            preexec_fn=end_with_parent(launch.orphan_signal, parent=os.getpid()),
        )


def end_with_parent(orphan_signal: signal.Signals, *, parent: int) -> Callable[[], None] | None:
    """Return a function for the new process that requests the signal for its parent's end; None except on Linux."""
    if sys.platform != "linux":
        return None
    # Looked up before the fork, after which as little as possible may happen.
    prctl = ctypes.CDLL(None).prctl
    number = int(orphan_signal)

    def arm() -> None:
        prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the request
            os._exit(1)

    return arm
