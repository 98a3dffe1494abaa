"""The limit of requests a minute of each token, over all protocols."""

from __future__ import annotations

import math
from dataclasses import dataclass

from django.conf import settings

from apps.access.services import TokenAccess
from arbor.errors import RateLimited
from arbor.quotations import counted
from arbor.rate_limits import RateLimiter

#: Shared by all threads of the process.
limiter = RateLimiter()


@dataclass(frozen=True, kw_only=True)
class RequestRate:
    """The requests that a token may make a minute, and the requests that are left."""

    most: int
    left: int
    #: Seconds until the request would be allowed; 0 if it is allowed now.
    wait_s: int

    def headers(self) -> dict[str, str]:
        """Return the headers that show the limit to clients."""
        # The limit refills evenly: a full refill takes a minute at most, and the header is never 0.
        return {
            "RateLimit-Limit": str(self.most),
            "RateLimit-Remaining": str(self.left),
            "RateLimit-Reset": str(max(self.wait_s, 60 if not self.left else 1)),
        }

    def require_allowed(self) -> None:
        """Raise RateLimited unless the request is allowed."""
        if self.wait_s:
            raise RateLimited(
                f"a token may make {counted(self.most, 'request')} a minute; try again in {self.wait_s} s",
                retry_after_s=self.wait_s,
            )


def count_request(access: TokenAccess) -> RequestRate | None:
    """Count a request against the limit of its token, and return the rate; None without a limit."""
    most: int = settings.ARBOR_API_PER_MINUTE
    if not most:
        return None
    wait = limiter.seconds_to_wait({access.token_id: most})
    return RequestRate(most=most, left=limiter.left(access.token_id), wait_s=math.ceil(wait))
