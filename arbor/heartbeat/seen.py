"""What every part of a situation has in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Fraction = Annotated[float, Field(ge=0, le=1)]


class Seen(BaseModel):
    """A part of a situation. An unknown key is ignored: a beat may be resumed by an older or newer Arbor."""

    model_config = ConfigDict(frozen=True)
