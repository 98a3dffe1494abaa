"""Search for JSON objects in a model's text, with unambiguous repairs.

Repaired: code fences and prose around the object, a byte order mark, line breaks inside strings, trailing commas, single
quotes, Python's `True`, `False` and `None`, comments, escapes that JSON does not know. The text is read token by token, so
the inside of a string is never touched, and the result must be valid JSON: `'it's'` is not repaired. A truncated object
is never completed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

# A reply nests five deep; deep JSON overflows the stack of its readers.
MAX_DEPTH = 32
# Opening braces that are tried, because braces in prose begin no object.
MAX_TRIES = 32
# Tokens (strings, numbers, braces…) that are read in all tries together: a reply has a few hundred.
MAX_TOKENS = 100_000

_TOKEN = re.compile(
    r"""(?P<blank>\s++)
      | (?P<double>"(?:[^"\\]++|\\.)*+")
      | (?P<single>'(?:[^'\\]++|\\.)*+')
      | (?P<mark>[{}\[\]:,])
      | (?P<number>-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)
      | (?P<word>[A-Za-z]++)
      | (?P<comment>//[^\n]*+|/\*.*?\*/)""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {
    "true": "true",
    "false": "false",
    "null": "null",
    "True": "true",
    "False": "false",
    "None": "null",
    "NaN": "null",
    "Infinity": "null",
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
#: Characters that PostgreSQL cannot store: NUL, and halves of surrogate pairs.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(kw_only=True, slots=True)
class JsonObject:
    """A JSON object in a text: its position, the repairs, and values that a repeated key replaced."""

    value: dict[str, Any]
    start: int
    end: int
    repairs: list[str] = field(default_factory=list)
    repeated: list[tuple[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreadableObject:
    """An unreadable JSON object with one of the wanted keys; `fault` says why."""

    start: int
    fault: str
    #: Whether the text ends before the object does.
    cut_off: bool = False


def find_objects(text: str, *, keys: Collection[str]) -> Iterator[JsonObject | UnreadableObject]:
    """Yield the outermost JSON objects in a text, in order.

    A broken object with one of the `keys` ends the search, because the rest of the text could be a part of it. The search also ends
    after MAX_TRIES opening braces, each found object counted as one, or MAX_TOKENS tokens of text that is not valid JSON.
    """
    at, tokens = 0, MAX_TOKENS
    for _ in range(MAX_TRIES):
        start = text.find("{", at)
        if start < 0 or tokens <= 0:
            return
        parsed: JsonObject | UnreadableObject | None = _read_strict(text, start)
        if parsed is None:
            writer = _JsonWriter(keys)
            parsed = _read_lenient(text, start, writer, tokens)
            tokens -= writer.tokens
        if parsed is not None:
            yield parsed
        if isinstance(parsed, UnreadableObject):
            return
        at = parsed.end if parsed is not None else start + 1


def parse_storable(text: str) -> Any:
    """Return the value of a text that is JSON as a whole and can be stored as it is, without any repair.

    Raises ValueError with the reason, also for NaN, Infinity, NUL, halves of surrogate pairs and too deep nesting.
    """
    repairs: list[str] = []
    try:
        value = _clean(json.loads(text), 0, repairs)
    except RecursionError as error:
        raise ValueError(f"nested deeper than {MAX_DEPTH}") from error
    if repairs:
        raise ValueError("it has NaN, Infinity or characters that cannot be stored")
    return value


def is_storable(text: str) -> bool:
    """Return whether PostgreSQL can store the text as it is."""
    return _UNSTORABLE.search(text) is None


def storable(text: str) -> str:
    """Return the text with every character that PostgreSQL cannot store replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def _read_strict(text: str, start: int) -> JsonObject | None:
    """Read valid JSON, the common case, at the speed of the standard library."""
    try:
        return _decode(text, start)
    except (ValueError, RecursionError):
        return None


def _decode(text: str, start: int) -> JsonObject:
    repeated: list[tuple[str, Any]] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for key, item in pairs:
            if key in value:
                repeated.append((key, value[key]))
            value[key] = item
        return value

    # strict=False accepts line breaks inside strings.
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=collect)
    value, end = decoder.raw_decode(text, start)
    repairs: list[str] = []
    cleaned = _clean(value, 0, repairs)
    replaced = [(_clean(key, 0, repairs), _clean(item, 1, repairs)) for key, item in repeated]
    return JsonObject(
        value=cleaned, start=start, end=end, repairs=list(dict.fromkeys(repairs)), repeated=replaced
    )


def _clean(value: Any, depth: int, repairs: list[str]) -> Any:
    """Replace characters that cannot be stored; raises ValueError for too deep nesting."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, str):
        if value.isascii() and "\x00" not in value:
            return value
        cleaned = storable(value)
        if cleaned != value:
            repairs.append("characters that cannot be stored were replaced")
        return cleaned
    if isinstance(value, dict):
        return {_clean(key, depth, repairs): _clean(item, depth + 1, repairs) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, depth + 1, repairs) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        repairs.append("NaN or Infinity was taken as null")
        return None
    return value


def _read_lenient(
    text: str, start: int, writer: _JsonWriter, most: int
) -> JsonObject | UnreadableObject | None:
    """Read at most `most` tokens; return None for no object, or a broken one without the wanted keys."""
    at = start
    while writer.tokens < most and (match := _TOKEN.match(text, at)) and writer.write(match):
        at = match.end()
        if writer.depth == 0:
            return _read_written(start, at, writer)
    if not writer.saw_key:
        return None
    if at == len(text) or (text[at] in "\"'" and _TOKEN.match(text, at) is None):
        return UnreadableObject(start=start, fault="it ends before the object does", cut_off=True)
    return UnreadableObject(start=start, fault=f"at character {at}, near {_excerpt(text, at)!r}")


def _read_written(start: int, end: int, writer: _JsonWriter) -> JsonObject | UnreadableObject | None:
    written = "".join(writer.written)
    try:
        decoded = _decode(written, 0)
    except json.JSONDecodeError as error:
        fault = f"{error.msg}, near {_excerpt(written, error.pos)!r}"
    except (ValueError, RecursionError) as error:
        fault = str(error)
    else:
        decoded.start, decoded.end = start, end
        decoded.repairs = list(dict.fromkeys([*writer.repairs, *decoded.repairs]))
        return decoded
    return UnreadableObject(start=start, fault=fault) if writer.saw_key else None


def _excerpt(text: str, at: int) -> str:
    return text[max(at - 20, 0) : at + 20]


class _JsonWriter:
    """Writes the tokens of one object again, as JSON."""

    def __init__(self, keys: Collection[str]) -> None:
        self.written: list[str] = []
        self.repairs: list[str] = []
        self.tokens = 0
        self._closing: list[str] = []
        #: Whether one of the wanted keys was met in the outermost object.
        self.saw_key = False
        self._keys = keys

    def write(self, match: re.Match[str]) -> bool:
        """Write one token; False if JSON does not allow it."""
        lexeme = match.group()
        self.tokens += 1
        match match.lastgroup:
            case "mark":
                return self._mark(lexeme)
            case "double" | "single":
                self._string(lexeme)
            case "number":
                self.written.append(lexeme)
            case "word":
                if lexeme not in _WORDS:
                    return False
                if lexeme != _WORDS[lexeme]:
                    self.repairs.append(f"{lexeme} was taken as {_WORDS[lexeme]}")
                self.written.append(_WORDS[lexeme])
            case "comment":
                self.repairs.append("comments were left out")
        return True

    @property
    def depth(self) -> int:
        """Return the number of open objects and lists."""
        return len(self._closing)

    def _mark(self, lexeme: str) -> bool:
        if lexeme in "{[":
            self._closing.append("}" if lexeme == "{" else "]")
        elif lexeme in "}]":
            if self._closing.pop() != lexeme:
                return False
            if self.written[-1] == ",":
                self.written.pop()
                self.repairs.append("a trailing comma was left out")
        elif lexeme == ":" and self.depth == 1:
            self.saw_key = self.saw_key or self.written[-1].strip('"') in self._keys
        self.written.append(lexeme)
        return self.depth <= MAX_DEPTH

    def _string(self, lexeme: str) -> None:
        inside = lexeme[1:-1]
        if lexeme[0] == "'":
            self.repairs.append("single quotes were taken as double quotes")
        repaired = _ESCAPE.sub(self._escape, inside)
        if lexeme[0] == "'":
            # Inside double quotes, a double quote needs an escape, unless it has one already.
            repaired = re.sub(r'(\\.)|"', lambda found: found.group(1) or '\\"', repaired, flags=re.DOTALL)
        if _CONTROL.search(repaired):
            repaired = _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", repaired)
        self.written.append(f'"{repaired}"')

    def _escape(self, found: re.Match[str]) -> str:
        letter = found.group(1)
        if letter[0] == "u" and len(letter) == 5:
            return found.group()
        if letter in '"\\/bfnrt':
            return found.group()
        self.repairs.append("an escape that JSON does not know was taken literally")
        if letter == "'":
            return letter
        return letter if letter == "\n" else f"\\\\{letter}"
