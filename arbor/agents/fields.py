"""Field types of characters and templates."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

# A template is part of its agents' prompts at every heartbeat, so the length of each text is limited.
LINE_LENGTH = 300
PROSE_LENGTH = 8_000
LIST_LENGTH = 50

#: Configuration of all models of this package: immutable, unknown keys refused.
FROZEN = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

#: A short text on one line or a few: a name, a trait, a value.
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LINE_LENGTH)]
#: As Line, and may be left out.
OptionalLine = Annotated[str, StringConstraints(strip_whitespace=True, max_length=LINE_LENGTH)]
#: A paragraph or several.
Prose = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=PROSE_LENGTH)]
#: As Prose, and may be left out.
OptionalProse = Annotated[str, StringConstraints(strip_whitespace=True, max_length=PROSE_LENGTH)]
#: A number from 0 to 1. Strict: the text "0.5" and the word `true` are not numbers.
Fraction = Annotated[float, Field(strict=True, ge=0, le=1)]

Lines = Annotated[tuple[Line, ...], Field(max_length=LIST_LENGTH)]
Proses = Annotated[tuple[Prose, ...], Field(max_length=LIST_LENGTH)]
