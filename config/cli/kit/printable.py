"""Make text printable: replace the characters that control a terminal or have no encoding."""

from __future__ import annotations

import re

#: C0 and C1 controls except tab and line feed, the characters that override the direction of text, and halves of surrogate
#: pairs, which have no encoding. (Marks of direction are not replaced: Hebrew and Arabic need them.)
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
#: The replacement of a control character.
_REPLACEMENT = "\ufffd"
#: The longest line of an error, and the first and last characters that are shown of a longer line, which quotes an input.
_LONGEST_LINE, _HEAD, _TAIL = 1_000, 600, 300


def printable(text: str) -> str:
    """Return the text with every control character replaced."""
    return _CONTROL_CHARACTERS.sub(_REPLACEMENT, text.replace("\r\n", "\n"))


def escaped(json_text: str) -> str:
    """Return JSON with control characters escaped; its value stays the same."""
    return _CONTROL_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


def error_text(message: object) -> str:
    """Return a printable error message: overlong lines lose their middle."""
    return "\n".join(_shorten(line) for line in printable(str(message)).split("\n"))


def _shorten(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_HEAD]}… {len(line) - _HEAD - _TAIL:,} characters …{line[-_TAIL:]}"
