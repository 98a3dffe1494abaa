"""Count a tenant's latest heartbeats by hour and status."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from apps.tenants.statements import fetch

# In the database: thousands of rows would take longer to send and to read than to count.
_COUNTS = """
SELECT date_trunc('hour', latest.started_at, 'UTC'), latest.status, count(*) FROM (
    SELECT started_at, status FROM heartbeats_heartbeat
    WHERE tenant_id = %(tenant)s AND started_at >= %(since)s ORDER BY started_at DESC LIMIT %(most)s
) AS latest
GROUP BY 1, 2
"""


@dataclass(frozen=True, kw_only=True)
class HourlyCounts:
    """Numbers of heartbeats by status: of each hour (UTC) that had some, and in total."""

    by_hour: dict[datetime, Counter[str]]
    total: Counter[str]


def count_by_hour(*, since: datetime, most: int) -> HourlyCounts:
    """Count the latest `most` heartbeats of the current tenant that began at `since` or later. One statement."""
    by_hour: dict[datetime, Counter[str]] = {}
    total: Counter[str] = Counter()
    for hour, status, count in fetch(_COUNTS, since=since, most=most):
        by_hour.setdefault(hour, Counter())[status] = count
        total[status] += count
    return HourlyCounts(by_hour=by_hour, total=total)
