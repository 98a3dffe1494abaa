"""The pools of workers: which queues each serves, and how. `arbor up` and `compose.yaml` run one of each."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum

from config.environment import env


class PoolKind(StrEnum):
    """How a worker runs several tasks at once."""

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
    #: Settings of its processes that differ from the others'.
    env: dict[str, str] = field(default_factory=dict)


#: Tasks at once in the process that waits for models; each costs a thread's stack, and no database connection.
MODEL_THREADS = 200
#: Database connections that those threads share while they do not wait.
MODEL_CONNECTIONS = 20


def model_connections() -> int:
    """Return how many database connections the threads of one process share."""
    connections: int = env.int("ARBOR_MODEL_CONNECTIONS", default=MODEL_CONNECTIONS)
    return connections


def worker_pools() -> tuple[WorkerPool, ...]:
    """Return the pools, with as many threads and connections as the settings want."""
    return (
        WorkerPool(name="dispatcher", queues=("dispatch",), kind=PoolKind.PREFORK, concurrency=1),
        WorkerPool(
            name="heartbeat", queues=("heartbeat",), kind=PoolKind.PREFORK, concurrency=os.cpu_count() or 2
        ),
        WorkerPool(
            name="model",
            queues=("llm", "embedding", "outbox"),
            kind=PoolKind.THREADS,
            concurrency=env.int("ARBOR_MODEL_THREADS", default=MODEL_THREADS),
            env={"ARBOR_DB_POOL_SIZE": str(model_connections())},
        ),
        WorkerPool(
            name="maintenance",
            queues=("neighborhoods", "episodes", "decay", "cleanup", "consolidation"),
            kind=PoolKind.PREFORK,
            concurrency=1,
        ),
    )


POOLS = worker_pools()
