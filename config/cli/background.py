"""Run work in a thread while the command shows its progress."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from django.db import connections


def run_in_background[T](work: Callable[[], T]) -> Future[T]:
    """Run the work in a daemon thread, which ends with the process, and return the future of its result."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 (raised again by whoever asks for the result)
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            connections.close_all()

    threading.Thread(target=run, name="work", daemon=True).start()
    return future
