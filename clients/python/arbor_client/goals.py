"""Goals of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import Call, PagedCall, get, listed, patch, post
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A goal."""

    id: UUID
    title: str
    description: str
    #: active, queued, backburner, completed or abandoned.
    state: str
    #: aspiration, objective or task.
    layer: str
    source: str
    #: The part that is done, 0 to 1.
    fraction: float
    parent_id: UUID | None
    blocked_by: str
    deadline: datetime | None
    effort: int
    created_at: datetime
    touched_at: datetime


class Goals[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about goals."""

    @listing
    def list(self, agent_id: UUID | str, *, state: str | None = None) -> PagedCall[Goal]:
        """List an agent's goals, the last changed first."""
        return listed(Goal, f"/agents/{agent_id}/goals", state=state)

    @operation
    def add(
        self,
        agent_id: UUID | str,
        title: str,
        *,
        description: str = "",
        layer: str = "objective",
        state: str | None = None,
        parent_id: UUID | str | None = None,
        deadline: datetime | None = None,
    ) -> Call[Goal]:
        """Add a goal; where the wanted state is full, it gets the next lower state with room."""
        body = {
            "title": title,
            "description": description,
            "layer": layer,
            "state": state,
            "parent_id": None if parent_id is None else str(parent_id),
            "deadline": None if deadline is None else deadline.isoformat(),
        }
        return post(Goal, f"/agents/{agent_id}/goals", body)

    @operation
    def get(self, agent_id: UUID | str, goal_id: UUID | str) -> Call[Goal]:
        """Return a goal."""
        return get(Goal, f"/agents/{agent_id}/goals/{goal_id}")

    @operation
    def change(
        self,
        agent_id: UUID | str,
        goal_id: UUID | str,
        *,
        state: str | None = None,
        reason: str | None = None,
        note: str | None = None,
        fraction: float | None = None,
        blocked_by: str | None = None,
    ) -> Call[Goal]:
        """Move a goal to another state, and record its progress; what is not given stays."""
        body = {
            "state": state,
            "reason": reason,
            "note": note,
            "fraction": fraction,
            "blocked_by": blocked_by,
        }
        return patch(Goal, f"/agents/{agent_id}/goals/{goal_id}", body)
