"""Read and check the file of a skill for its editor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from apps.agents.models import Agent
from apps.console.pages.template_editor import FaultLine, fault_line, field_rows
from apps.knowledge.models import Skill
from apps.knowledge.services.skills import (
    FoundSkill,
    LatestVersions,
    find_skill,
    first_agents_with,
    latest_versions,
    skill_tokens,
    text_of,
)
from arbor.errors import SkillInvalid
from arbor.knowledge.skills import MAX_SKILL_LENGTH, SkillFile, parse_skill


@dataclass(frozen=True, kw_only=True)
class SkillEditorPage:
    """The editor: the text, what was found in it, and the stored skill."""

    text: str
    #: The tenant's skill that saving replaces; empty for a new one.
    name: str
    checked: bool = False
    faults: Sequence[FaultLine] = ()
    skill: SkillFile | None = None
    tokens: int = 0
    #: The stored skill that was opened.
    found: FoundSkill | None = None
    versions: LatestVersions | None = None
    users: Sequence[Agent] = ()

    text_length = MAX_SKILL_LENGTH

    @property
    def rows(self) -> int:
        """Return the height of the text's field in lines."""
        return field_rows(self.text)

    @property
    def replaces(self) -> bool:
        """Return whether saving stores a new version of the opened skill."""
        return self.skill is not None and self.skill.name == self.name


def open_skill(name: str) -> SkillEditorPage:
    """Open a skill, or an outline without a name. Raises NotFound."""
    if not name:
        return SkillEditorPage(text=OUTLINE, name="")
    page = check_skill_text(text_of(find_skill(name)), name=name)
    return page if page.found else _with_stored(page, name)


def check_skill_text(text: str, *, name: str) -> SkillEditorPage:
    """Check a text, and return the editor with its faults."""
    faults: Sequence[str] = ()
    skill = None
    try:
        skill = parse_skill(text)
    except SkillInvalid as error:
        faults = error.faults
    own = name if Skill.objects.filter(name=name).exists() else ""
    page = SkillEditorPage(
        text=text,
        name=own,
        checked=True,
        faults=[fault_line(fault, text.split("\n")) for fault in faults],
        skill=skill,
        tokens=skill_tokens(skill) if skill else 0,
    )
    return _with_stored(page, own) if own else page


def _with_stored(page: SkillEditorPage, name: str) -> SkillEditorPage:
    """Return the editor with the stored skill of the name."""
    found = find_skill(name)
    return replace(page, found=found, versions=latest_versions(found), users=first_agents_with(found.name))


#: The text of a new skill.
OUTLINE = """\
---
name: my-skill
description: What the skill is for, in a sentence.
version: "1.0"
tags: []
---
Use this when …

1. …
"""
