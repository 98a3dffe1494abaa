"""Messages that carry the work of several agents: each is done by itself, and what it tells goes on with the others'."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
from celery.signals import worker_ready, worker_shutdown
from django.db import close_old_connections

from apps.queues import Message, gather_all, publish_together

log = structlog.get_logger(__name__)

type Arguments = Sequence[Mapping[str, Any]]

#: In a process of many threads, what they tell waits for company so long.
TOLD_TOGETHER_S = 0.02


def in_turn(work: Callable[..., object], batch: Arguments) -> None:
    """Do the work for each in turn; the fault of one is its own, and raised again when all are done."""
    if len(batch) == 1:
        work(**batch[0])
    else:
        _raise_last([_fault_of(work, arguments) for arguments in batch])


def _fault_of(work: Callable[..., object], arguments: Mapping[str, Any]) -> Exception | None:
    """Do the work for one of several; return its fault, which is in the log: only one of them is raised in the end."""
    try:
        work(**arguments)
    except Exception as error:
        log.exception("fault_in_batch", **arguments)
        return error
    return None


def thread_runner() -> Callable[[Callable[[], None]], object] | None:
    """Return what runs a function in a thread of its own, for what waits for models; None where no threads are at hand."""
    threads = _threads
    return None if threads is None else lambda work: threads.submit(_released, work)


def _released(work: Callable[[], None]) -> None:
    try:
        work()
    finally:
        # As `workers.connections` does after a task: it has none of Celery's signals, or not yet.
        close_old_connections()


def _raise_last(faults: Sequence[Exception | None]) -> None:
    found = [fault for fault in faults if fault is not None]
    if found:
        raise found[-1]


class Teller:
    """Gathers what the threads of this process tell, and publishes it a moment later, from one thread."""

    def __init__(self) -> None:
        self._waiting: list[Message] = []
        self._lock = threading.Lock()
        self._some = threading.Event()
        threading.Thread(target=self._run, name="teller", daemon=True).start()

    def gather(self, message: Message) -> None:
        """Take a message."""
        with self._lock:
            self._waiting.append(message)
        self._some.set()

    def flush(self) -> None:
        """Publish what has gathered."""
        with self._lock:
            self._some.clear()
            waiting, self._waiting = self._waiting, []
        try:
            publish_together(waiting)
        except Exception:
            # Leases bring back what was not told; the next messages must still go.
            log.exception("not_told", messages=len(waiting))

    def _run(self) -> None:
        while True:
            self._some.wait()
            time.sleep(TOLD_TOGETHER_S)
            self.flush()


_threads: ThreadPoolExecutor | None = None
_teller: Teller | None = None


@worker_ready.connect
def _begin(sender: Any, **_: Any) -> None:
    """Have threads for what is done at once, where the pool is one of threads."""
    global _threads, _teller
    pool = sender.controller.pool
    if type(pool).__module__.endswith("thread"):
        _threads = ThreadPoolExecutor(int(sender.controller.concurrency or 1), thread_name_prefix="call")
        _teller = Teller()
        gather_all(_teller.gather)


@worker_shutdown.connect
def _end(**_: Any) -> None:
    if _teller is not None:
        _teller.flush()
