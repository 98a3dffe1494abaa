"""Threads for what waits for models: the calls of a message are asked at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from celery.signals import worker_ready
from django.db import close_old_connections

_threads: ThreadPoolExecutor | None = None


def submit(work: Callable[[], None]) -> None:
    """Run a function in a thread of its own, or at once where the pool is not one of threads."""
    if _threads is None:
        work()
    else:
        _threads.submit(_released, work)


def _released(work: Callable[[], None]) -> None:
    try:
        work()
    finally:
        # As `workers.connections` does after a task: this thread has none of Celery's signals.
        close_old_connections()


@worker_ready.connect
def _begin(sender: Any, **_: Any) -> None:
    """Have threads where the pool is one of threads."""
    global _threads
    if type(sender.controller.pool).__module__.endswith("thread"):
        _threads = ThreadPoolExecutor(int(sender.controller.concurrency or 1), thread_name_prefix="call")
