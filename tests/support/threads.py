"""Threads with connections of their own, and sessions that wait for locks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from django.db import connections, transaction

from apps.tenants.scope import APP


class _ConnectedThread(threading.Thread):
    """A thread that closes its connections at the end; `join` raises what its work raised."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__()
        self._work = work
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 (raised where the thread is joined)
            self._error = error
        finally:
            connections.close_all()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end. Raises the error of the work, and TimeoutError if the thread still runs."""
        super().join(timeout)
        if self.is_alive():
            raise TimeoutError(f"the thread has not ended after {timeout} seconds")
        error, self._error = self._error, None
        if error is not None:
            raise error


def in_own_connection(work: Callable[[], object]) -> threading.Thread:
    """Start work in a thread that closes its connections, and return the thread, to be joined."""
    thread = _ConnectedThread(work)
    thread.start()
    return thread


def start_blocked(work: Callable[[], object], *, using: str = APP) -> None:
    """Start work in a thread, and return when it waits for a lock of the open transaction; after the commit it is joined."""
    thread = in_own_connection(work)
    await_blocked_session()
    transaction.on_commit(partial(thread.join, 60), using=using)


def await_blocked_session() -> None:
    """Return when a session waits for a lock."""
    deadline = time.monotonic() + 20
    with connections["owner"].cursor() as cursor:
        while time.monotonic() < deadline:
            cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
            if cursor.fetchone()[0]:
                return
            cursor.execute("SELECT pg_sleep(0.01)")
    raise AssertionError("no session waits for a lock")
