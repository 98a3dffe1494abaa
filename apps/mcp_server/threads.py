"""The threads in which tools wait for the database, so that the event loop does not."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from asgiref.sync import sync_to_async
from django.db import close_old_connections

#: Bounded, and with it the connections to the database.
_THREADS = ThreadPoolExecutor(max_workers=16, thread_name_prefix="mcp")


async def in_thread[**P, R](function: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
    """Run a function that blocks in one of the threads; it opens its own transactions."""
    return await sync_to_async(_run, thread_sensitive=False, executor=_THREADS)(function, *args, **named)


def _run[**P, R](function: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
    close_old_connections()
    try:
        return function(*args, **named)
    finally:
        close_old_connections()
