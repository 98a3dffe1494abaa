"""List, trace, replay and request heartbeats, and add events that agents perceive."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field, ValidationError

from apps.agents.services.percepts import PerceivableKind, perceive
from apps.api.authentication import READ
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input, own_row, rows_of
from apps.api.scope import own_transactions
from apps.calls.models import ExternalCall, LedgerEntry
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services import schedule
from apps.heartbeats.services.reports.replay import read_recorded_heartbeat
from apps.heartbeats.services.reports.thoughts import thoughts_of
from apps.heartbeats.services.reports.trace import steps_of
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid
from arbor.heartbeat.replay import replay
from arbor.heartbeat.views import PERCEPT_LENGTH

router = Router()


class HeartbeatResource(Schema):
    """A heartbeat."""

    id: UUID
    agent_id: UUID
    number: int = Field(description="Counts the heartbeats that ran; 0 for a skipped one.")
    status: HeartbeatStatus
    reason: str = Field(description="Why it was skipped or failed.")
    mode: str
    trigger: str
    model: str
    narrative: str
    energy_start: float | None
    energy_end: float | None
    started_at: datetime
    ended_at: datetime | None


class StepTrace(Schema):
    """A step of a heartbeat's pipeline."""

    sequence: int
    node: str
    outcome: str
    duration_ms: float
    changed: list[str]


class CallTrace(Schema):
    """A model call of a heartbeat."""

    purpose: str
    model: str
    status: str
    attempts: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    error: str


class TraceResource(HeartbeatResource):
    """A heartbeat with all that it did."""

    tier: str
    round_trips: int
    own_ms: float
    reasoning: str
    actions: Any
    goal_changes: Any
    dropped: Any = Field(description="Parts of the reply that were not valid, with the reasons.")
    memory_id: UUID | None
    steps: list[StepTrace]
    calls: list[CallTrace]


class DifferenceResource(Schema):
    """A difference between a recorded heartbeat and its replay."""

    where: str
    recorded: str
    replayed: str


class ReplayResource(Schema):
    """A recorded heartbeat, decided again by the current rules. Nothing is written."""

    id: UUID
    same: bool
    differences: list[DifferenceResource]
    notes: list[str]


class RequestedHeartbeatResource(Schema):
    """A heartbeat that was asked for."""

    agent_id: UUID
    epoch: int


class ThoughtResource(Schema):
    """A thought of a heartbeat or a conversation."""

    id: UUID
    origin: str
    text: str
    at: datetime


class ThoughtList(Schema):
    """The latest thoughts, the latest first."""

    items: list[ThoughtResource]


class EventInput(Input):
    """Something that an agent perceives."""

    text: Annotated[str, Field(min_length=1, max_length=PERCEPT_LENGTH)]
    kind: Annotated[PerceivableKind, Field(description="An interrupt is always urgent.")] = "environment"
    urgent: bool = False
    detail: dict[str, Any] = {}


class EventResource(Schema):
    """A percept that waits for the next heartbeat."""

    id: UUID
    kind: str
    urgent: bool


@router.get(
    "/agents/{uuid:agent_id}/heartbeats", response=ListPage[HeartbeatResource], summary="List heartbeats"
)
def list_heartbeats(
    request: HttpRequest, agent_id: UUID, page: Paging, status: HeartbeatStatus | None = None
) -> ListPage[HeartbeatResource]:
    """List an agent's heartbeats, the latest first."""
    rows = rows_of(Heartbeat, agent_id, status=status).defer("situation", "trace")
    return page_of(rows, page, order="-started_at", to_resource=HeartbeatResource.model_validate)


@router.post(
    "/agents/{uuid:agent_id}/heartbeats",
    response={202: RequestedHeartbeatResource},
    summary="Ask for a heartbeat now",
)
def request_heartbeat(request: HttpRequest, agent_id: UUID) -> Status[RequestedHeartbeatResource]:
    """Ask for a heartbeat now, which a worker runs. An agent with a heartbeat under way is answered 409."""
    epoch = schedule.request_heartbeat(agent_id=agent_id, actor=access_of(request).actor)
    return Status(202, RequestedHeartbeatResource(agent_id=agent_id, epoch=epoch))


@router.get(
    "/agents/{uuid:agent_id}/heartbeats/{uuid:heartbeat_id}",
    response=TraceResource,
    summary="Trace a heartbeat",
)
def show_trace(request: HttpRequest, agent_id: UUID, heartbeat_id: UUID) -> TraceResource:
    """Show a heartbeat with its steps, model calls, actions and changes."""
    heartbeat = own_row(Heartbeat, agent_id=agent_id, row_id=heartbeat_id)
    calls = list(ExternalCall.objects.filter(heartbeat_id=heartbeat_id).defer("request"))
    entries = {entry.call_id: entry for entry in LedgerEntry.objects.filter(call__in=calls)}
    computed = ("steps", "calls")
    shown = {name: getattr(heartbeat, name) for name in TraceResource.model_fields if name not in computed}
    return TraceResource(
        **shown,
        steps=[StepTrace.model_validate(step) for step in steps_of(heartbeat)],
        calls=[_call(call, entries.get(call.id)) for call in calls],
    )


@router.get(
    "/agents/{uuid:agent_id}/heartbeats/{uuid:heartbeat_id}/replay",
    response=ReplayResource,
    auth=READ,
    summary="Replay a heartbeat",
)
@own_transactions
def replay_heartbeat(request: HttpRequest, agent_id: UUID, heartbeat_id: UUID) -> ReplayResource:
    """Decide a recorded heartbeat again by the current rules, and show the differences. Nothing is written."""
    tenant_id = access_of(request).tenant_id
    with tenant_transaction(tenant_id):
        own_row(Heartbeat, agent_id=agent_id, row_id=heartbeat_id)
    try:
        recorded = read_recorded_heartbeat(heartbeat_id=heartbeat_id, tenant_id=tenant_id)
    except ValidationError as error:
        raise Invalid("the record of the heartbeat cannot be read by the current rules") from error
    result = replay(recorded.heartbeat)
    return ReplayResource(
        id=heartbeat_id,
        same=result.is_same,
        differences=[DifferenceResource.model_validate(part) for part in result.differences],
        notes=list(result.notes),
    )


@router.get("/agents/{uuid:agent_id}/thoughts", response=ThoughtList, summary="List thoughts")
def list_thoughts(
    request: HttpRequest, agent_id: UUID, limit: Annotated[int, Field(ge=1, le=50)] = 20
) -> ThoughtList:
    """List an agent's latest thoughts in heartbeats and conversations, the latest first."""
    found = thoughts_of(agent_id=agent_id, limit=limit)
    return ThoughtList(items=[ThoughtResource.model_validate(thought) for thought in found])


@router.post("/agents/{uuid:agent_id}/events", response={201: EventResource}, summary="Add an event")
def add_event(request: HttpRequest, agent_id: UUID, event: EventInput) -> Status[EventResource]:
    """Add an event to what an agent perceives at its next heartbeat; an urgent one makes the heartbeat due now."""
    percept = perceive(
        agent_id=agent_id,
        kind=event.kind,
        content=event.text,
        urgent=event.urgent,
        detail=event.detail,
        actor=access_of(request).actor,
    )
    return Status(201, EventResource.model_validate(percept))


def _call(call: ExternalCall, entry: LedgerEntry | None) -> CallTrace:
    return CallTrace(
        purpose=call.purpose,
        model=call.model,
        status=call.status,
        attempts=call.attempts,
        input_tokens=entry.input_tokens if entry else None,
        output_tokens=entry.output_tokens if entry else None,
        cost_usd=float(entry.cost_usd) if entry and entry.cost_usd is not None else None,
        error=f"{call.error_kind}: {call.error}" if call.error else "",
    )
