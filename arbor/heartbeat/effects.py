"""The writes of one leg of a heartbeat, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from uuid import UUID

from arbor.authority.approvals import NewApproval
from arbor.goals.backlog import Backlog
from arbor.goals.plans import LinkKind
from arbor.heartbeat.usage import BudgetLevel
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.memory.buffer import NewBufferItem
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
    """A change of the budget level, and the remainder in words."""

    before: BudgetLevel
    after: BudgetLevel
    left: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StateAfterHeartbeat:
    """The agent's state after a completed heartbeat."""

    heartbeats: int
    working_memory: WorkingMemory


@dataclass(frozen=True, kw_only=True)
class Effects:
    """The writes of a leg. Its new memories are placed by a need and committed with it."""

    #: One mapping for each recall: scores by memory id.
    recalls: tuple[Mapping[UUID, float], ...] = ()
    #: The locked backlog with its changes.
    backlog: Backlog | None = None
    #: Links of the heartbeat's memory to goals.
    goal_links: tuple[tuple[str, LinkKind], ...] = ()
    #: Procedures that intents followed, and whether that worked.
    practised: tuple[tuple[UUID, bool], ...] = ()
    #: Ids of new memories, and of derived ones with their sources.
    learned: tuple[UUID, ...] = ()
    derived: tuple[tuple[UUID, tuple[UUID, ...]], ...] = ()
    #: Percepts to mark as taken in.
    received_percepts: tuple[UUID, ...] = ()
    #: Subscriptions, and the positions after the signals that their agents have read.
    signal_positions: tuple[tuple[UUID, UUID], ...] = ()
    #: New buffer items, and texts to extract code snippets from.
    buffer_items: tuple[NewBufferItem, ...] = ()
    code: tuple[str, ...] = ()
    experiences: tuple[NewExperience, ...] = ()
    audit: tuple[AuditNote, ...] = ()
    #: Ids of grants that limit their uses, once for each use.
    capability_uses: tuple[str, ...] = ()
    #: New requests for approval, the ids of those whose actions were executed, and of withdrawn ones with the reasons.
    approvals: tuple[NewApproval, ...] = ()
    approvals_used: tuple[UUID, ...] = ()
    approvals_withdrawn: tuple[tuple[UUID, str], ...] = ()
    level: LevelChange | None = None
    afterwards: StateAfterHeartbeat | None = None
    #: Counts a nop; the reason if the agent becomes dormant.
    nop: bool = False
    dormant: str = ""

    def plus(self, **more: Any) -> Effects:
        """Return a copy with more effects: tuples are joined, other values replaced."""
        changed: dict[str, Any] = {
            name: (*getattr(self, name), *value) if name in _JOINED else value for name, value in more.items()
        }
        return replace(self, **changed)


_JOINED = frozenset(effect.name for effect in fields(Effects) if effect.default == ())
