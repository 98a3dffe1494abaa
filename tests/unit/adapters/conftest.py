"""A running server that stands for a provider of models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.support.stub_process import RunningStub, stub_model


@pytest.fixture(scope="module")
def stub() -> Iterator[RunningStub]:
    with stub_model() as running:
        yield running
