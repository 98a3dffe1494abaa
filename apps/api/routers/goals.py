"""The goals of an agent and their plans."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input, own_row, rows_of
from apps.api.times import Moment
from apps.goals.models import Goal
from apps.goals.services.acts import (
    REASON_LENGTH,
    GoalEdit,
    abandon_latest_plan,
    add_goal,
    change_goal,
    meet_dependency,
    plan_goal,
    start_drafted_plan,
)
from apps.goals.services.goals import plans_of
from arbor.errors import Invalid
from arbor.goals.backlog import BLOCKER_LENGTH
from arbor.goals.plans import MAX_DEPENDENCIES, STEP_LENGTH, PlanDraft, PlanStatus, StepDraft
from arbor.goals.values import (
    DEFAULT_PRIORITY,
    DESCRIPTION_LENGTH,
    MAX_PRIORITY,
    NOTE_LENGTH,
    TITLE_LENGTH,
    GoalLayer,
    GoalSource,
    GoalState,
    GoalType,
)
from arbor.heartbeat.actions import ACTIONS

router = Router()

#: The most plans of one answer.
_PLANS_SHOWN = 50
_Share = Annotated[float, Field(ge=0, le=1)]
_Title = Annotated[str, Field(min_length=1, max_length=TITLE_LENGTH, examples=["Map the harbour"])]


class GoalResource(Schema):
    """A goal."""

    id: UUID
    title: str
    description: str
    state: GoalState
    layer: GoalLayer
    type: GoalType
    priority: int = Field(description="As it was stated, 0 to 100; it scales the urgency.")
    source: GoalSource
    fraction: float = Field(description="The part that is done, 0 to 1.")
    parent_id: UUID | None
    blocked_by: str
    deadline: datetime | None
    effort: int = Field(description="Heartbeats spent on it.")
    created_at: datetime
    touched_at: datetime


class GoalInput(Input):
    """A new goal."""

    title: _Title
    description: Annotated[str, Field(max_length=DESCRIPTION_LENGTH)] = ""
    layer: GoalLayer = GoalLayer.OBJECTIVE
    type: GoalType = GoalType.ACHIEVE
    priority: Annotated[int, Field(ge=0, le=MAX_PRIORITY)] = DEFAULT_PRIORITY
    state: GoalState | None = Field(default=None, description="Null: active, where there is room.")
    parent_id: UUID | None = None
    deadline: Moment | None = None


class GoalPatch(Input):
    """A change of a goal. What is left out stays; null removes a parent or a deadline."""

    state: GoalState | None = None
    reason: Annotated[
        str,
        Field(max_length=REASON_LENGTH, description="The reason of a new state; required to abandon a goal."),
    ] = ""
    note: Annotated[str, Field(max_length=NOTE_LENGTH)] = ""
    fraction: _Share | None = None
    parent_id: UUID | None = None
    deadline: Moment | None = None
    blocked_by: Annotated[str, Field(max_length=BLOCKER_LENGTH)] | None = Field(
        default=None, description="What it waits for; empty: nothing any more."
    )


class StepInput(Input):
    """A step of a plan."""

    action: Annotated[str, Field(max_length=40, examples=["recall"])]
    description: Annotated[str, Field(min_length=1, max_length=STEP_LENGTH)]


class PlanInput(Input):
    """A new plan, or further steps of the active one."""

    steps: Annotated[list[StepInput], Field(min_length=1, max_length=50)]
    draft: Annotated[bool, Field(description="Store it as a draft.")] = False
    risk: _Share | None = None
    needs: Annotated[
        list[Annotated[str, Field(max_length=STEP_LENGTH)]], Field(max_length=MAX_DEPENDENCIES)
    ] = []


class StepResource(Schema):
    """A step of a plan."""

    position: int
    action: str
    description: str
    status: str


class PlanResource(Schema):
    """A plan with its steps."""

    id: UUID
    status: PlanStatus
    risk: float | None
    dependencies: list[str]
    met: list[str]
    reason: str
    created_at: datetime
    steps: list[StepResource]


class PlanList(Schema):
    """The latest plans of a goal, the latest first."""

    items: list[PlanResource]


class PlanEnd(Input):
    """The end of a plan."""

    reason: Annotated[str, Field(min_length=1, max_length=REASON_LENGTH)]


class Dependency(Input):
    """A dependency of a plan that is met."""

    dependency: Annotated[str, Field(min_length=1, max_length=STEP_LENGTH)]


@router.get("/agents/{uuid:agent_id}/goals", response=ListPage[GoalResource], summary="List goals")
def list_goals(
    request: HttpRequest, agent_id: UUID, page: Paging, state: GoalState | None = None
) -> ListPage[GoalResource]:
    """List an agent's goals, the last changed first."""
    rows = rows_of(Goal, agent_id, state=state)
    return page_of(rows, page, order="-touched_at", to_resource=GoalResource.model_validate)


@router.post("/agents/{uuid:agent_id}/goals", response={201: GoalResource}, summary="Add a goal")
def create_goal(request: HttpRequest, agent_id: UUID, goal: GoalInput) -> Status[GoalResource]:
    """Add a goal. If the wanted state is full, the goal gets the next lower state with room."""
    created = add_goal(
        agent_id=agent_id,
        **dict(goal),
        source=GoalSource.USER_REQUEST,
        blocked_by="",
        actor=access_of(request).actor,
    )
    return Status(201, GoalResource.model_validate(created))


@router.get("/agents/{uuid:agent_id}/goals/{uuid:goal_id}", response=GoalResource, summary="Show a goal")
def show_goal(request: HttpRequest, agent_id: UUID, goal_id: UUID) -> GoalResource:
    """Show a goal."""
    return GoalResource.model_validate(own_row(Goal, agent_id=agent_id, row_id=goal_id))


@router.patch("/agents/{uuid:agent_id}/goals/{uuid:goal_id}", response=GoalResource, summary="Change a goal")
def patch_goal(request: HttpRequest, agent_id: UUID, goal_id: UUID, change: GoalPatch) -> GoalResource:
    """Move a goal to another state, add a progress note, or change its parent, deadline or obstacle."""
    changes = GoalEdit(**{name: getattr(change, name) for name in change.model_fields_set})
    goal = change_goal(agent_id=agent_id, goal_id=goal_id, change=changes, actor=access_of(request).actor)
    return GoalResource.model_validate(goal)


@router.get(
    "/agents/{uuid:agent_id}/goals/{uuid:goal_id}/plans",
    response=PlanList,
    summary="List the plans of a goal",
)
def list_plans(request: HttpRequest, agent_id: UUID, goal_id: UUID) -> PlanList:
    """List the latest plans of a goal with their steps, at most 50, the latest first."""
    own_row(Goal, agent_id=agent_id, row_id=goal_id)
    return PlanList(items=[PlanResource.model_validate(plan) for plan in plans_of(goal_id)[:_PLANS_SHOWN]])


@router.post(
    "/agents/{uuid:agent_id}/goals/{uuid:goal_id}/plans", response={201: PlanResource}, summary="Plan a goal"
)
def create_plan(request: HttpRequest, agent_id: UUID, goal_id: UUID, plan: PlanInput) -> Status[PlanResource]:
    """Plan a goal, or add steps to its active plan; the next steps of an active goal become intents."""
    unknown = sorted({step.action for step in plan.steps} - ACTIONS.keys())
    if unknown:
        raise Invalid(f"a step's action is one of {', '.join(ACTIONS)}; got {', '.join(unknown)}")
    draft = PlanDraft(
        steps=[StepDraft(action=step.action, description=step.description) for step in plan.steps],
        risk=plan.risk,
        dependencies=plan.needs,
    )
    planned = plan_goal(
        agent_id=agent_id,
        goal_id=goal_id,
        draft=draft,
        as_draft=plan.draft,
        actor=access_of(request).actor,
    )
    return Status(201, PlanResource.model_validate(planned))


@router.post(
    "/agents/{uuid:agent_id}/goals/{uuid:goal_id}/plans/start",
    response=PlanResource,
    summary="Start a drafted plan",
)
def start(request: HttpRequest, agent_id: UUID, goal_id: UUID) -> PlanResource:
    """Activate the latest draft of a goal's plan."""
    actor = access_of(request).actor
    return PlanResource.model_validate(start_drafted_plan(agent_id=agent_id, goal_id=goal_id, actor=actor))


@router.post(
    "/agents/{uuid:agent_id}/goals/{uuid:goal_id}/plans/abandon",
    response=PlanResource,
    summary="Abandon a plan",
)
def abandon(request: HttpRequest, agent_id: UUID, goal_id: UUID, end: PlanEnd) -> PlanResource:
    """Abandon a goal's active plan and its open steps."""
    actor = access_of(request).actor
    return PlanResource.model_validate(
        abandon_latest_plan(agent_id=agent_id, goal_id=goal_id, reason=end.reason, actor=actor)
    )


@router.post(
    "/agents/{uuid:agent_id}/goals/{uuid:goal_id}/plans/met",
    response=PlanResource,
    summary="Meet a dependency",
)
def meet(request: HttpRequest, agent_id: UUID, goal_id: UUID, met: Dependency) -> PlanResource:
    """Record that a dependency of a goal's active plan is met."""
    changed = meet_dependency(
        agent_id=agent_id,
        goal_id=goal_id,
        dependency=met.dependency,
        actor=access_of(request).actor,
    )
    return PlanResource.model_validate(changed)
