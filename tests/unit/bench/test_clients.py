"""Concurrent benchmark clients, and the error of one that failed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from bench.support.clients import run_clients


def test_every_client_answers() -> None:
    def run(number: int, wait: Callable[[], object]) -> int:
        wait()
        return number * number

    assert run_clients(3, run) == [0, 1, 4]


def test_a_client_that_fails_before_all_are_ready_is_reported() -> None:
    def run(number: int, wait: Callable[[], object]) -> int:
        if number == 1:
            raise ValueError("no mind was loaded")
        wait()
        return number

    with pytest.raises(RuntimeError, match=r"client 1 failed:\n(.|\n)*no mind was loaded"):
        run_clients(3, run)


def test_a_client_that_is_killed_is_reported() -> None:
    def run(number: int, wait: Callable[[], object]) -> int:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        wait()
        return number

    with pytest.raises(RuntimeError, match="client 1 was killed"):
        run_clients(2, run)
