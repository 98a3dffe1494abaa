"""Signals of heartbeats: in order, with the heartbeat's id, without a statement of their own."""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.models import Agent
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.legs import committing
from apps.signals.models import SignalBatch
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import StaleLease
from arbor.signals import SignalName
from tests.integration.heartbeats.batch import MakeAgent, batch_of_eight
from tests.integration.heartbeats.conftest import REST, last_heartbeat, run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of
from tests.integration.signals.conftest import names_of, signals_of
from tests.support.database import recorded_statements


def test_a_heartbeat_signals_its_start_steps_and_end(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    scripted(
        reply_of(
            thinking="The reef needs a chart.",
            actions=[action_of("remember", content="The reef is red.")],
            memory_notes=[{"text": "The tide turns at noon."}],
            new_goals=[{"title": "Count the lamps"}],
            concerns=["the wind"],
        )
    )
    cursor = signals_of(agent)[-1].cursor
    heartbeat = run_heartbeat(fleet, agent)

    signals = signals_of(agent, after=cursor)
    names = [record.name for record in signals]
    assert (names[0], names.count(SignalName.HEARTBEAT_STEP)) == (SignalName.HEARTBEAT_STARTED, 1)
    assert names[-1] == SignalName.HEARTBEAT
    assert {
        SignalName.THINKING_RECORDED,
        SignalName.DECISION,
        SignalName.GOAL_CREATED,
        SignalName.INDEXED,
        SignalName.LEARNING_EXTRACTED,
        SignalName.CONCERN_ADDED,
        SignalName.WORKING_MEMORY_SAVED,
    } <= set(names)
    assert {record.heartbeat_id for record in signals} == {heartbeat.id}
    (goal,) = [record.data for record in signals if record.name == SignalName.GOAL_CREATED]
    assert goal["title"] == "Count the lamps"
    (decision,) = [record.data for record in signals if record.name == SignalName.DECISION]
    assert (decision["action"], decision["outcome"]) == ("remember", "success")
    ended = signals[-1].data
    assert (ended["status"], ended["number"], ended["actions"]) == ("done", heartbeat.number, 1)
    # No text of the mind leaves it by a signal.
    assert "reef" not in str([record.data for record in signals])


def test_effects_of_a_heartbeat_of_one_leg_come_before_its_end(
    fleet: Fleet, agent: Agent, scripted: Script, settings: Any
) -> None:
    scripted(REST)
    # No prompt fits: the heartbeat fails before it asks the model.
    settings.ARBOR_MODEL_CONTEXT = 512
    cursor = signals_of(agent)[-1].cursor
    heartbeat = run_heartbeat(fleet, agent)

    signals = signals_of(agent, after=cursor)
    names = [record.name for record in signals]
    assert SignalName.HEARTBEAT_STEP not in names
    assert (names[0], names[-1]) == (SignalName.HEARTBEAT_STARTED, SignalName.HEARTBEAT)
    assert SignalName.RECALLED in names
    assert {record.heartbeat_id for record in signals} == {heartbeat.id}


def test_a_batch_writes_its_signals_with_its_heartbeats(
    fleet: Fleet, tenant: Tenant, new_agent: MakeAgent, scripted: Script, no_leg_time_limit: None
) -> None:
    batch = batch_of_eight(fleet, tenant, new_agent)
    scripted(REST, repeat=True)
    batch.dispatch()
    with recorded_statements() as sent:
        batch.run_leg()
        batch.execute_calls()
        batch.run_leg()
    writing = [statement for statement in sent if "INSERT INTO signals_signalbatch" in statement]
    assert len(writing) == 2
    assert all("heartbeats_heartbeat" in statement for statement in writing)
    with tenant_transaction(tenant.id):
        rows = SignalBatch.objects.filter(heartbeat_id__isnull=False)
        assert rows.count() == 16  # one for each agent and leg


def test_a_failed_heartbeat_signals_its_end(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    scripted("so what", repeat=True)
    run_heartbeat(fleet, agent)
    assert last_heartbeat(agent).status == HeartbeatStatus.FAILED
    signals = signals_of(agent)
    assert signals[-1].data["status"] == "failed"
    assert SignalName.REPLY_UNUSABLE in [record.name for record in signals]


def test_a_leg_that_is_rolled_back_leaves_no_signal(
    fleet: Fleet, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(reply_of(new_goals=[{"title": "Count the lamps"}]))
    before = names_of(agent)

    def refuse(*_: object, **__: object) -> None:
        raise StaleLease

    monkeypatch.setattr(committing, "suspend", refuse)
    # The worker drops the leg: there is no heartbeat to return.
    with pytest.raises(IndexError):
        run_heartbeat(fleet, agent)
    assert names_of(agent) == before
