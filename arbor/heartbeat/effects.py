"""The effects of one leg of a heartbeat: everything that is written when it suspends or ends, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from uuid import UUID

from arbor.goals.backlog import Backlog
from arbor.goals.plans import LinkKind
from arbor.heartbeat.usage import Degradation
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.memory.buffer import ToHold
from arbor.selves.experiences import NewExperience
from arbor.values import replace


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditNote:
    """An event for the audit log; `action` is an `apps.audit.models.AuditAction`."""

    action: str
    message: str
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class LevelChange:
    """A change of the level of the day's budget, and what is left of it in words."""

    before: Degradation
    after: Degradation
    left: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Afterwards:
    """The agent's state after a beat that ran to its end."""

    beats: int
    working_memory: WorkingMemory


@dataclass(frozen=True, kw_only=True)
class Effects:
    """What a leg brings about. Memories that it stores are placed by a need, and written with its effects."""

    #: Memories that came to mind, by id with their scores: one mapping for each recall.
    recalls: tuple[Mapping[UUID, float], ...] = ()
    #: The backlog that the leg has opened, with its changes.
    backlog: Backlog | None = None
    #: Ties of the memory of the beat to goals.
    goal_links: tuple[tuple[str, LinkKind], ...] = ()
    #: New memories that were learned in this beat, and new ones with those that they were made from.
    learned: tuple[UUID, ...] = ()
    derived: tuple[tuple[UUID, tuple[UUID, ...]], ...] = ()
    #: Percepts that the beat has taken in.
    heard: tuple[UUID, ...] = ()
    #: What is held for a while without being remembered, and texts whose code is kept.
    held: tuple[ToHold, ...] = ()
    code: tuple[str, ...] = ()
    experiences: tuple[NewExperience, ...] = ()
    audit: tuple[AuditNote, ...] = ()
    level: LevelChange | None = None
    afterwards: Afterwards | None = None
    #: No reply could be used: counted, and the reason for which the agent becomes dormant, if it does.
    nop: bool = False
    dormant: str = ""

    def plus(self, **more: Any) -> Effects:
        """Return these effects and more: tuples are joined, other values replaced."""
        changed: dict[str, Any] = {
            name: (*getattr(self, name), *value) if name in _JOINED else value for name, value in more.items()
        }
        return replace(self, **changed)


_JOINED = frozenset(each.name for each in fields(Effects) if each.default == ())
