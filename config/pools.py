"""The pools of workers with their queues and concurrency. `arbor up` and `compose.yaml` run one of each."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum

from config.environment import whole_number


class PoolKind(StrEnum):
    """The kinds of concurrency of a worker."""

    #: Processes: for work that computes.
    PREFORK = "prefork"
    #: Threads: for work that waits.
    THREADS = "threads"


@dataclass(frozen=True, kw_only=True)
class WorkerPool:
    """One kind of worker process."""

    name: str
    queues: tuple[str, ...]
    kind: PoolKind
    concurrency: int
    #: The settings of its processes that differ from those of other pools.
    env: dict[str, str] = field(default_factory=dict)


#: The tasks at once in the process that waits for models; each needs a thread's stack, but no database connection.
MODEL_THREADS = 200
#: The database connections that these threads share while they do not wait.
MODEL_CONNECTIONS = 20


def model_connections() -> int:
    """Return the number of database connections that the threads of one process share."""
    return whole_number("ARBOR_MODEL_CONNECTIONS", default=MODEL_CONNECTIONS, least=0, most=10_000)


def worker_pools() -> tuple[WorkerPool, ...]:
    """Return the pools, with the numbers of threads and connections from the settings."""
    return (
        WorkerPool(name="dispatcher", queues=("dispatch",), kind=PoolKind.PREFORK, concurrency=1),
        WorkerPool(
            name="heartbeat", queues=("heartbeat",), kind=PoolKind.PREFORK, concurrency=os.cpu_count() or 2
        ),
        WorkerPool(
            name="model",
            queues=("llm", "embedding", "outbox"),
            kind=PoolKind.THREADS,
            concurrency=whole_number("ARBOR_MODEL_THREADS", default=MODEL_THREADS, least=1, most=10_000),
            env={"ARBOR_DB_POOL_SIZE": str(model_connections())},
        ),
        WorkerPool(
            name="maintenance",
            queues=("neighborhoods", "episodes", "decay", "cleanup", "consolidation", "documents"),
            kind=PoolKind.PREFORK,
            concurrency=1,
        ),
    )


POOLS = worker_pools()
