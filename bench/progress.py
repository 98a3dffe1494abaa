"""Report the progress of a benchmark on standard error, with elapsed time."""

from __future__ import annotations

import sys
import time

_started = time.monotonic()


def say(line: str) -> None:
    """Print a line of progress."""
    print(f"{time.monotonic() - _started:7.1f} s  {line}", file=sys.stderr, flush=True)
