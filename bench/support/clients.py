"""Run concurrent clients: processes that start together and return one result each."""

from __future__ import annotations

import multiprocessing
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

#: The longest that one client waits for the others to be ready.
_READY_WITHIN_S = 900.0


def run_clients[T](clients: int, run: Callable[[int, Callable[[], object]], T]) -> list[T]:
    """Call `run` in each of `clients` processes, with its number and a function that waits until all are ready; return the results.

    Raises RuntimeError, with the errors, if a client failed or was killed.
    """
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(clients, timeout=_READY_WITHIN_S)

    def client(number: int, sender: Connection) -> None:
        try:
            sender.send((run(number, ready.wait), ""))
        except threading.BrokenBarrierError:
            sender.send((None, f"client {number} did not run: another one failed, or was not ready in time"))
        except Exception:  # noqa: BLE001 (whatever it was, it is reported)
            # The others must not wait for a failed client.
            ready.abort()
            sender.send((None, f"client {number} failed:\n{traceback.format_exc()}"))

    processes = []
    receivers: dict[Any, int] = {}
    for number in range(clients):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=client, args=(number, sender))
        process.start()
        sender.close()
        processes.append(process)
        receivers[receiver] = number
    answers: dict[int, T] = {}
    errors: list[str] = []
    while receivers:
        answering: list[Any] = wait([*receivers])
        for connection in answering:
            number = receivers.pop(connection)
            try:
                answers[number], error = connection.recv()
            except EOFError:
                ready.abort()
                error = f"client {number} was killed"
            errors += [error] if error else []
    for process in processes:
        process.join()
    if errors:
        raise RuntimeError("\n".join(errors))
    return [answers[number] for number in range(clients)]
