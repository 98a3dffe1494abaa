"""Row identifiers that sort by time."""

from __future__ import annotations

import secrets
import time
from uuid import UUID


def uuid7() -> UUID:
    """Return a UUID of version 7 (RFC 9562, 5.7): 48 bits of milliseconds, then 74 random bits.

    New rows land at the right edge of a B-tree, so inserting many touches few pages.
    """
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (1 << 48) - 1) << 80
    value |= 0x7 << 76
    value |= secrets.randbits(12) << 64
    value |= 0b10 << 62
    value |= secrets.randbits(62)
    return UUID(int=value)
