"""Durations as definitions of workflows and the command line have them: `90s`, `30m`, `2h`, `7d`."""

from __future__ import annotations

import re
from datetime import timedelta

_DURATION = re.compile(r"(\d{1,7})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MAX_DURATION = timedelta(days=365)


def parse_duration(text: str) -> timedelta:
    """Parse a duration above zero. Raises ValueError."""
    match = _DURATION.fullmatch(text.strip())
    found = timedelta(seconds=int(match[1]) * _SECONDS[match[2]]) if match else timedelta()
    if not timedelta() < found <= MAX_DURATION:
        raise ValueError(f"a duration is like 90s, 30m, 2h or 7d, at most {MAX_DURATION.days}d, got {text!r}")
    return found


def format_duration(duration: timedelta) -> str:
    """Return the duration in its largest whole unit, or in seconds."""
    seconds = duration.total_seconds()
    for unit in ("d", "h", "m"):
        if seconds >= _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.0f}{unit}"
    return f"{seconds:.10g}s"
