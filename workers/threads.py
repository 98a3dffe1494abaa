"""Threads for external calls: the calls of a batch run at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from celery.signals import worker_ready
from django.db import close_old_connections

_threads: ThreadPoolExecutor | None = None


def submit(work: Callable[[], None]) -> None:
    """Run a function in its own thread, or at once in a pool without threads."""
    if _threads is None:
        work()
    else:
        _threads.submit(_released, work)


def _released(work: Callable[[], None]) -> None:
    try:
        work()
    finally:
        # Celery's signals, which `workers.connections` uses, do not reach this thread.
        close_old_connections()


@worker_ready.connect
def _begin(sender: Any, **_: Any) -> None:
    """Create the threads in a pool of threads."""
    global _threads
    if type(sender.controller.pool).__module__.endswith("thread"):
        _threads = ThreadPoolExecutor(int(sender.controller.concurrency or 1), thread_name_prefix="call")
