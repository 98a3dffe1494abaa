"""The supervisor's side of the fork server, a process that loads Arbor's libraries once and forks the parts.

Loading the libraries takes each process a second, and a dozen processes at once on two cores would wait for each other.
Linux only: there, a supervisor can adopt the forked processes, and watch them like its own children.
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

#: From linux/prctl.h: orphans below this process become its children.
_PR_SET_CHILD_SUBREAPER = 36
#: The limit of an answer: a fork takes milliseconds, so a fork server without an answer hangs.
_ANSWER_WITHIN_S = 5.0
LONGEST_MESSAGE = 65_536
READY = b"ready"


@dataclass(frozen=True, kw_only=True)
class AdoptedProcess:
    """A process that the fork server forked and that is now a child of the supervisor."""

    pid: int

    def wait(self) -> int:
        """Wait for its end and return its code; negative: the signal that ended it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class ForkServer:
    """The supervisor's end of the socket to the fork server, which is a part like any other."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Store the environment of the fork server; requests contain only a part's differences from it."""
        self._env = dict(env)
        self._own_end: socket.socket | None = None
        self._server_end: socket.socket | None = None
        self._ready = False

    @staticmethod
    def is_possible() -> bool:
        """Return whether this system supports a fork server."""
        return sys.platform == "linux"

    def adopt_orphans(self) -> None:
        """Make this process the parent of every orphan below it."""
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def prepare(self) -> None:
        """Create a new pair of sockets, because a fork server that ended has closed its own."""
        self.close()
        self._own_end, self._server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._own_end.settimeout(_ANSWER_WITHIN_S)

    @property
    def descriptor(self) -> int:
        """The descriptor that the fork server's process inherits."""
        assert self._server_end is not None
        return self._server_end.fileno()

    def is_ready(self) -> bool:
        """Return whether the fork server has loaded its first modules; polled until then."""
        if self._server_end is not None:
            self._server_end.close()  # the process has a copy; this one would hide its end
            self._server_end = None
        if not self._ready and self._own_end is not None:
            try:
                self._ready = self._own_end.recv(len(READY), socket.MSG_DONTWAIT) == READY
            except OSError:
                return False
        return self._ready

    def spawn(self, launch: Launch, *, output: int) -> Child | None:
        """Fork the part's process; return None when the fork server cannot, so that the caller starts the process."""
        if not launch.arbor_arguments or not self._ready or self._own_end is None:
            return None
        request = {
            "arguments": launch.arbor_arguments,
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
            socket.send_fds(self._own_end, [message], [output])
            return AdoptedProcess(pid=int(json.loads(self._own_end.recv(LONGEST_MESSAGE))["pid"]))
        except (OSError, ValueError):
            self.close()
            return None

    def close(self) -> None:
        """Close the sockets, which ends the fork server."""
        for end in (self._own_end, self._server_end):
            if end is not None:
                end.close()
        self._own_end = self._server_end = None
        self._ready = False
