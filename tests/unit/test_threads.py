"""Threads of tests: an error of their work fails the test that joins them."""

from __future__ import annotations

import threading

import pytest

from tests.support.threads import in_own_connection


def test_a_thread_raises_the_error_of_its_work_when_joined() -> None:
    def fail() -> None:
        raise ValueError("no boat")

    with pytest.raises(ValueError, match="no boat"):
        in_own_connection(fail).join(10)


def test_a_thread_that_does_not_end_is_reported() -> None:
    ended = threading.Event()
    thread = in_own_connection(ended.wait)
    with pytest.raises(TimeoutError, match="has not ended"):
        thread.join(0.01)
    ended.set()
    thread.join(10)
