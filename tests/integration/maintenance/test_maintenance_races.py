"""Maintenance calls of workers and sweeps that run at once, or die: each is executed once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.calls.models import CallStatus
from apps.heartbeats.services.calls.calls import execute_call
from apps.maintenance.services import purposes
from apps.maintenance.services.consolidation import maintain_episodes
from apps.maintenance.services.recovery import (
    recover_maintenance_calls,
)
from apps.maintenance.services.settlement import RETRY_DELAYS
from apps.queues import captured
from arbor.memory.maintenance.replies import read_summary
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.integration.maintenance.maintenance_setup import (
    SUMMARY,
    episodes_of,
    ledger_of,
    move_into_past,
    only_call,
)
from tests.integration.memories.conftest import at_once


class _Killed(BaseException):
    """Simulates a killed process: the open transaction is lost."""


def test_a_killed_workers_reply_is_applied_by_another(
    agent: Agent, fleet: Fleet, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(SUMMARY, SUMMARY)

    def kill(*_: Any, **__: Any) -> int:
        raise _Killed

    maintain_episodes()
    with monkeypatch.context() as patch:
        patch.setattr(purposes, "store_summaries", kill)
        with pytest.raises(_Killed):
            fleet.deliver(fleet.pop_message())
    assert (only_call(agent).status, ledger_of(agent)) == (CallStatus.RUNNING, [])
    move_into_past(agent, timedelta(minutes=10))
    recover_maintenance_calls()
    move_into_past(agent, RETRY_DELAYS[0] + timedelta(seconds=1))
    recover_maintenance_calls()
    fleet.run()
    assert (only_call(agent).status, len(ledger_of(agent))) == (CallStatus.COMPLETE, 1)
    assert episodes_of(agent)[0].summary == read_summary(SUMMARY)


def test_two_workers_at_once_call_the_model_once(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    model = scripted(SUMMARY, repeat=True)
    maintain_episodes()
    call_id = UUID(fleet.pop_message().arguments["call_id"])

    def execute(_: int) -> bool:
        return execute_call(call_id=call_id, tenant_id=agent.tenant_id)

    assert sorted(at_once(execute, writers=3)) == [False, False, True]
    assert len(model.requests) == 1
    assert len(ledger_of(agent)) == 1


def test_two_sweeps_at_once_send_one_message(agent: Agent, fleet: Fleet) -> None:
    maintain_episodes()
    move_into_past(agent, timedelta(minutes=10))

    def sweep(_: int) -> int:
        with captured() as messages:
            recover_maintenance_calls()
        return len(messages)

    assert sum(at_once(sweep, writers=3)) == 1
