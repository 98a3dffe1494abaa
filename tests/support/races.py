"""Concurrent operations that start at the same moment, each on a database connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID

from django.db import connections

from apps.tenants.scope import tenant_transaction

#: The longest that a thread waits for the others; after that the barrier breaks, and the test fails.
_PATIENCE_S = 60


def race[T](*operations: Callable[[], T]) -> list[T]:
    """Start all operations together and return their results in order. Raises the first error."""
    barrier = Barrier(len(operations))

    def run(operation: Callable[[], T]) -> T:
        try:
            barrier.wait(_PATIENCE_S)
            return operation()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(operations)) as pool:
        return list(pool.map(run, operations))


def in_tenant[T](tenant_id: UUID, operation: Callable[..., T], **arguments: object) -> Callable[[], T]:
    """Return the operation with its arguments, in a transaction of the tenant."""

    def run() -> T:
        with tenant_transaction(tenant_id):
            return operation(**arguments)

    return run


def none_if_refused[T](operation: Callable[[], T], *refusals: type[Exception]) -> Callable[[], T | None]:
    """Return an operation that returns None where the given one is refused because another operation was first."""

    def run() -> T | None:
        try:
            return operation()
        except refusals:
            return None

    return run
