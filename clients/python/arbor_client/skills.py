"""Skills, and the active skills of agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import Call, Id, Rows, delete, get, post, put, rows_of, segment
from arbor_client.groups import Group, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Skill:
    """A skill that the tenant's agents can use."""

    name: str
    description: str
    version: str
    tags: list[str]
    #: tenant or global.
    origin: str
    #: The SHA-256 of the file, which names this version.
    digest: str
    #: The estimated tokens of its instructions.
    tokens: int
    #: False: the skill's file is gone; only the agents that use the skill have it.
    is_present: bool
    #: The number of the tenant's agents that use it.
    agents: int
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class SkillVersion:
    """A version of a skill."""

    digest: str
    version: str
    created_by: str
    created_at: datetime
    is_current: bool


@dataclass(frozen=True, kw_only=True)
class SkillUser:
    """An agent that uses a skill."""

    id: UUID
    name: str


@dataclass(frozen=True, kw_only=True)
class SkillDetails(Skill):
    """A skill as it was written, with its versions, the latest first, and the agents that use it."""

    text: str
    #: The latest ones; `versions_total` counts all.
    versions: list[SkillVersion]
    versions_total: int
    users: list[SkillUser]


@dataclass(frozen=True, kw_only=True)
class CheckedSkill:
    """The name and version of a valid file."""

    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class DeletedSkill:
    """The name of a deleted skill."""

    name: str


class Skills[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about skills."""

    @operation
    def list(self) -> Call[Rows[Skill]]:
        """Return the skills that the tenant's agents can use: its own, and the global ones."""
        return rows_of(get(Skill, "/skills"))

    @operation
    def get(self, name: str) -> Call[SkillDetails]:
        """Return a skill as it was written."""
        return get(SkillDetails, f"/skills/{segment(name)}")

    @operation
    def check(self, text: str) -> Call[CheckedSkill]:
        """Check a SKILL.md file. Raises Unprocessable, which names every fault with its line."""
        return post(CheckedSkill, "/check-skill", {"text": text})

    @operation
    def add(self, text: str) -> Call[SkillDetails]:
        """Add a skill of the tenant. Raises Conflict if its name is in use."""
        return post(SkillDetails, "/skills", {"text": text})

    @operation
    def replace(self, text: str) -> Call[SkillDetails]:
        """Store a new version of the tenant's skill of the text's name; its agents follow it from their next prompt on."""
        return put(SkillDetails, "/skills", {"text": text})

    @operation
    def delete(self, name: str) -> Call[DeletedSkill | None]:
        """Delete a skill of the tenant that no agent uses."""
        return delete(DeletedSkill, f"/skills/{segment(name)}")

    @operation
    def active(self, agent_id: Id) -> Call[Rows[Skill]]:
        """Return the skills that an agent follows, in the order of its prompts."""
        return rows_of(get(Skill, f"/agents/{segment(agent_id)}/skills"))

    @operation
    def choose(self, agent_id: Id, names: Sequence[str]) -> Call[Rows[Skill]]:
        """Choose the skills that an agent follows, at most five. Raises Conflict for skills that do not fit its models."""
        return rows_of(put(Skill, f"/agents/{segment(agent_id)}/skills", {"names": names}))
