"""Skills: SKILL.md files, parsed from Markdown with YAML front matter, and the rules of choosing them.

The format is that of the open Agent Skills specification (agentskills.io), with the further keys `tags` and `version`.
A skill grants nothing: what an agent may do is decided by its capabilities.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, JsonValue, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from arbor.agents.markdown_file import (
    FileFault,
    FrontMatter,
    file_invalid,
    line_of,
    path_text,
    read_front_matter,
)
from arbor.errors import Invalid, LimitReached, SkillInvalid

#: The most skills of one agent (`active_skills`).
MAX_SKILLS = 5
#: The most characters of a file: some 25,000 tokens.
MAX_SKILL_LENGTH = 100_000
MAX_NAME = 64
MAX_DESCRIPTION = 1_024
MAX_VERSION = 40
MAX_TAGS = 20
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

_Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40)]


class SkillFront(BaseModel, frozen=True, extra="forbid", strict=True):
    """The front matter of a SKILL.md file."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]
    description: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_DESCRIPTION)
    ]
    version: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_VERSION)] = ""
    tags: Annotated[list[_Tag], Field(max_length=MAX_TAGS)] = []
    # Keys of the specification for other programs: read and stored with the text, without effect here.
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, JsonValue] = {}
    allowed_tools: Annotated[str | list[str], Field(alias="allowed-tools")] = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SkillFile:
    """A valid SKILL.md file; `text` is the whole file, and `body` its instructions."""

    name: str
    description: str
    version: str
    tags: tuple[str, ...]
    body: str
    text: str

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the text, which names this version."""
        return digest_of(self.text)


def digest_of(text: str) -> str:
    """Return the digest of a SKILL.md file's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def parse_skill(text: str) -> SkillFile:
    """Parse a SKILL.md file. Raises SkillInvalid; its message and `faults` list all faults, each with line and key."""
    if len(text) > MAX_SKILL_LENGTH:
        message = f"a skill has at most {MAX_SKILL_LENGTH:,} characters, got {len(text):,}: split it"
        raise file_invalid(SkillInvalid, kind="skill", name=None, faults=[FileFault(message=message)])
    read = read_front_matter(text)
    faults = list(read.faults)
    front = None
    if read.front:
        try:
            front = SkillFront.model_validate(read.front)
        except ValidationError as error:
            faults += _translated(error, read)
        else:
            faults += _name_faults(front.name, read)
    body = "\n".join(read.body).strip()
    if not faults and not body:
        faults.append(
            FileFault(line=read.first_line, message="the body is empty: write the instructions there")
        )
    if front is None or faults:
        raise file_invalid(SkillInvalid, kind="skill", name=read.front.get("name"), faults=faults)
    return SkillFile(
        name=front.name,
        description=" ".join(front.description.split()),
        version=front.version,
        tags=tuple(dict.fromkeys(front.tags)),
        body=body,
        text=text,
    )


def body_of(text: str) -> str:
    """Return the instructions of a valid SKILL.md file."""
    return "\n".join(read_front_matter(text).body).strip()


def check_choice(names: Sequence[str]) -> None:
    """Check the number of an agent's skills. Raises LimitReached for more than MAX_SKILLS, Invalid for a repeated name."""
    if len(names) > MAX_SKILLS:
        raise LimitReached(f"an agent has at most {MAX_SKILLS} active skills, got {len(names)}")
    for position, name in enumerate(names):
        if name in names[:position]:
            raise Invalid(f"the skill {name!r} is named twice; name each skill once")


@dataclass(frozen=True, kw_only=True, slots=True)
class SkillRoom:
    """The tokens of a model's window that an agent's skills have to share with the rest of a prompt."""

    #: `provider/model`.
    model: str
    window: int
    #: The longest reply.
    reply: int
    #: The tokens of instructions, actions and character, which are never cut either.
    fixed: int
    #: The least tokens that a situation needs.
    situation: int

    @property
    def left(self) -> int:
        """Return the tokens that the skills may take."""
        return self.window - self.reply - self.fixed - self.situation


def check_room(tokens: dict[str, int], room: SkillRoom) -> None:
    """Check that whole skills fit a window; `tokens` are theirs by name. Raises LimitReached, which names the sizes."""
    total = sum(tokens.values())
    if total <= room.left:
        return
    sizes = ", ".join(f"{name} {count:,}" for name, count in tokens.items())
    raise LimitReached(
        f"the skills take {total:,} tokens ({sizes}), and a prompt for {room.model} has room for {max(room.left, 0):,}: its window"
        f" of {room.window:,} also contains the rules, actions and character ({room.fixed:,}), the situation (at least"
        f" {room.situation:,}) and the reply ({room.reply:,}). Skills are never cut: choose fewer or shorter ones, or a model"
        " with a larger window"
    )


def _name_faults(name: str, read: FrontMatter) -> Iterator[FileFault]:
    if not _NAME.fullmatch(name):
        yield FileFault(
            line=line_of(read.lines, ("name",)),
            place="name",
            message=f"must be lower-case letters and digits, in words joined by single hyphens, got {name!r}",
        )


def _translated(error: ValidationError, read: FrontMatter) -> Iterator[FileFault]:
    """Translate validation errors, each with its line and key."""
    for detail in error.errors(include_url=False):
        path = tuple(part for part in detail["loc"] if part not in ("str", "list[str]"))
        yield FileFault(line=line_of(read.lines, path), place=path_text(path), message=_fault(detail))


def _fault(detail: ErrorDetails) -> str:
    match detail["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            known = [field.alias or name for name, field in SkillFront.model_fields.items()]
            return f"is not a known key; known: {', '.join(known)}"
        case "string_type":
            return f"must be text, got {detail['input']!r}; put it in quotes"
        case "string_too_long":
            return (
                f"must have at most {detail['ctx']['max_length']:,} characters, got {len(detail['input']):,}"
            )
        case "string_too_short":
            return "must not be empty"
        case "too_long":
            return (
                f"must have at most {detail['ctx']['max_length']} items, got {detail['ctx']['actual_length']}"
            )
        case "list_type":
            return "must be a list of words, such as [finance, invoices]"
    return detail["msg"]
