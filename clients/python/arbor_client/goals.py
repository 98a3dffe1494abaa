"""Goals of an agent and their plans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import (
    UNCHANGED,
    Call,
    Id,
    PagedCall,
    Rows,
    Unchanged,
    get,
    listed,
    patch,
    post,
    rows_of,
    segment,
)
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
    #: achieve, maintain, explore, learn, avoid, collaborate, improve or capability.
    type: str
    #: As it was stated, 0 to 100.
    priority: int
    source: str
    #: The part that is done, 0 to 1.
    fraction: float
    parent_id: UUID | None
    blocked_by: str
    deadline: datetime | None
    #: The heartbeats spent on it.
    effort: int
    created_at: datetime
    touched_at: datetime


@dataclass(frozen=True, kw_only=True)
class PlanStep:
    """A step of a plan."""

    position: int
    action: str
    description: str
    status: str


@dataclass(frozen=True, kw_only=True)
class NewStep:
    """A step to plan."""

    action: str
    description: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A plan with its steps."""

    id: UUID
    #: draft, active, completed or abandoned.
    status: str
    risk: float | None
    dependencies: list[str]
    #: The dependencies that are met.
    met: list[str]
    reason: str
    created_at: datetime
    steps: list[PlanStep]


class Goals[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about goals."""

    @listing
    def list(self, agent_id: Id, *, state: str | None = None) -> PagedCall[Goal]:
        """List an agent's goals, the last changed first."""
        return listed(Goal, f"/agents/{segment(agent_id)}/goals", state=state)

    @operation
    def add(
        self,
        agent_id: Id,
        title: str,
        *,
        description: str = "",
        layer: str = "objective",
        type: str = "achieve",  # noqa: A002 (the name in the API)
        priority: int = 50,
        state: str | None = None,
        parent_id: Id | None = None,
        deadline: datetime | None = None,
    ) -> Call[Goal]:
        """Add a goal; where the wanted state is full, it gets the next lower state with room."""
        body = {
            "title": title,
            "description": description,
            "layer": layer,
            "type": type,
            "priority": priority,
            "state": state,
            "parent_id": parent_id,
            "deadline": deadline,
        }
        return post(Goal, f"/agents/{segment(agent_id)}/goals", body)

    @operation
    def get(self, agent_id: Id, goal_id: Id) -> Call[Goal]:
        """Return a goal."""
        return get(Goal, f"/agents/{segment(agent_id)}/goals/{segment(goal_id)}")

    @operation
    def change(
        self,
        agent_id: Id,
        goal_id: Id,
        *,
        state: str | Unchanged = UNCHANGED,
        reason: str = "",
        note: str = "",
        fraction: float | Unchanged = UNCHANGED,
        blocked_by: str | Unchanged = UNCHANGED,
        parent_id: Id | Unchanged | None = UNCHANGED,
        deadline: datetime | Unchanged | None = UNCHANGED,
    ) -> Call[Goal]:
        """Move a goal to another state, and record its progress; None removes a parent or a deadline."""
        changes = {
            "state": state,
            "reason": reason,
            "note": note,
            "fraction": fraction,
            "blocked_by": blocked_by,
            "parent_id": parent_id,
            "deadline": deadline,
        }
        return patch(Goal, f"/agents/{segment(agent_id)}/goals/{segment(goal_id)}", changes)


class Plans[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about the plans of a goal."""

    @operation
    def list(self, agent_id: Id, goal_id: Id) -> Call[Rows[Plan]]:
        """Return the latest plans of a goal with their steps, at most 50, the latest first."""
        return rows_of(get(Plan, f"/agents/{segment(agent_id)}/goals/{segment(goal_id)}/plans"))

    @operation
    def add(
        self,
        agent_id: Id,
        goal_id: Id,
        steps: Iterable[NewStep],
        *,
        needs: Iterable[str] = (),
        risk: float | None = None,
        draft: bool = False,
    ) -> Call[Plan]:
        """Plan a goal, or add steps to its active plan; `needs` are the plan's dependencies."""
        body = {"steps": steps, "needs": needs, "risk": risk, "draft": draft}
        return post(Plan, f"/agents/{segment(agent_id)}/goals/{segment(goal_id)}/plans", body)

    @operation
    def start(self, agent_id: Id, goal_id: Id) -> Call[Plan]:
        """Activate the latest draft of a goal's plan."""
        return post(Plan, f"/agents/{segment(agent_id)}/goals/{segment(goal_id)}/plans/start")

    @operation
    def meet(self, agent_id: Id, goal_id: Id, dependency: str) -> Call[Plan]:
        """Record that a dependency of a goal's active plan is met."""
        return post(
            Plan,
            f"/agents/{segment(agent_id)}/goals/{segment(goal_id)}/plans/met",
            {"dependency": dependency},
        )

    @operation
    def abandon(self, agent_id: Id, goal_id: Id, *, reason: str) -> Call[Plan]:
        """Abandon a goal's active plan and its open steps."""
        return post(
            Plan, f"/agents/{segment(agent_id)}/goals/{segment(goal_id)}/plans/abandon", {"reason": reason}
        )
