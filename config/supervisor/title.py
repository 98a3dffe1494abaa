"""Gives a forked process a name of its own in `ps` and `top`. Linux only; elsewhere nothing happens."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

#: linux/prctl.h: the name `top` shows, at most 15 characters.
_PR_SET_NAME = 15
#: Places in /proc/self/stat, counted after the name in parentheses: where this process's arguments lie in its memory.
_ARGUMENTS_START, _ARGUMENTS_END = 45, 46


def set_title(name: str, arguments: str) -> None:
    """Show `name` in `top` and `arguments` in `ps`, as far as the room of the present arguments goes."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_END])
    room = end - start
    if start and room > 1:
        ctypes.memmove(start, arguments.encode()[: room - 1].ljust(room, b"\0"), room)
