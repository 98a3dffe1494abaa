"""Boundaries of an agent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arbor_client.calls import Call, Id, Rows, delete, get, post, rows_of, segment
from arbor_client.groups import Group, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """A boundary in force."""

    name: str
    #: ethical, identity or resource.
    type: str
    #: refuse, negotiate or flag.
    response: str
    description: str
    patterns: list[str]
    examples: list[str]
    flexibility: float
    importance: float
    #: False: every agent has it.
    own: bool


@dataclass(frozen=True, kw_only=True)
class BoundaryList:
    """The boundaries of an agent, the most important first."""

    items: list[Boundary]
    #: The names of boundaries that do not apply.
    disabled: list[str]


@dataclass(frozen=True, kw_only=True)
class BoundaryMatch:
    """A boundary that applies to a text."""

    name: str
    response: str
    why: str


@dataclass(frozen=True, kw_only=True)
class ChangedBoundary:
    """A boundary that was changed."""

    name: str
    #: added, removed, switched off or restored.
    done: str


class Boundaries[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about boundaries."""

    @operation
    def list(self, agent_id: Id) -> Call[BoundaryList]:
        """Return the boundaries in force, and the names of the disabled ones."""
        return get(BoundaryList, f"/agents/{segment(agent_id)}/boundaries")

    @operation
    def add(
        self,
        agent_id: Id,
        name: str,
        *,
        type: str = "ethical",  # noqa: A002 (the name in the API)
        response: str = "refuse",
        description: str = "",
        patterns: Iterable[str] = (),
        examples: Iterable[str] = (),
        flexibility: float = 0.0,
        importance: float = 0.5,
    ) -> Call[ChangedBoundary]:
        """Add a boundary, which applies from the next heartbeat on; it replaces a default one of the same name."""
        body = {
            "name": name,
            "type": type,
            "response": response,
            "description": description,
            "patterns": patterns,
            "examples": examples,
            "flexibility": flexibility,
            "importance": importance,
        }
        return post(ChangedBoundary, f"/agents/{segment(agent_id)}/boundaries", body)

    @operation
    def remove(self, agent_id: Id, name: str) -> Call[ChangedBoundary | None]:
        """Remove an agent's own boundary, or disable a default one."""
        return delete(ChangedBoundary, f"/agents/{segment(agent_id)}/boundaries/{segment(name)}")

    @operation
    def restore(self, agent_id: Id, name: str) -> Call[ChangedBoundary]:
        """Restore a default boundary of an agent."""
        return post(ChangedBoundary, f"/agents/{segment(agent_id)}/boundaries/{segment(name)}/restore")

    @operation
    def check(self, agent_id: Id, text: str) -> Call[Rows[BoundaryMatch]]:
        """Return the boundaries that apply to a text. Nothing is stored."""
        return rows_of(post(BoundaryMatch, f"/agents/{segment(agent_id)}/check-boundaries", {"text": text}))
