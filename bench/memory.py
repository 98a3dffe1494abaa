"""Compare four benchmarks of the memory engine with their targets, each on its own servers."""

from __future__ import annotations

import json
import operator
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from bench.support.figures import print_progress

type Figures = Mapping[str, Any]

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {"≤": operator.le, "<": operator.lt, "≥": operator.ge, "is": operator.is_}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The target of a benchmark's figure."""

    what: str
    benchmark: str
    key: str
    sign: str
    limit: float | bool

    def judge(self, figures: Mapping[str, Figures]) -> dict[str, Any]:
        """Compare the bar with its figure and return both; a missing figure does not reach the bar."""
        figure = figures.get(self.benchmark, {}).get(self.key)
        return {
            "what": self.what,
            "benchmark": self.benchmark,
            "key": self.key,
            "bar": f"{self.sign} {str(self.limit).lower() if self.sign == 'is' else self.limit}",
            "figure": figure,
            "reached": figure is not None and _COMPARISONS[self.sign](figure, self.limit),
        }


def _bars() -> Iterator[Bar]:
    for what, benchmark, key, sign, limit in (
        ("recall, p95 in ms", "recall", "p95_ms", "≤", 15),
        ("recall of a mind that is not cached, p95 in ms", "recall", "cold_p95_ms", "≤", 30),
        ("recall, times faster than through the table", "recall", "times_faster", "≥", 5),
        ("scan, times as long as in a store with a tenth of the agents", "recall", "flat", "≤", 1.2),
        ("recall, equal to the scan and to brute force", "recall", "exact", "is", True),
        ("recall, by the index alone", "recall", "index_only", "is", True),
        ("recall, statements", "recall", "queries", "<", 8),
        ("recall by many at once, p95 in ms", "recall", "concurrent_p95_ms", "≤", 100),
        ("recalls by many at once, per second", "recall", "concurrent_per_s", "≥", 250),
        ("index, bytes per memory", "recall", "index_bytes_per_memory", "≤", 900),
        ("index, bytes per memory of real dialogs", "locomo", "index_bytes_per_memory", "≤", 900),
        ("memories stored per second", "store", "memories_per_s", "≥", 2_000),
        ("neighborhoods per second", "neighborhoods", "neighborhoods_per_s", "≥", 200),
        ("evidence recall @10", "locomo", "recall_at_10", "≥", 0.72),
        ("evidence recall @20", "locomo", "recall_at_20", "≥", 0.79),
    ):
        yield Bar(what=what, benchmark=benchmark, key=key, sign=sign, limit=limit)


#: With 100 agents of 10,000 memories each, 16 clients and two cores.
BARS: Sequence[Bar] = tuple(_bars())


def measure(
    *, data: Path, agents: int, run: Callable[[str, Sequence[str]], Figures] | None = None
) -> dict[str, Any]:
    """Return every bar with its figure, whether all are reached, and all figures of the four benchmarks.

    `run` measures one benchmark, given its name and options; by default in a process of its own.
    """
    options: Mapping[str, Sequence[str]] = {
        "recall": ("--agents", str(agents)),
        "store": (),
        "neighborhoods": (),
        "locomo": ("--data", str(data)),
    }
    figures = {name: (run or _run_benchmark)(name, arguments) for name, arguments in options.items()}
    bars = [bar.judge(figures) for bar in BARS]
    return {"reached": all(bar["reached"] for bar in bars), "bars": bars, "figures": figures}


def _run_benchmark(name: str, options: Sequence[str]) -> Figures:
    """Run a benchmark in a process of its own, because a process reads the addresses of its servers only once."""
    print_progress(f"bench {name}")
    command = [sys.executable, "-m", "bench", name, *options, "--json"]
    # In a session of its own, so that a second Ctrl-C does not interrupt the removal of its servers.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            # The benchmark removes its servers and data before it ends.
            process.terminate()
            process.wait()
            raise
    if process.returncode:
        raise click.ClickException(f"the benchmark {name} ended with exit code {process.returncode}")
    figures: Figures = json.loads(output.strip().splitlines()[-1])
    return figures
