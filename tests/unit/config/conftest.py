"""The environment of tests that run commands in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _environment_restored() -> Iterator[None]:
    """Restore the environment: a command that runs a process removes the secrets that the process does not use."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
