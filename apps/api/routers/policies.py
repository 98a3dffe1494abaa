"""The policy of an agent (budget, active hours, models, daily limits), its daily usage and its model calls."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from apps.api.limits import DailyDollars, DailyHeartbeats, DailyTokens
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input, rows_of
from apps.api.times import TimeOfDay
from apps.calls.models import DailyUsage, LedgerEntry
from apps.fleet.policy import FIELDS, MAX_ALLOWANCE, policy_of, set_policy
from arbor.errors import Invalid
from arbor.heartbeat.dialogue import MAX_VOICES
from arbor.heartbeat.replies.round_trips import MAX_ROUND_TRIPS

router = Router()


class PolicyResource(Schema):
    """An agent's policy; null: the tenant's, the installation's, or no limit."""

    budget: str = Field(description="energy, actions or ticks.")
    allowance: int | None
    energy: dict[str, Any]
    tier_models: dict[str, list[str]]
    active_from: time | None
    active_until: time | None
    time_zone: str
    adaptive: bool
    daily_heartbeats: int | None = Field(description="The most heartbeats a day (UTC).")
    daily_tokens: int | None
    daily_usd: Decimal | None
    follow_ups: int | None
    voices: int = Field(description="Inner voices that are asked before a hard decision; 0: none.")


class PolicyChange(Input):
    """The fields to change; fields that are left out stay, null removes a limit."""

    budget: Annotated[str, Field(max_length=8)] = "energy"
    allowance: Annotated[int, Field(ge=1, le=MAX_ALLOWANCE)] | None = None
    energy: dict[str, Any] = {}
    tier_models: dict[str, list[str]] = {}
    active_from: TimeOfDay | None = None
    active_until: TimeOfDay | None = None
    time_zone: Annotated[str, Field(max_length=60)] = "UTC"
    adaptive: bool = True
    daily_heartbeats: DailyHeartbeats | None = None
    daily_tokens: DailyTokens | None = None
    daily_usd: DailyDollars | None = None
    follow_ups: Annotated[int, Field(ge=0, le=MAX_ROUND_TRIPS - 1)] | None = None
    voices: Annotated[int, Field(ge=0, le=MAX_VOICES)] = 0


class UsageResource(Schema):
    """The usage of an agent on one day (UTC)."""

    agent_id: UUID
    day: date
    heartbeats: int
    calls: int
    tokens: int
    cost_usd: Decimal
    level: str


class LedgerResource(Schema):
    """A model call that was paid for."""

    id: UUID
    agent_id: UUID
    purpose: str
    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: Decimal | None = Field(description="Null: the price is not known.")
    latency_ms: float
    tries: int
    error_kind: str
    at: datetime


@router.get("/agents/{uuid:agent_id}/policy", response=PolicyResource, summary="Show a policy")
def show_policy(request: HttpRequest, agent_id: UUID) -> PolicyResource:
    """Show an agent's policy."""
    return PolicyResource.model_validate(policy_of(agent_id))


@router.patch("/agents/{uuid:agent_id}/policy", response=PolicyResource, summary="Change a policy")
def change_policy(request: HttpRequest, agent_id: UUID, change: PolicyChange) -> PolicyResource:
    """Change the named fields of an agent's policy."""
    changes = {name: getattr(change, name) for name in change.model_fields_set}
    if not changes:
        raise Invalid(f"name a field to change: {', '.join(FIELDS)}")
    changed = set_policy(agent_id=agent_id, changes=changes, actor=access_of(request).actor)
    return PolicyResource.model_validate(changed)


@router.get("/agents/{uuid:agent_id}/usage", response=ListPage[UsageResource], summary="List daily usage")
def list_usage(request: HttpRequest, agent_id: UUID, page: Paging) -> ListPage[UsageResource]:
    """List what an agent used by day (UTC), the latest first."""
    return page_of(
        rows_of(DailyUsage, agent_id), page, order="-day", to_resource=UsageResource.model_validate
    )


@router.get("/agents/{uuid:agent_id}/ledger", response=ListPage[LedgerResource], summary="List model calls")
def list_ledger(request: HttpRequest, agent_id: UUID, page: Paging) -> ListPage[LedgerResource]:
    """List an agent's model calls with tokens and cost, the latest first."""
    return page_of(
        rows_of(LedgerEntry, agent_id), page, order="-at", to_resource=LedgerResource.model_validate
    )
