"""A process that loads Arbor's libraries once, and from which the parts are forked in a moment.

Loading them takes each process a second; a dozen at once on two cores would make every start wait. Linux only: there,
a supervisor can adopt the processes that another forked for it, and watch them as if it had started them itself.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from config.supervisor.launch import Child, Launch

#: linux/prctl.h: orphans below this process become its children.
_PR_SET_CHILD_SUBREAPER = 36
#: A fork takes milliseconds; whoever does not answer for so long has hung.
_ANSWER_WITHIN_S = 5.0
LONGEST_MESSAGE = 65_536
READY = b"ready"


@dataclass(frozen=True, kw_only=True)
class Adopted:
    """A process that the fork server forked and that is now our child."""

    pid: int

    def wait(self) -> int:
        """Wait for its end and return its code; negative: the signal that ended it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class ForkServer:
    """Our end of the line to the fork server, itself a part like any other."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Take note of the environment the fork server is started with; parts get what they have beyond it."""
        self._env = dict(env)
        self._ours: socket.socket | None = None
        self._theirs: socket.socket | None = None
        self._ready = False

    @staticmethod
    def is_possible() -> bool:
        """Say whether this system can do it."""
        return sys.platform == "linux"

    def adopt_orphans(self) -> None:
        """Become the parent of every orphan below us."""
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def prepare(self) -> None:
        """Lay a new line: a fork server that ended has taken its end with it."""
        self.close()
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.settimeout(_ANSWER_WITHIN_S)

    @property
    def line(self) -> int:
        """The descriptor that the fork server's process inherits."""
        assert self._theirs is not None
        return self._theirs.fileno()

    def is_ready(self) -> bool:
        """Say whether it has loaded everything; asked until it has."""
        if self._theirs is not None:
            self._theirs.close()  # the process has its copy: ours would hide its end
            self._theirs = None
        if not self._ready and self._ours is not None:
            try:
                self._ready = self._ours.recv(len(READY), socket.MSG_DONTWAIT) == READY
            except OSError:
                return False
        return self._ready

    def spawn(self, launch: Launch, *, output: int) -> Child | None:
        """Fork the part's process; None when the fork server cannot, and the process must be started from nothing."""
        if not launch.arbor or not self._ready or self._ours is None:
            return None
        request = {
            "arguments": launch.arbor,
            "set": {name: value for name, value in launch.env.items() if self._env.get(name) != value},
            "unset": [name for name in self._env if name not in launch.env],
            "cwd": str(launch.cwd) if launch.cwd else None,
            "orphan_signal": int(launch.orphan_signal),
            "parent": os.getpid(),
        }
        message = json.dumps(request).encode()
        if len(message) > LONGEST_MESSAGE:
            return None
        try:
            socket.send_fds(self._ours, [message], [output])
            return Adopted(pid=int(json.loads(self._ours.recv(LONGEST_MESSAGE))["pid"]))
        except (OSError, ValueError):
            self.close()
            return None

    def close(self) -> None:
        """Give the line up; a fork server that hears nothing any more ends."""
        for end in (self._ours, self._theirs):
            if end is not None:
                end.close()
        self._ours = self._theirs = None
        self._ready = False
