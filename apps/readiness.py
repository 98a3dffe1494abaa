"""Check within a bounded time whether the database and the broker answer, for probes of the web processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass

import structlog
from django.conf import settings
from django.db import connections
from kombu import Connection

from apps.tenants.scope import APP

log = structlog.get_logger(__name__)

#: Seconds until a server counts as not answering.
WITHIN_S = 3


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """The servers that a process needs, each with whether it answers."""

    database: bool
    broker: bool

    @property
    def ready(self) -> bool:
        """Return whether all servers answer."""
        return self.database and self.broker

    def as_json(self) -> dict[str, bool]:
        """Return each server with whether it answers."""
        return asdict(self)


class BoundedCheck:
    """A check that runs once at a time in a thread of its own, however many requests wait for it.

    A server that hangs blocks this thread, and no request for longer than the given time.
    """

    def __init__(self, name: str, check: Callable[[], None]) -> None:
        """Name the check; `check` raises if the server does not answer."""
        self._name = name
        self._check = check
        self._lock = threading.Lock()
        self._running: Future[bool] | None = None

    def start(self) -> Future[bool]:
        """Start the check unless it runs already, and return its future result."""
        with self._lock:
            if self._running is None or self._running.done():
                running: Future[bool] = Future()
                threading.Thread(
                    target=self._run, args=(running,), name=f"ready-{self._name}", daemon=True
                ).start()
                # After the start, which fails where the system has no thread left: then the next request tries again.
                self._running = running
            return self._running

    def _run(self, result: Future[bool]) -> None:
        try:
            self._check()
        except Exception as error:  # noqa: BLE001 (whatever it is, the server does not answer)
            log.warning("readiness_check_failed", server=self._name, error=type(error).__name__)
            result.set_result(False)
        else:
            result.set_result(True)


def check_readiness(*, within_s: float = WITHIN_S) -> Readiness:
    """Return which servers answer within this time. Both are asked at once."""
    database, broker = _DATABASE.start(), _BROKER.start()
    in_time = wait([database, broker], timeout=within_s).done
    return Readiness(
        database=database in in_time and database.result(), broker=broker in in_time and broker.result()
    )


def _query_database() -> None:
    connection = connections[APP]
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        # The thread ends, and its connection with it.
        connection.close()


def _connect_broker() -> None:
    timeouts = {"socket_connect_timeout": WITHIN_S, "socket_timeout": WITHIN_S}
    with Connection(
        settings.CELERY_BROKER_URL, connect_timeout=WITHIN_S, transport_options=timeouts
    ) as connection:
        connection.ensure_connection(max_retries=1, timeout=WITHIN_S)


_DATABASE = BoundedCheck("database", _query_database)
_BROKER = BoundedCheck("broker", _connect_broker)
