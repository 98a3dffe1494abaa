"""Threads with connections of their own, and sessions that wait for locks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from django.db import connections


def in_own_connection(work: Callable[[], None]) -> threading.Thread:
    """Start work in a thread that closes its connections, and return the thread."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


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
