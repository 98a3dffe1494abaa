"""Times in requests."""

from __future__ import annotations

from datetime import time
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

from arbor.clock import in_utc


def _without_zone(at: time) -> time:
    if at.tzinfo is not None:
        # The column has no zone: the offset would be lost.
        raise ValueError("a time of the day has no offset; time_zone names its zone")
    return at


#: A time with a zone, read as UTC.
Moment = Annotated[AwareDatetime, AfterValidator(in_utc)]
#: A time of the day, in a zone that another field names.
TimeOfDay = Annotated[time, AfterValidator(_without_zone)]
