"""The times of a schedule: five fields of cron in a time zone."""

from __future__ import annotations

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from arbor.clock import find_time_zone
from arbor.errors import Invalid

_FIELDS = 5


def next_time(cron: str, zone: str, after: datetime) -> datetime:
    """Return the next time of a schedule after `after`, in UTC. Raises Invalid."""
    local = after.astimezone(find_time_zone(zone))
    if len(cron.split()) != _FIELDS:
        raise Invalid(
            f"a schedule has five fields, minute, hour, day, month and weekday, as in `0 7 * * 1-5`; got {cron!r}"
        )
    try:
        return next(CronSim(cron, local)).astimezone(UTC)
    except CronSimError as error:
        raise Invalid(f"the schedule {cron!r} is not valid: {error}") from error
    except StopIteration as error:
        raise Invalid(f"the schedule {cron!r} has no time within the next 50 years") from error
