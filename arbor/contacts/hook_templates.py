"""Texts with placeholders for fields of a JSON body: `{repository.full_name}`, `{/commits/0/message}`, `{}` for all of it.

A template only looks up keys and indexes. It has no conditions, loops or calls, because the bodies are written by others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arbor.errors import Invalid
from arbor.memory.content import check_line
from arbor.quotations import clip

TEMPLATE_LENGTH = 2_000
MAX_PLACEHOLDERS = 50
#: The most keys and indexes of one path.
_MAX_STEPS = 20
#: The most digits of an index.
_LONGEST_INDEX = 9
#: Characters of a text, and of an object or a list as JSON, that a placeholder is replaced with.
VALUE_LENGTH = 6_000
_NESTED_LENGTH = 2_000

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

#: A path's keys, and indexes as digits.
type Path = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FilledText:
    """A template with its placeholders replaced."""

    text: str
    #: The paths that the body does not have; each is an empty text.
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TextTemplate:
    """A text with placeholders, parsed."""

    #: Literal texts and paths, in order.
    parts: tuple[str | Path, ...]

    @classmethod
    def parse(cls, text: str, *, name: str) -> TextTemplate:
        """Parse a template, which errors call `name`. Raises Invalid."""
        check_line(name, text, TEMPLATE_LENGTH)
        parts: list[str | Path] = []
        end = 0
        for match in _PART.finditer(text):
            parts.append(text[end : match.start()])
            end = match.end()
            parts.append(_parse_part(match, name))
        parts.append(text[end:])
        count = sum(isinstance(part, tuple) for part in parts)
        if count > MAX_PLACEHOLDERS:
            raise Invalid(f"{name} has at most {MAX_PLACEHOLDERS} placeholders, got {count}")
        return cls(parts=tuple(part for part in parts if part != ""))

    def fill(self, body: Any) -> FilledText:
        """Replace the placeholders with values of a body."""
        texts: list[str] = []
        missing: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                texts.append(part)
                continue
            found, value = look_up(body, part)
            texts.append(value_text(value))
            if not found:
                missing.append(".".join(part))
        return FilledText(text="".join(texts), missing=tuple(missing))


def look_up(body: Any, path: Sequence[str]) -> tuple[bool, Any]:
    """Return whether a body has a path, and the value there; None without the path."""
    value = body
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and _is_index(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            return False, None
    return True, value


def _is_index(step: str) -> bool:
    return step.isdecimal() and step.isascii() and len(step) <= _LONGEST_INDEX


def value_text(value: Any) -> str:
    """Return a value as text: nothing for null, JSON for an object or a list."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clip(value, VALUE_LENGTH)
    if isinstance(value, (dict, list)):
        return clip(json.dumps(value, ensure_ascii=False), _NESTED_LENGTH)
    return json.dumps(value)


def _parse_part(match: re.Match[str], name: str) -> str | Path:
    part = match.group()
    if part in ("{{", "}}"):
        return part[0]
    if part in ("{", "}"):
        raise Invalid(
            f"{name} has a single {part!r} at character {match.start() + 1}: a placeholder is {{a.b}} or {{/a/b}},"
            f" and {part * 2!r} is a brace"
        )
    written = match.group(1).strip()
    path = _parse_path(written)
    if len(path) > _MAX_STEPS or ("" in path and not written.startswith("/")):
        raise Invalid(
            f"{name} has no path in {part!r}: a path has at most {_MAX_STEPS} keys and indexes, separated by full stops,"
            f" a.b.0, or each after a slash, /a/b/0"
        )
    return path


def _parse_path(text: str) -> Path:
    """Parse a path: a JSON pointer (RFC 6901) begins with a slash; otherwise full stops separate keys."""
    if text.startswith("/"):
        return tuple(step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/"))
    return tuple(text.split(".")) if text else ()
