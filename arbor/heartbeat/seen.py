"""The base of all parts of a situation."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Fraction = Annotated[float, Field(ge=0, le=1)]


class Seen(BaseModel):
    """A part of a situation. Unknown keys are ignored: another version of Arbor may resume a heartbeat."""

    model_config = ConfigDict(frozen=True)
