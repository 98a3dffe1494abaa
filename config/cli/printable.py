"""Make text printable: replace the control characters that drive a terminal."""

from __future__ import annotations

import re

#: C0 and C1 controls but tab and line feed, and what turns the direction of text around (the marks that only say which
#: way a letter runs stay: Hebrew and Arabic need them).
_DRIVING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
#: Replaces each of them.
_SHOWN = "\ufffd"
#: A longer line of an error quotes what somebody typed; its start and end say enough.
_LONGEST_LINE, _HEAD, _TAIL = 1_000, 600, 300


def printable(text: str) -> str:
    """Return the text with every character that drives a terminal shown as one that does not."""
    return _DRIVING.sub(_SHOWN, text.replace("\r\n", "\n"))


def escaped(json_text: str) -> str:
    """Return JSON in which those characters are escaped; what it says stays the same."""
    return _DRIVING.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text)


def error_text(message: object) -> str:
    """Return a printable error message: overlong lines lose their middle."""
    return "\n".join(_shortened(line) for line in printable(str(message)).split("\n"))


def _shortened(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_HEAD]}… {len(line) - _HEAD - _TAIL:,} characters …{line[-_TAIL:]}"
