"""Targets of the memory engine, compared with figures of benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from bench import memory
from bench.memory import BARS, Bar, measure

REACHED: dict[str, dict[str, Any]] = {
    "recall": {
        "p95_ms": 15,
        "cold_p95_ms": 30,
        "times_faster": 5.0,
        "flat": 1.2,
        "exact": True,
        "index_only": True,
        "queries": 3.0,
        "concurrent_p95_ms": 12.5,
        "concurrent_per_s": 250,
        "index_bytes_per_memory": 900,
    },
    "store": {"memories_per_s": 2_000},
    "neighborhoods": {"neighborhoods_per_s": 814},
    "locomo": {"recall_at_10": 0.72, "recall_at_20": 0.8, "index_bytes_per_memory": 640},
}


def run_with(figures: dict[str, dict[str, Any]]) -> tuple[dict[str, Any], list[tuple[str, Sequence[str]]]]:
    calls: list[tuple[str, Sequence[str]]] = []

    def run(name: str, options: Sequence[str]) -> dict[str, Any]:
        calls.append((name, options))
        return figures[name]

    return measure(data=Path("dialogs.json"), agents=30, run=run), calls


def test_the_four_benchmarks_run_in_order_and_every_bar_is_judged() -> None:
    report, calls = run_with(REACHED)
    assert calls == [
        ("recall", ("--agents", "30")),
        ("store", ()),
        ("neighborhoods", ()),
        ("locomo", ("--data", "dialogs.json")),
    ]
    assert report["reached"] is True
    assert [bar["figure"] for bar in report["bars"]] == [REACHED[bar.benchmark][bar.key] for bar in BARS]
    assert report["figures"] == REACHED


@pytest.mark.parametrize("bar", BARS, ids=lambda bar: f"{bar.benchmark} {bar.key}")
def test_each_bar_can_be_missed(bar: Bar) -> None:
    worse = False if bar.sign == "is" else bar.limit + (0.01 if bar.sign in {"≤", "<"} else -0.01)
    report, _ = run_with({**REACHED, bar.benchmark: {**REACHED[bar.benchmark], bar.key: worse}})
    assert report["reached"] is False
    assert [bar["key"] for bar in report["bars"] if not bar["reached"]] == [bar.key]


def test_an_unmeasured_figure_misses_its_bar() -> None:
    report, _ = run_with({**REACHED, "store": {}})
    (missed,) = [bar for bar in report["bars"] if not bar["reached"]]
    assert (missed["figure"], missed["bar"]) == (None, "≥ 2000")


def test_a_benchmark_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(click.ClickException, match="the benchmark store ended with exit code 1"):
        memory._run_benchmark("store", ())
