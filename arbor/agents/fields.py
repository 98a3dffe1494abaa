"""The kinds of field that characters and templates are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

# Every agent carries its template in its prompt on every heartbeat, so each text has a ceiling.
LINE_LENGTH = 300
PROSE_LENGTH = 8_000
LIST_LENGTH = 50

#: How every value of this package behaves: it never changes, and an unknown key is a fault, not a shrug.
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
