"""The folders of global skills: `NAME/SKILL.md` each, read and checked together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from arbor.errors import SkillInvalid
from arbor.knowledge.skills import MAX_SKILL_LENGTH, SkillFile, parse_skill

#: The file of a skill, in a folder of the skill's name.
FILE_NAME = "SKILL.md"
#: The most skills of one folder that are read.
MAX_FILES = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreadableSkill:
    """A file that is not a valid skill, with the reason."""

    path: str
    fault: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderSkills:
    """The skills in some folders by name, and the files that could not be read."""

    skills: dict[str, SkillFile]
    unreadable: tuple[UnreadableSkill, ...]


def shipped_folder() -> Path:
    """Return the folder of the skills that come with Arbor."""
    return Path(str(resources.files("arbor.knowledge"))) / "global_skills"


def stamp_of(folders: Sequence[Path]) -> tuple[tuple[str, int, int], ...]:
    """Return paths, times and sizes of the skills' files, for a cheap check for changes."""
    paths, _ = _files(folders)
    return tuple(_stamp(path) for path in paths)


def read_folders(folders: Sequence[Path]) -> FolderSkills:
    """Read the skills of folders; a later folder's skill replaces an earlier one's of the same name."""
    skills: dict[str, SkillFile] = {}
    unreadable: list[UnreadableSkill] = []
    paths, left_out = _files(folders)
    for path in paths:
        try:
            skill = _read(path)
        except (SkillInvalid, OSError, UnicodeDecodeError) as error:
            unreadable.append(UnreadableSkill(path=str(path), fault=str(error)))
        else:
            skills[skill.name] = skill
    unreadable += (
        UnreadableSkill(path=str(path), fault=f"not read: a folder has at most {MAX_FILES:,} skills")
        for path in left_out
    )
    return FolderSkills(skills=skills, unreadable=tuple(unreadable))


def _read(path: Path) -> SkillFile:
    with path.open(encoding="utf-8", newline="") as file:
        skill = parse_skill(file.read(MAX_SKILL_LENGTH + 1))
    if skill.name != path.parent.name:
        raise SkillInvalid(
            f"the skill is named {skill.name!r}, and its folder {path.parent.name!r}; name them alike"
        )
    return skill


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:
        # A link to a missing file, or a file that is gone by now.
        return str(path), 0, 0
    return str(path), status.st_mtime_ns, status.st_size


def _files(folders: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return the files of the skills in folders, and those beyond the limit of their folder."""
    found = [sorted(folder.glob(f"*/{FILE_NAME}")) for folder in folders]
    first = [path for paths in found for path in paths[:MAX_FILES]]
    return first, [path for paths in found for path in paths[MAX_FILES:]]
