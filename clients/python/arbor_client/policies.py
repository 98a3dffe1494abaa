"""Policies of agents: budget, hours, models and daily limits; and what agents used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import UNCHANGED, Call, Id, PagedCall, Unchanged, get, listed, patch, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Policy:
    """An agent's policy; None: the tenant's, the installation's, or no limit."""

    #: energy, actions or ticks.
    budget: str
    allowance: int | None
    energy: dict[str, Any]
    tier_models: dict[str, list[str]]
    active_from: time | None
    active_until: time | None
    time_zone: str
    adaptive: bool
    #: The most heartbeats a day (UTC).
    daily_heartbeats: int | None
    daily_tokens: int | None
    daily_usd: Decimal | None
    follow_ups: int | None
    #: Inner voices that are asked before a hard decision; 0: none.
    voices: int


@dataclass(frozen=True, kw_only=True)
class DailyUsage:
    """The usage of an agent on one day (UTC)."""

    agent_id: UUID
    day: date
    heartbeats: int
    calls: int
    tokens: int
    cost_usd: Decimal
    level: str


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """A model call that was paid for."""

    id: UUID
    agent_id: UUID
    purpose: str
    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    #: None: the price is not known.
    cost_usd: Decimal | None
    latency_ms: float
    tries: int
    error_kind: str
    at: datetime


class Policies[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about policies and usage."""

    @operation
    def get(self, agent_id: Id) -> Call[Policy]:
        """Return an agent's policy."""
        return get(Policy, f"/agents/{segment(agent_id)}/policy")

    @operation
    def change(
        self,
        agent_id: Id,
        *,
        budget: str | Unchanged = UNCHANGED,
        allowance: int | Unchanged | None = UNCHANGED,
        energy: Mapping[str, Any] | Unchanged = UNCHANGED,
        tier_models: Mapping[str, list[str]] | Unchanged = UNCHANGED,
        active_from: time | Unchanged | None = UNCHANGED,
        active_until: time | Unchanged | None = UNCHANGED,
        time_zone: str | Unchanged = UNCHANGED,
        adaptive: bool | Unchanged = UNCHANGED,
        daily_heartbeats: int | Unchanged | None = UNCHANGED,
        daily_tokens: int | Unchanged | None = UNCHANGED,
        daily_usd: Decimal | float | Unchanged | None = UNCHANGED,
        follow_ups: int | Unchanged | None = UNCHANGED,
        voices: int | Unchanged = UNCHANGED,
    ) -> Call[Policy]:
        """Change the given fields; None removes a limit."""
        changes = {
            "budget": budget,
            "allowance": allowance,
            "energy": energy,
            "tier_models": tier_models,
            "active_from": active_from,
            "active_until": active_until,
            "time_zone": time_zone,
            "adaptive": adaptive,
            "daily_heartbeats": daily_heartbeats,
            "daily_tokens": daily_tokens,
            "daily_usd": daily_usd,
            "follow_ups": follow_ups,
            "voices": voices,
        }
        return patch(Policy, f"/agents/{segment(agent_id)}/policy", changes)

    @listing
    def usage(self, agent_id: Id) -> PagedCall[DailyUsage]:
        """List what an agent used by day, the latest first."""
        return listed(DailyUsage, f"/agents/{segment(agent_id)}/usage")

    @listing
    def model_calls(self, agent_id: Id) -> PagedCall[ModelCall]:
        """List an agent's model calls with tokens and cost, the latest first."""
        return listed(ModelCall, f"/agents/{segment(agent_id)}/ledger")
