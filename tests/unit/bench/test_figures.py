"""Figures of the benchmarks, and their command lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import bench.__main__  # noqa: F401 (declares the benchmarks)
from bench.goals import BAR_MS, measure
from bench.locomo import place_of
from bench.support.figures import quantile
from bench.support.runner import cli

ROOT = Path(__file__).parents[3]


def test_a_quantile_lies_between_its_neighbors() -> None:
    assert quantile([4.0, 1.0, 2.0, 3.0], 0.5) == 2.5
    assert quantile([1.0], 0.95) == 1.0
    assert quantile([], 0.95) == 0.0


def test_turns_of_a_dialog_are_in_the_order_of_their_numbers() -> None:
    assert sorted(["D10:1", "D1:10", "D1:2"], key=place_of) == ["D1:2", "D1:10", "D10:1"]


#: Print the help of each benchmark, all in one process.
HELP = """
import runpy, sys
for name in sys.argv[1:]:
    print("---", name)
    sys.argv = ["bench", name, "--help"]
    try:
        runpy.run_module("bench", run_name="__main__")
    except SystemExit as ended:
        assert not ended.code, (name, ended.code)
"""
BENCHMARKS = tuple(cli.commands)


def test_every_benchmark_prints_its_help_without_starting_anything() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", HELP, *BENCHMARKS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    pages = dict(page.split("\n", 1) for page in shown.stdout.split("--- ")[1:])
    assert {"heartbeats", "recall", "goals"} <= set(BENCHMARKS)
    assert tuple(pages) == BENCHMARKS
    for name, text in pages.items():
        assert "--json" in text, name


def test_an_unknown_benchmark_is_refused() -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "bench", "nothing"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "No such command" in refused.stderr
    assert refused.stdout == ""


@pytest.mark.bar
def test_a_full_backlog_is_prioritized_within_its_bar() -> None:
    figures = measure(rounds=20)
    assert figures["goals"] == 50
    assert 0 < figures["p50_ms"] < BAR_MS
