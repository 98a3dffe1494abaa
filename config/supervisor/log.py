"""One readable log of all parts: the time, the part's name in its color, the line without secrets."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable
from datetime import datetime
from io import TextIOWrapper
from typing import TextIO

_RESET, _DIM, _BOLD = "\033[0m", "\033[2m", "\033[1m"
_RED, _YELLOW = "\033[31m", "\033[33m"
#: Bright colors without red and yellow, which mark problems.
_COLORS = ("\033[36m", "\033[32m", "\033[35m", "\033[34m", "\033[96m", "\033[92m", "\033[95m", "\033[94m")
_MASK = "••••"
#: The shortest secret that is masked, because shorter words occur by chance.
_SHORTEST_SECRET = 8

_URL_PASSWORD = re.compile(r"(://[^\s:/@]*:)[^\s@/]+@")
_ERROR = re.compile(r"\b(?:ERROR|CRITICAL|FATAL|PANIC|Traceback|error)\b")
_WARNING = re.compile(r"\b(?:WARNING|warning)\b")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class Mask:
    """Hides known secrets, and the password of any URL."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({text for text in secrets if len(text) >= _SHORTEST_SECRET}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, line: str) -> str:
        """Return the line with every secret replaced."""
        if self._known is not None:
            line = self._known.sub(_MASK, line)
        return _URL_PASSWORD.sub(rf"\1{_MASK}@", line)


class Log:
    """Writes the lines of all parts to one stream, in color on a terminal."""

    def __init__(self, names: Iterable[str], *, mask: Mask, stream: TextIO | None = None) -> None:
        names = list(names)
        self._stream = stream or sys.stdout
        if isinstance(self._stream, TextIOWrapper):
            # A terminal without UTF-8 must not end the installation either.
            self._stream.reconfigure(errors="replace")
        self._mask = mask
        self._is_colored = self._stream.isatty()
        self._width = max([len(name) for name in names], default=0)
        self._color = {name: _COLORS[index % len(_COLORS)] for index, name in enumerate(names)}

    def write(self, name: str, text: str) -> None:
        """Write one line of a part's output."""
        # A part's own escape codes could move the cursor or change later colors.
        text = self._mask(_CONTROL.sub("", text.rstrip()))
        if not text:
            return
        tone = _RED if _ERROR.search(text) else _YELLOW if _WARNING.search(text) else ""
        self._write(name, text, tone)

    def report(self, text: str, *, name: str = "arbor", alarm: bool = False) -> None:
        """Write one line of the supervisor itself."""
        self._write(name, self._mask(text), f"{_RED}{_BOLD}" if alarm else _BOLD)

    def _write(self, name: str, text: str, tone: str) -> None:
        time = f"{datetime.now().astimezone():%H:%M:%S}"
        label = name.ljust(self._width)
        if self._is_colored:
            color = self._color.get(name, "")
            line = f"{_DIM}{time}{_RESET} {color}{label} │{_RESET} {tone}{text}{_RESET if tone else ''}\n"
        else:
            line = f"{time} {label} | {text}\n"
        # A full disk, or a pipe whose reader has ended, must not end the installation.
        with contextlib.suppress(OSError):
            self._stream.write(line)
            self._stream.flush()
