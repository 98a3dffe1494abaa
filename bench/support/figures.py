"""Figures from samples, and the progress of a benchmark on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def quantile(samples: Sequence[float], share: float) -> float:
    """Return a quantile of the samples, by the share below it, 0 to 1; 0 without samples."""
    return round(float(np.quantile(np.asarray(samples), share)), 3) if len(samples) else 0.0


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format rows as lines of aligned columns, with a header of all keys."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, *([str(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


_started = time.monotonic()


def print_progress(line: str) -> None:
    """Print a line of progress."""
    print(f"{time.monotonic() - _started:7.1f} s  {line}", file=sys.stderr, flush=True)


def times_ms(
    work: Callable[[], object], rounds: int, *, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the durations of rounds in milliseconds; a first round, which opens connections, does not count."""
    work()
    durations = []
    for _ in range(rounds):
        started = clock()
        work()
        durations.append((clock() - started) * 1000)
    return durations
