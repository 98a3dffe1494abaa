"""Boundaries: what an agent does not do, whoever asks (seed 004, "Boundaries")."""

from __future__ import annotations

from enum import StrEnum


class BoundaryType(StrEnum):
    """What a boundary protects."""

    ETHICAL = "ethical"
    IDENTITY = "identity"
    RESOURCE = "resource"


class BoundaryResponse(StrEnum):
    """What happens at a boundary."""

    #: It is not done.
    REFUSE = "refuse"
    #: It is not done as asked; the agent says what it could do instead.
    NEGOTIATE = "negotiate"
    #: It is done, and noted.
    FLAG = "flag"
