"""Preferences: short texts under keys."""

from __future__ import annotations

import re

from arbor.errors import Invalid
from arbor.selves.values import check_text

#: Lengths of the row.
KEY_LENGTH = 60
VALUE_LENGTH = 300
#: The most preferences of an agent: each conversation's prompt shows some.
MAX_PREFERENCES = 50

_KEY = re.compile(r"[a-z0-9](?:[a-z0-9 _.-]*[a-z0-9])?")


def check_preference(key: str, value: str) -> tuple[str, str]:
    """Normalize key and value: the key in lower case, no white space around either. Raises Invalid."""
    key, value = key.strip().casefold(), value.strip()
    if len(key) > KEY_LENGTH or not _KEY.fullmatch(key):
        raise Invalid(
            f"a preference's key is 1 to {KEY_LENGTH} letters, digits, spaces, dots, dashes and underscores, got {key[:80]!r}"
        )
    check_text("a preference", value, longest=VALUE_LENGTH)
    if len(value.splitlines()) != 1:
        raise Invalid("a preference is one line")
    return key, value
