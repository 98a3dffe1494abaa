"""Read text files and standard input."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from arbor.errors import Invalid


def read_text(file: TextIO | Path) -> str:
    """Read a whole file, or standard input. Raises Invalid for text that is not UTF-8, and for a file that cannot be read."""
    try:
        return file.read_text(encoding="utf-8") if isinstance(file, Path) else file.read()
    except UnicodeDecodeError as error:
        raise Invalid(f"{_name_of(file)} must be text in UTF-8") from error
    except OSError as error:
        raise Invalid(f"{_name_of(file)} cannot be read: {error.strerror}") from error


def read_secret_text(file: TextIO | Path) -> str:
    """Read a secret without the blanks around it. Raises Invalid for an empty text, besides the errors of `read_text`."""
    secret = read_text(file).strip()
    if not secret:
        raise Invalid(f"{_name_of(file)} must contain a secret, but is empty")
    return secret


def _name_of(file: TextIO | Path) -> str:
    if isinstance(file, Path):
        return str(file)
    name: str = getattr(file, "name", "<stdin>")
    return "standard input" if name == "<stdin>" else name
