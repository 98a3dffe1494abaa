"""Parse a Markdown file with YAML front matter; each error has its line.

The file is untrusted: plain YAML values only, no anchors (they can multiply without
end), limited size and depth, and no character that a database or a prompt cannot contain.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import NoneType
from typing import Any

import yaml

from arbor.errors import DefinitionInvalid
from arbor.quotations import counted

MAX_FILE_LENGTH = 200_000
MAX_DEPTH = 12

FENCE = "---"
_CODE_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
# Matches in linear time: a lazy text before the closing marks would be tried at each character of a long row.
_HEADING = re.compile(r"#{1,2}\s+(.*[^\s#])?[\s#]*")

#: The longest front matter whose errors are explained by the loader in Python.
_EXPLAINED_LENGTH = 10_000
#: The loader in C, where it is installed, is ten times as fast. The one in Python explains errors better.
_FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_YAML_LINE_END = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")

#: The path of a value in the front matter: keys, and positions in lists.
type ValuePath = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True)
class FileFault:
    """An error in a file: its message, line (None: the whole file), and the path of the value or the heading of the section."""

    message: str
    line: int | None = None
    place: str = ""

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line else ""
        where = ", ".join(part for part in (line, self.place) if part)
        return f"{where}: {self.message}" if where else self.message


type _FrontParts = tuple[dict[str, Any], dict[ValuePath, int], list[FileFault]]


@dataclass(frozen=True, kw_only=True)
class FileSection:
    """A part of the body under a heading of level 1 or 2."""

    heading: str
    line: int
    text: str


@dataclass(frozen=True, kw_only=True)
class ParsedFile:
    """A parsed file: front matter, the line of each of its values, sections of the body, and faults."""

    front: dict[str, Any]
    lines: Mapping[ValuePath, int]
    sections: tuple[FileSection, ...]
    faults: tuple[FileFault, ...]


@dataclass(frozen=True, kw_only=True)
class FrontMatter:
    """The front matter of a file with the line of each of its values, the rows of the body after it, and faults."""

    front: dict[str, Any]
    lines: Mapping[ValuePath, int]
    body: list[str]
    #: The line of the body's first row.
    first_line: int
    faults: tuple[FileFault, ...]


def read_front_matter(text: str) -> FrontMatter:
    """Parse the front matter of a file; errors are in `faults`."""
    faults = list(_check_text(text))
    rows = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    closing = next((at for at, row in enumerate(rows) if at and row.rstrip() == FENCE), None)
    if not faults and (rows[0].rstrip() != FENCE or closing is None):
        faults.append(
            FileFault(
                line=1,
                message=f"the file begins with YAML front matter between two lines of {FENCE}; found none",
            )
        )
    if faults or closing is None:
        return FrontMatter(front={}, lines={}, body=[], first_line=1, faults=tuple(faults))
    header = "\n".join(rows[1:closing])
    numbers = _line_numbers(header)
    front, lines, front_faults = _read_front_matter(header, numbers, _FAST_LOADER)
    if front_faults and len(header) <= _EXPLAINED_LENGTH:
        front, lines, front_faults = _read_front_matter(header, numbers, yaml.SafeLoader)
    return FrontMatter(
        front=front,
        lines=lines,
        body=rows[closing + 1 :],
        first_line=closing + 2,
        faults=tuple(front_faults),
    )


def read_markdown_file(text: str) -> ParsedFile:
    """Parse a file; errors are in `faults`.

    If the front matter is not valid YAML, the sections are parsed all the same. Nothing is parsed of a file without front matter, or of
    one that is too long or contains characters that cannot be stored.
    """
    read = read_front_matter(text)
    sections, body_faults = _read_sections(read.body, first_line=read.first_line)
    return ParsedFile(
        front=read.front, lines=read.lines, sections=sections, faults=(*read.faults, *body_faults)
    )


def file_invalid[E: DefinitionInvalid](
    error: type[E], *, kind: str, name: object, faults: Iterable[FileFault]
) -> E:
    """Return the error of a file, which lists its faults in the order of their lines; `kind` is a word such as template."""
    # A value that is used for two parts yields the same fault twice.
    lines = [str(fault) for fault in dict.fromkeys(sorted(faults, key=lambda fault: fault.line or 0))]
    subject = f"{kind} {name}" if isinstance(name, str) else f"the {kind}"
    count = counted(len(lines), "fault")
    return error(f"{subject} has {count}:\n" + "\n".join(f"  {line}" for line in lines), faults=lines)


def path_text(path: ValuePath, *, inside: bool = False) -> str:
    """Format a path like `character.traits[2].intensity`; `inside`: as the continuation of another path.

    Characters that cannot be printed are escaped.
    """
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{_printable(part)}" for part in path)
    return text if inside else text.removeprefix(".")


def _printable(key: str) -> str:
    return key if key.isprintable() else repr(key)[1:-1]


def _check_text(text: str) -> Iterator[FileFault]:
    if len(text) > MAX_FILE_LENGTH:
        yield FileFault(message=f"a template has at most {MAX_FILE_LENGTH:,} characters, got {len(text):,}")
    elif fault := _storage_fault(text):
        yield FileFault(message=fault)


def _storage_fault(text: str) -> str | None:
    """Return why a text cannot be stored or sent; None if it can."""
    if "\x00" in text:
        return "contains a NUL character, which PostgreSQL cannot store; remove it"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "contains half of a surrogate pair, which is not a character; remove it"
    return None


def _line_numbers(header: str) -> list[int]:
    """Return the line of the file for each line of YAML, which also ends lines at characters such as U+2028."""
    # Front matter begins on the file's second line.
    numbers = [2]
    for end in _YAML_LINE_END.findall(header):
        numbers.append(numbers[-1] + end.endswith("\n"))
    return numbers


def _line_at(mark: Any, numbers: Sequence[int]) -> int:
    """Return the line of the file at a mark of YAML; the end of the text may be marked as a further line."""
    return numbers[min(mark.line, len(numbers) - 1)] if mark else numbers[0]


def _read_front_matter(text: str, numbers: Sequence[int], loader: Any) -> _FrontParts:
    """Return the values of the front matter, the line of each, and faults; `numbers` are the lines of YAML's lines."""
    first_line = numbers[0]
    try:
        if fault := _structure_fault(text, numbers, loader):
            return {}, {}, [fault]
        node = yaml.compose(text, Loader=loader)
        if node is None:
            return _unreadable("the front matter is empty", first_line)
        front = yaml.constructor.SafeConstructor().construct_document(node)
    except yaml.MarkedYAMLError as exc:
        line = _line_at(exc.problem_mark, numbers) if exc.problem_mark else None
        return _unreadable(f"the front matter is not valid YAML: {exc.problem or exc.context}", line)
    # The constructors of dates and numbers raise ValueError for a 13th month or a number of 5,000 digits, and
    # OverflowError for a number of 200 parts with colons.
    except (yaml.YAMLError, ValueError, OverflowError) as exc:
        return _unreadable(f"the front matter is not valid YAML: {exc}", first_line)
    # The constructors of values whose tag (!) names another type raise errors of their own.
    except (LookupError, AttributeError):
        return _unreadable("the front matter is not valid YAML: a value does not fit its tag (!)", first_line)
    if not isinstance(front, dict):
        got = "a list" if isinstance(front, list) else "a single value"
        return _unreadable(f"the front matter must be lines of `key: value`, got {got}", first_line)
    if not front:
        return _unreadable("the front matter is empty", first_line)
    lines: dict[ValuePath, int] = {}
    faults = list(_record_lines(node, (), numbers, lines))
    faults += [
        FileFault(line=line_of(lines, path), place=path_text(path), message=message)
        for path, message in _find_unstorable(front)
    ]
    return front, lines, faults


def _unreadable(message: str, line: int | None) -> _FrontParts:
    return {}, {}, [FileFault(line=line, message=message)]


def _structure_fault(text: str, numbers: Sequence[int], loader: Any) -> FileFault | None:
    """Return the fault of YAML with anchors or with nesting that would exhaust the stack; None without one."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        line = _line_at(event.start_mark, numbers)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            return FileFault(
                line=line,
                message="anchors and aliases (& and *) are not allowed; quote a text that begins so",
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            return FileFault(line=line, message=f"values are nested more than {MAX_DEPTH} deep")
    return None


def _record_lines(
    node: yaml.Node, path: ValuePath, numbers: Sequence[int], lines: dict[ValuePath, int]
) -> Iterator[FileFault]:
    """Record the line of every value; a repeated key is an error, because YAML would silently use the last one."""
    lines[path] = _line_at(node.start_mark, numbers)
    if isinstance(node, yaml.SequenceNode):
        for at, item in enumerate(node.value):
            yield from _record_lines(item, (*path, at), numbers, lines)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            child_path = (*path, str(key.value))
            is_repeated = child_path in lines
            yield from _record_lines(value, child_path, numbers, lines)
            lines[child_path] = _line_at(key.start_mark, numbers)
            if is_repeated:
                yield FileFault(
                    line=lines[child_path], place=path_text(child_path), message="is given twice; keep one"
                )


def _find_unstorable(value: object, path: ValuePath = ()) -> Iterator[tuple[ValuePath, str]]:
    """Find keys and values that JSON cannot represent, because the values are stored as JSON."""
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from _find_unstorable(item, (*path, at))
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                yield path, f"the key {key} must be text; put it in quotes"
            elif fault := _storage_fault(key):
                yield (*path, key), f"the key {fault}"
            yield from _find_unstorable(item, (*path, str(key)))
    elif isinstance(value, str):
        if fault := _storage_fault(value):
            yield path, fault
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, f"must be a finite number, got {value}"
    elif not isinstance(value, (bool, int, float, NoneType)):
        yield path, f"is read as a {type(value).__name__}; put it in quotes to make it text"


def line_of(lines: Mapping[ValuePath, int], path: ValuePath) -> int | None:
    """Return the line of a value, or of its nearest parent that has one."""
    return next((lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in lines), None)


def _read_sections(rows: list[str], *, first_line: int) -> tuple[tuple[FileSection, ...], list[FileFault]]:
    """Split the body at its headings of level 1 and 2; a # inside a code block is no heading."""
    starts: list[tuple[int, str]] = []
    code = ""
    for at, row in enumerate(rows):
        if fence := _CODE_FENCE.fullmatch(row):
            if not code:
                code = fence[1]
            elif fence[1].startswith(code) and not fence[2].strip():
                code = ""
        elif not code and (heading := _HEADING.fullmatch(row)):
            starts.append((at, heading[1] or ""))
    faults = []
    if code:
        faults.append(
            FileFault(
                line=first_line + len(rows) - 1, message=f"a code block is not closed: {code} is missing"
            )
        )
    before = rows[: starts[0][0]] if starts else rows
    first_text = next((at for at, row in enumerate(before) if row.strip()), None)
    if first_text is not None:
        faults.append(
            FileFault(
                line=first_line + first_text, message="text before the first section; put it under a heading"
            )
        )
    bounds = pairwise([*(at for at, _ in starts), len(rows)])
    sections = tuple(
        FileSection(heading=heading, line=first_line + at, text="\n".join(rows[at + 1 : end]).strip())
        for (at, end), (_, heading) in zip(bounds, starts, strict=True)
    )
    return sections, faults
