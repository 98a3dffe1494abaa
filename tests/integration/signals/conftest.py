"""Agents, and their signals."""

from __future__ import annotations

from apps.agents.models import Agent
from apps.signals.services.reading import SignalFilter, SignalRecord, read_signals
from apps.tenants.scope import tenant_transaction
from arbor.signals import Cursor
from tests.integration.heartbeats.conftest import agent, fleet, new_agent, no_leg_time_limit, scripted

__all__ = ["agent", "fleet", "new_agent", "no_leg_time_limit", "scripted"]


def signals_of(agent: Agent, *, after: Cursor | None = None) -> list[SignalRecord]:
    """Return all signals of an agent, oldest first."""
    with tenant_transaction(agent.tenant_id):
        page = read_signals(after=after or Cursor(), wanted=SignalFilter.of(agents=[agent.id]), limit=1000)
    assert not page.more
    return list(page.signals)


def names_of(agent: Agent, *, after: Cursor | None = None) -> list[str]:
    """Return the names of an agent's signals, oldest first."""
    return [record.name for record in signals_of(agent, after=after)]
