"""Finds what an earlier, killed supervisor of the same installation left running, and ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path

import psutil

from config.supervisor import MARK

_PATIENCE_S = 3.0


def mark(data_dir: Path) -> dict[str, str]:
    """Return what to add to a part's environment so that it can be found again."""
    return {MARK: str(data_dir)}


def find_strays(data_dir: Path) -> list[psutil.Process]:
    """Return the marked processes of this installation, except ourselves and our parents."""
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    wanted = str(data_dir)
    strays = []
    for process in psutil.process_iter():
        if process.pid in ours:
            continue
        try:
            if process.environ().get(MARK) == wanted and process.status() != psutil.STATUS_ZOMBIE:
                strays.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue  # gone meanwhile, or another user's and so not ours
    return strays


def end_strays(strays: Iterable[psutil.Process]) -> None:
    """End them: asked first, then killed."""
    left = list(strays)
    for wish in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            try:
                process.send_signal(wish)
            except psutil.NoSuchProcess:
                continue
        _gone, left = psutil.wait_procs(left, timeout=_PATIENCE_S)
        if not left:
            return
