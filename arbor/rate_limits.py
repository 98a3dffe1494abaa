"""A limit of uses a minute for each of many keys, in the memory of one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

#: The number of keys beyond which a limiter forgets the keys without a recent use.
_MAX_KEYS = 10_000


@dataclass(kw_only=True)
class _Allowance:
    """The uses that are left to a key, and when they were counted."""

    left: float
    at: float


class RateLimiter:
    """Allows each key a number of uses a minute, as a token bucket: the uses of a key refill evenly, up to its limit."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._allowances: dict[object, _Allowance] = {}

    def seconds_to_wait(self, limits: dict[object, int], *, uses: int = 1) -> float:
        """Count uses against each key's limit a minute; return 0, or the seconds until they would be allowed.

        If one key has too few uses left, no key is charged. A limit of 0 is no limit.
        """
        now = self._clock()
        limits = {key: limit for key, limit in limits.items() if limit > 0}
        with self._lock:
            wait = max((self._wait(key, limit, uses, now) for key, limit in limits.items()), default=0.0)
            if not wait:
                for key in limits:
                    self._allowances[key].left -= uses
            if len(self._allowances) > _MAX_KEYS:
                self._forget(now)
        return wait

    def left(self, key: object) -> int:
        """Return the uses that a key had left after its last one; 0 for an unknown key."""
        with self._lock:
            allowance = self._allowances.get(key)
            return int(allowance.left) if allowance is not None else 0

    def _wait(self, key: object, limit: int, uses: int, now: float) -> float:
        per_second = limit / 60
        allowance = self._allowances.setdefault(key, _Allowance(left=limit, at=now))
        allowance.left = min(float(limit), allowance.left + (now - allowance.at) * per_second)
        allowance.at = now
        missing = min(uses, limit) - allowance.left
        return max(0.0, missing / per_second)

    def _forget(self, now: float) -> None:
        """Forget the keys without a use for a minute: they have all their uses again."""
        recent = {key: allowance for key, allowance in self._allowances.items() if now - allowance.at < 60}
        self._allowances = recent
