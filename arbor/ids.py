"""Row identifiers that sort by time."""

from __future__ import annotations

import secrets
import threading
import time
from datetime import UTC, datetime
from uuid import UUID

_lock = threading.Lock()
_last_time_step = 0


def next_time_step() -> int:
    """Return the time in steps of 1/4096 ms, of 60 bits, greater than any step that this process returned before."""
    global _last_time_step
    step = (time.time_ns() << 12) // 1_000_000
    with _lock:
        _last_time_step = step = max(step, _last_time_step + 1)
    return step


def uuid7() -> UUID:
    """Return a UUID of version 7 (RFC 9562, 5.7 and 6.2 method 3), greater than any that this process made before.

    The first 60 free bits are the time in steps of 1/4096 ms, so rows made in order sort in order; new rows land at
    the right edge of a B-tree, and inserting many touches few pages. The last 62 bits are random.
    """
    step = next_time_step()
    value = (step >> 12) << 80
    value |= 0x7 << 76
    value |= (step & 0xFFF) << 64
    value |= 0b10 << 62
    value |= secrets.randbits(62)
    return UUID(int=value)


def read_id(text: str | UUID | None) -> UUID | None:
    """Parse an id, or return None for an invalid one."""
    if text is None or isinstance(text, UUID):
        return text
    try:
        return UUID(text)
    except ValueError:
        return None


def time_of(row_id: UUID) -> datetime:
    """Return the time of a UUID of version 7, to the millisecond."""
    return datetime.fromtimestamp((row_id.int >> 80) / 1000, tz=UTC)
