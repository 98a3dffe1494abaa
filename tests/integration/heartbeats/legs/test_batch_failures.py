"""Failures in batches of heartbeats: each affects only its own heartbeat, and none is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
import structlog
from django.db import InterfaceError, OperationalError, connections

import apps.heartbeats.services.legs.runner as runner
from apps.agents.models import Agent
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.legs.loading import load_batch
from apps.memories.models import Memory
from apps.tenants.scope import APP, tenant_transaction
from arbor.goals.plans import LinkKind
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps import HANDLERS
from arbor.heartbeat.steps.records import record
from tests.integration.heartbeats.batch import (
    EIGHT,
    Batch,
    assert_one_heartbeat_each,
    batch,
    statuses_of,
)
from tests.integration.heartbeats.conftest import REST, heartbeats_of, lose_lease
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script

__all__ = ["batch"]

pytestmark = pytest.mark.usefixtures("no_leg_time_limit")


def replace_step(
    monkeypatch: pytest.MonkeyPatch, name: str, agent: Agent, act: Callable[[HeartbeatState], Any]
) -> None:
    """Replace a step in the heartbeats of one agent by another function."""
    step = HANDLERS[name]

    def run(heartbeat: HeartbeatState) -> Any:
        return act(heartbeat) if heartbeat.agent_id == agent.id else step(heartbeat)

    monkeypatch.setattr(runner, "HANDLERS", {**HANDLERS, name: run})


def raise_zero_division(_: HeartbeatState) -> Any:
    raise ZeroDivisionError("on purpose")


@pytest.mark.parametrize("node", ["observe", "focus", "parse", "act", "record"])
def test_a_fault_in_a_batch_of_eight_fails_only_its_own_heartbeat(
    node: str, batch: Batch, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(REST, repeat=True)
    replace_step(monkeypatch, node, batch.agents[3], raise_zero_division)
    with structlog.testing.capture_logs() as logs:
        batch.run()

    assert_one_heartbeat_each(batch, except_for={3: "failed"})
    (failed,) = heartbeats_of(batch.agents[3])
    assert "ZeroDivisionError: on purpose" in failed.reason
    assert [entry["heartbeats"] for entry in logs if entry["event"] == "batch_failed"] == [EIGHT]


def test_a_constraint_violation_rolls_back_one_heartbeat_only(
    batch: Batch, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(REST, repeat=True)

    def link_a_missing_goal(heartbeat: HeartbeatState) -> Any:
        result = yield from record(heartbeat)
        # No goal has this id.
        return result.__class__(state=result.state.with_effects(goal_links=[(str(uuid4()), LinkKind.ORIGIN)]))

    replace_step(monkeypatch, "record", batch.agents[5], link_a_missing_goal)
    batch.run()

    assert_one_heartbeat_each(batch, except_for={5: "failed"})
    (failed,) = heartbeats_of(batch.agents[5])
    assert failed.reason.startswith("IntegrityError")
    with tenant_transaction(batch.tenant_id):
        assert not Memory.objects.filter(agent_id=batch.agents[5].id, session="heartbeats").exists()


def test_a_heartbeat_taken_over_by_another_worker_is_left_alone(
    batch: Batch,
    scripted: Script,
    monkeypatch: pytest.MonkeyPatch,
    superuser: psycopg.Connection[Any],
) -> None:
    scripted(REST, repeat=True)
    lost_agent = batch.agents[2]
    batch.run_until_last_leg()

    def advance_step(heartbeat: HeartbeatState) -> Any:
        # What another worker writes once it has taken over the heartbeat.
        superuser.execute(
            "UPDATE heartbeats_heartbeat SET step = step + 1 WHERE id = %s", [heartbeat.heartbeat_id]
        )
        return HANDLERS["feel"](heartbeat)

    replace_step(monkeypatch, "feel", lost_agent, advance_step)
    others = {agent.id for agent in batch.agents} - {lost_agent.id}
    assert batch.run_leg() == others
    statuses_by_agent = {heartbeat.agent_id: heartbeat.status for heartbeat in batch.heartbeats()}
    assert statuses_by_agent.pop(lost_agent.id) == HeartbeatStatus.WAITING
    assert set(statuses_by_agent.values()) == {HeartbeatStatus.DONE}


class FailingStatements:
    """Fails statements that contain these words, at most a number of times; `times` counts them."""

    def __init__(self, words: str, error: Callable[[], Exception], *, most: int = 1) -> None:
        self._words, self._error, self._most = words, error, most
        self.times = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if self._words in sql and self.times < self._most:
            self.times += 1
            raise self._error()
        return execute(sql, params, many, context)


def deadlock() -> Exception:
    """Return the error by which Django reports a deadlock."""
    error = OperationalError("deadlock detected")
    error.__cause__ = psycopg.errors.DeadlockDetected("deadlock detected")
    return error


@pytest.mark.parametrize("words", ["INSERT INTO memories_memory ", "calls_dailyusage", "FOR UPDATE"])
def test_heartbeats_run_singly_after_a_deadlock(words: str, batch: Batch, scripted: Script) -> None:
    scripted(REST, repeat=True)
    batch.run_until_last_leg()
    failing = FailingStatements(words, deadlock)
    with connections[APP].execute_wrapper(failing), structlog.testing.capture_logs() as logs:
        assert batch.run_leg() == {agent.id for agent in batch.agents}

    assert failing.times == 1
    assert [entry["heartbeats"] for entry in logs if entry["event"] == "batch_failed"] == [EIGHT]
    assert_one_heartbeat_each(batch)


def test_a_repeated_deadlock_of_one_heartbeat_defers_only_that_one(
    batch: Batch, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(REST, repeat=True)
    batch.run_until_last_leg()
    unlucky = min(agent.id for agent in batch.agents)

    def load(leases: Sequence[tuple[UUID, int]], **options: Any) -> Any:
        if unlucky in {agent_id for agent_id, _ in leases}:
            raise deadlock()
        return load_batch(leases, **options)

    monkeypatch.setattr(runner, "load_batch", load)
    with pytest.raises(OperationalError, match="deadlock"), structlog.testing.capture_logs() as logs:
        batch.run_leg()
    assert [entry["agent_id"] for entry in logs if entry["event"] == "heartbeat_deferred"] == [str(unlucky)]
    for agent in batch.agents:
        (heartbeat,) = heartbeats_of(agent)
        assert heartbeat.status == ("waiting" if agent.id == unlucky else "done"), agent.name


def lose_connection() -> Exception:
    """Close the connection; return the error that Django raises then."""
    connections[APP].connection.close()
    return InterfaceError("the connection is closed")


def test_a_connection_lost_in_a_batch_loses_no_heartbeat(batch: Batch, scripted: Script) -> None:
    scripted(REST, repeat=True)
    batch.run_until_last_leg()
    with connections[APP].execute_wrapper(FailingStatements("calls_dailyusage", lose_connection)):
        batch.run_leg()
    assert_one_heartbeat_each(batch)


def test_an_unreachable_database_loses_no_heartbeat_of_a_batch(
    batch: Batch, scripted: Script, fleet: Fleet
) -> None:
    scripted(REST, repeat=True)
    batch.run_until_last_leg()
    failing = FailingStatements("calls_dailyusage", lose_connection, most=1 + EIGHT)
    with connections[APP].execute_wrapper(failing), pytest.raises(InterfaceError):
        batch.run_leg()

    assert set(statuses_of(batch)) == {HeartbeatStatus.WAITING}
    for agent in batch.agents:
        lose_lease(agent)
    assert fleet.dispatch().lost == EIGHT
    fleet.run()
    assert_one_heartbeat_each(batch)
