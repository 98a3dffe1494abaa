"""The self-knowledge of an agent, its growth log and versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import Call, Id, Rows, get, post, rows_of, segment
from arbor_client.groups import Group, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Quality:
    """A trait, value or capability."""

    name: str
    #: 0 to 1: of a value its importance, of a capability the proficiency.
    strength: float
    questioned: bool


@dataclass(frozen=True, kw_only=True)
class SelfKnowledge:
    """The traits, values and capabilities of an agent, as its system prompt shows them."""

    #: The version of the self; each change makes another.
    version: int
    traits: list[Quality]
    values: list[Quality]
    capabilities: list[Quality]
    system_prompt: str


@dataclass(frozen=True, kw_only=True)
class SelfChange:
    """A change of a self; without `before` the part is new, without `after` it is gone."""

    id: UUID
    version: int
    #: birth, aspect, belief, preference or boundary.
    what: str
    target_id: UUID
    before: dict[str, Any]
    after: dict[str, Any]
    proposal_id: UUID | None
    decided_by: str
    reason: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class PartDifference:
    """A difference of one part of a self between two versions."""

    #: aspect, belief, preference or boundary.
    part: str
    target_id: UUID
    #: added, removed or changed.
    difference: str
    #: Of an aspect its kind, such as trait; else the part.
    kind: str
    name: str
    before: dict[str, Any]
    after: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SelfVersion:
    """A version of a self, with the changes that led to it."""

    number: int
    at: datetime
    decided_by: str
    reason: str
    changes: list[PartDifference]


@dataclass(frozen=True, kw_only=True)
class VersionDiff:
    """The differences between two versions of a self."""

    earlier: int
    later: int
    differences: list[PartDifference]


@dataclass(frozen=True, kw_only=True)
class Rollback:
    """The result of a rollback: the restored version, and the new version that the rollback is."""

    to: int
    version: int
    differences: list[PartDifference]


class SelfHistory[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about the history of a self."""

    @operation
    def knowledge(self, agent_id: Id) -> Call[SelfKnowledge]:
        """Return an agent's traits, values and capabilities."""
        return get(SelfKnowledge, f"/agents/{segment(agent_id)}/self")

    @operation
    def growth(self, agent_id: Id, *, limit: int = 100) -> Call[Rows[SelfChange]]:
        """Return the latest changes of an agent's self, the latest first."""
        return rows_of(get(SelfChange, f"/agents/{segment(agent_id)}/self/changes", limit=limit), under="")

    @operation
    def versions(self, agent_id: Id) -> Call[Rows[SelfVersion]]:
        """Return the versions that can be compared and restored: the ten latest, and the birth."""
        return rows_of(get(SelfVersion, f"/agents/{segment(agent_id)}/self/versions"), under="")

    @operation
    def diff(self, agent_id: Id, earlier: int, later: int | None = None) -> Call[VersionDiff]:
        """Compare two versions; the later one is the self of today by default."""
        return get(VersionDiff, f"/agents/{segment(agent_id)}/self/diff", earlier=earlier, later=later)

    @operation
    def roll_back(
        self, agent_id: Id, version: int, *, parts: Sequence[str] = (), reason: str = ""
    ) -> Call[Rollback]:
        """Restore parts of a self, by default all, as they were at a version. The rollback is a version too."""
        body = {"version": version, "reason": reason, "parts": parts or None}
        return post(Rollback, f"/agents/{segment(agent_id)}/self/rollback", body)
