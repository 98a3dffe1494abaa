"""What a benchmark says while it runs: on standard error, with the time since its start."""

from __future__ import annotations

import sys
import time

_started = time.monotonic()


def say(line: str) -> None:
    """Tell the person who waits how far it is."""
    print(f"{time.monotonic() - _started:7.1f} s  {line}", file=sys.stderr, flush=True)
