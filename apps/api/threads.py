"""The threads that answer requests: work that blocks runs here, never in the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

from django.conf import settings
from django.db import close_old_connections

#: The answer to programs, by any protocol, while the database does not answer.
DATABASE_AWAY = "the database does not answer; try again in a moment"
TOO_SLOW = "the database needed too long for the request; ask for less"
#: PostgreSQL's own words would quote the value.
UNSTORABLE = "a value is out of range, or has a character that cannot be stored, such as NUL"
#: The number of threads bounds the connections to the database: each thread has one for each role that it used.
_THREADS = ThreadPoolExecutor(max_workers=settings.ARBOR_API_THREADS, thread_name_prefix="api")


async def in_thread[**P, R](function: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
    """Run a function that blocks in one of the threads; a stream uses a thread for each read, and none in between.

    The function opens its own `tenant_transaction`. Nothing of a request stays in the thread.
    """
    work = partial(_run, function, *args, **named)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, copy_context().run, work)


def _run[**P, R](function: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
    close_old_connections()
    try:
        return function(*args, **named)
    finally:
        close_old_connections()
