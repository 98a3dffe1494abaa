"""Limits of seeds that are read, so that no file can exhaust memory, disk or time."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class SeedLimits:
    """The largest seed that is read."""

    #: Bytes of the file, and of its content without compression.
    compressed_bytes: int = 512 * MEGABYTE
    uncompressed_bytes: int = 2048 * MEGABYTE
    #: The largest ratio of the two; contents of up to `free_bytes` may have any.
    ratio: int = 200
    free_bytes: int = 16 * MEGABYTE
    #: Bytes of one row, and rows of all sections.
    row_bytes: int = 4 * MEGABYTE
    rows: int = 5_000_000


#: The largest header, in bytes.
MAX_HEADER = 64 * 1024
#: The largest window of a zstd frame, as a power of two: 8 MB of memory.
MAX_WINDOW_LOG = 23
