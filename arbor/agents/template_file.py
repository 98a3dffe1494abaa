"""The file format of a template: the keys and sections that its parts are read from."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from arbor.agents.markdown_file import (
    FileFault,
    FileSection,
    ParsedFile,
    ValuePath,
    line_of,
    path_text,
    read_markdown_file,
)

#: The path that each section of the body sets.
SECTIONS: Mapping[str, ValuePath] = {
    "Description": ("description",),
    "Nature": ("character", "nature"),
    "Background": ("character", "background"),
    "Domain Context": ("character", "domain_context"),
    "Instructions": ("character", "instructions"),
    "Pipeline": ("pipeline",),
}
#: Keys at the top level of the front matter that belong to the character, and their paths. An agent begins with the template's values
#: beside those that the character has of its own.
CHARACTER_KEYS: Mapping[str, ValuePath] = {
    "relationship_style": ("character", "relationship_style"),
    "values": ("character", "values"),
}
#: The keys of CHARACTER_KEYS that belong to the template as well.
SHARED_KEYS = frozenset({"values"})

_DOT_BLOCK = re.compile(
    r"(?P<fence>`{3,}|~{3,})\s*dot[^\n]*\n(?P<dot>(?:(?!```|~~~).)*?)\n?(?P=fence)\s*", re.DOTALL
)
_DOT_FENCE = re.compile(r"^(`{3,}|~{3,})\s*dot\b", re.MULTILINE)
# A list, code, table, quotation, heading or hard break: text whose line ends mean something.
_STRUCTURED_LINE = re.compile(r"\s*(?:[-*+>|#]|\d{1,3}[.)]\s|```|~~~|\S.*( {2}|\\)$)|\t| {4}")
_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(.*)")


@dataclass(frozen=True, kw_only=True)
class ReadTemplate:
    """A template's parts, not yet validated, and their positions in the file."""

    parts: dict[str, Any]
    parsed: ParsedFile
    #: For parts whose position in the file differs from their path: the line and the name of that position.
    moved: Mapping[ValuePath, tuple[int | None, str]]
    faults: tuple[FileFault, ...]

    def locate(self, path: ValuePath) -> tuple[int | None, str]:
        """Return the line and the path of a part in the file."""
        for end in range(len(path), 0, -1):
            if moved_to := self.moved.get(path[:end]):
                line, place = moved_to
                if place in CHARACTER_KEYS:
                    line = line_of(self.parsed.lines, (place, *path[end:]))
                return line, place + path_text((*path[end:],), inside=True)
        return line_of(self.parsed.lines, path), path_text(path)


def read_template_file(text: str) -> ReadTemplate:
    """Parse a template file into its parts; errors are in `faults`."""
    file = read_markdown_file(text)
    parts = copy.deepcopy(file.front)
    moved: dict[ValuePath, tuple[int | None, str]] = {}
    faults = [*file.faults, *_move_keys(parts, file, moved)]
    read_names: set[str] = set()
    for section in file.sections:
        name = next((name for name in SECTIONS if name.casefold() == section.heading.casefold()), None)
        place = f"## {section.heading}"
        if name is None:
            message = f"unknown section; the sections are {', '.join(SECTIONS)}"
            faults.append(FileFault(line=section.line, place=place, message=message))
        elif name in read_names:
            faults.append(FileFault(line=section.line, place=place, message="is given twice; keep one"))
        else:
            read_names.add(name)
            faults += _place_section(parts, moved, name, section)
    return ReadTemplate(parts=parts, parsed=file, moved=moved, faults=tuple(faults))


def translate_errors(
    error: ValidationError, read: ReadTemplate, model: type[BaseModel]
) -> Iterator[FileFault]:
    """Translate validation errors into faults, each with its line and path in the file.

    A value that could not be parsed is not reported again.
    """
    unparsed = {fault.place for fault in read.parsed.faults if fault.place}
    for detail in error.errors(include_url=False):
        line, place = read.locate(detail["loc"])
        above = (read.locate(detail["loc"][:end])[1] for end in range(1, len(detail["loc"])))
        if not any(part in unparsed and place.startswith(part) for part in (place, *above)):
            yield FileFault(line=line, place=place, message=_describe_error(detail, model))


def _move_keys(
    parts: dict[str, Any], file: ParsedFile, moved: dict[ValuePath, tuple[int | None, str]]
) -> Iterator[FileFault]:
    for key, path in CHARACTER_KEYS.items():
        if key not in parts:
            continue
        value = parts[key] if key in SHARED_KEYS else parts.pop(key)
        if path[-1] in _parent_of(parts, path):
            if key not in SHARED_KEYS:
                yield _duplicate_fault(file.lines.get((key,)), key, path)
        elif _set_value(parts, path, value):
            moved[path] = (file.lines.get((key,)), key)


def _place_section(
    parts: dict[str, Any], moved: dict[ValuePath, tuple[int | None, str]], name: str, section: FileSection
) -> Iterator[FileFault]:
    path, place = SECTIONS[name], f"## {name}"
    value: str | list[str] = _join_lines(section.text)
    if name == "Pipeline":
        block = _DOT_BLOCK.fullmatch(section.text)
        if block is None or not block["dot"].strip():
            yield FileFault(
                line=section.line, place=place, message="must be one block fenced as ```dot, and nothing else"
            )
            return
        value = block["dot"]
    elif _DOT_FENCE.search(section.text):
        yield FileFault(
            line=section.line, place=place, message="a pipeline's ```dot block belongs under ## Pipeline"
        )
    elif not section.text:
        yield FileFault(line=section.line, place=place, message="is empty; write it or leave the heading out")
    elif name == "Instructions":
        value = list(_split_items(section.text))
    if path[-1] in _parent_of(parts, path):
        yield _duplicate_fault(section.line, place, path)
    elif _set_value(parts, path, value):
        moved[path] = (section.line, place)


def _duplicate_fault(line: int | None, place: str, path: ValuePath) -> FileFault:
    return FileFault(
        line=line,
        place=place,
        message=f"is given here and as {path_text(path)} in the front matter; keep one",
    )


def _parent_of(parts: dict[str, Any], path: ValuePath) -> Mapping[str, Any]:
    """Return the mapping that contains the last key of a path of one or two keys."""
    parent = parts if len(path) == 1 else parts.get(str(path[0]))
    return parent if isinstance(parent, dict) else {}


def _set_value(parts: dict[str, Any], path: ValuePath, value: object) -> bool:
    """Put a value at a path; False if a part of the path is no mapping (which is a fault of its own)."""
    parent = parts if len(path) == 1 else parts.setdefault(str(path[0]), {})
    if not isinstance(parent, dict):
        return False
    parent[str(path[-1])] = value
    return True


def _join_lines(text: str) -> str:
    """Join the lines of each plain paragraph; their line breaks have no meaning."""
    if any(_STRUCTURED_LINE.match(row) for row in text.split("\n")):
        return text
    return "\n\n".join(" ".join(row.strip() for row in part.split("\n")) for part in text.split("\n\n"))


def _split_items(text: str) -> Iterator[str]:
    """Split instructions: the items of a list, or else paragraphs; a wrapped line continues what it follows."""
    current: list[str] = []
    for row in [*text.split("\n"), ""]:
        item = _ITEM.fullmatch(row)
        if current and (item or not row.strip()):
            yield " ".join(current)
            current = []
        if row.strip():
            current.append(item[1].strip() if item else row.strip())


def _describe_error(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """Return a message with the allowed values for a validation error."""
    context, given = detail.get("ctx", {}), detail["input"]
    match detail["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return f"is not a known key; known: {', '.join(_known_keys(model, detail['loc'][:-1]))}"
        case "string_too_short":
            return "must not be empty"
        case "string_too_long":
            return f"must have at most {context['max_length']} characters, got {len(str(given))}"
        case "too_long":
            return f"must have at most {context['max_length']} items, got {context['actual_length']}"
        case "too_short":
            return f"must have at least {context['min_length']} item"
        case "greater_than_equal":
            return f"must be at least {_number(context['ge'])}, got {given}"
        case "less_than_equal":
            return f"must be at most {_number(context['le'])}, got {given}"
        case "enum":
            return f"must be one of {context['expected']}, got {given!r}"
        case "string_type":
            return f"must be text, got {given!r}; put it in quotes" if _is_scalar(given) else "must be text"
        case "value_error":
            return str(context["error"])
    return detail["msg"].replace("Input should be", "must be", 1) + (
        f", got {given!r}" if _is_scalar(given) else ""
    )


def _number(value: float) -> str:
    """Format a limit without rounding it, a whole number as such."""
    return f"{value:.15g}"


def _is_scalar(value: object) -> bool:
    return isinstance(value, (str, int, float, bool))


def _known_keys(model: type[BaseModel], path: ValuePath) -> Iterable[str]:
    """List the keys allowed at a path of the file."""
    model_here = model
    for part in path:
        if isinstance(part, str):
            model_here = next(_models_in(model_here.model_fields[part].annotation), model_here)
    return [
        *model_here.model_fields,
        *(() if model_here is not model else sorted(CHARACTER_KEYS.keys() - SHARED_KEYS)),
    ]


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
