"""The profiles of Hypothesis, and the seed that repeats a run."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

from tests.support.hypothesis_profiles import configure, report_seed


@pytest.fixture(autouse=True)
def _same_profile_afterwards() -> Iterator[None]:
    name = settings.get_current_profile_name()
    yield
    settings.load_profile(name)


def configured(seed: str | None) -> Any:
    """Return a configuration of pytest after Hypothesis was configured for it."""
    config: Any = SimpleNamespace(option=SimpleNamespace(hypothesis_seed=seed))
    configure(config)
    return config


def test_ci_prints_a_new_seed_at_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    runs = [configured(None) for _ in range(3)]
    assert len({run.option.hypothesis_seed for run in runs}) > 1
    assert report_seed(runs[0]) == f"hypothesis: --hypothesis-seed={runs[0].option.hypothesis_seed}"
    assert (settings().derandomize, settings().deadline) == (False, None)


def test_a_seed_repeats_a_run_of_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert report_seed(configured("7")) == "hypothesis: --hypothesis-seed=7"
    assert settings().derandomize is False


def test_developers_get_the_same_examples_at_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert report_seed(configured(None)) == "hypothesis: the same examples at each run"
    assert (settings().derandomize, settings().deadline) == (True, None)
