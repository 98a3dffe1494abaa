"""Agents with a pipeline of their own that asks no model: it ends in one leg, with consistent rows."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent, Percept, ScheduleState
from apps.agents.services.percepts import perceive
from apps.heartbeats.models import HeartbeatStatus
from apps.tenants.scope import tenant_transaction
from tests.integration.heartbeats.conftest import heartbeats_of, run_heartbeat, schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script

WITHOUT_MODEL = """
digraph quiet {{
    start   [shape=Mdiamond];
    observe [type="observe"];
    checks  [type="background_checks"];
    focus   [type="focus"];
    orient  [type="orient"];
    {nodes}
    end     [shape=Msquare, outcome={outcome}];
    start -> observe -> checks -> focus -> orient -> {steps} -> end;
}}
"""


@pytest.mark.parametrize(
    ("outcome", "steps", "status"),
    [
        ("success", ["feel", "record", "plan_next"], HeartbeatStatus.DONE),
        ("failure", ["feel", "record", "plan_next"], HeartbeatStatus.FAILED),
        ("failure", ["feel"], HeartbeatStatus.FAILED),
    ],
)
def test_a_pipeline_without_a_model_ends_in_one_leg(
    fleet: Fleet, agent: Agent, scripted: Script, outcome: str, steps: list[str], status: HeartbeatStatus
) -> None:
    scripted()
    with tenant_transaction(agent.tenant_id):
        perceive(agent_id=agent.id, kind="environment", content="The fog lifts.", actor="test")
        text = WITHOUT_MODEL.format(
            outcome=outcome,
            nodes="\n    ".join(f'{step} [type="{step}"];' for step in steps),
            steps=" -> ".join(steps),
        )
        Agent.objects.filter(id=agent.id).update(pipeline=text)
    run_heartbeat(fleet, agent)

    (heartbeat,) = heartbeats_of(agent)
    assert (heartbeat.status, heartbeat.round_trips) == (status, 0)
    assert schedule_of(agent).state == ScheduleState.IDLE
    with tenant_transaction(agent.tenant_id):
        heartbeat_ids = [percept.heartbeat_id for percept in Percept.objects.filter(agent_id=agent.id)]
    assert heartbeat_ids == ([heartbeat.id] if "record" in steps else [None])
