"""Times in requests."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

from arbor.clock import to_utc
from arbor.errors import Invalid


def _in_utc(at: datetime) -> datetime:
    try:
        return to_utc(at)
    except Invalid as error:
        # Pydantic reports a ValueError with the name of the field.
        raise ValueError(str(error)) from error


#: A time with a zone, read as UTC.
Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
