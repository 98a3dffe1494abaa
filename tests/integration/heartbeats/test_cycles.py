"""Cycles: heartbeats under a budget of ticks, with or without a fleet beside them."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent, Trigger
from apps.audit.models import AuditEvent
from apps.fleet.administration import suspend_tenant
from apps.goals.models import Goal, Intent
from apps.heartbeats.services import inline
from apps.heartbeats.services.inline import allocate, run_ticks
from apps.tenants.scope import tenant_transaction
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import AgentNotActive, BudgetExhausted, Invalid, ModelUnavailable, TransitionIllegal
from arbor.runtime import AgentRuntime, Tick
from tests.integration.heartbeats.conftest import REST, begin_heartbeat, heartbeats_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of


def reply_remembering(count: int) -> str:
    """Return a reply that remembers a number of texts."""
    return reply_of(actions=[action_of("remember", content=f"The pier has {n} lamps.") for n in range(count)])


def test_a_cycle_ends_when_its_ticks_are_used_up(
    runtime: AgentRuntime, agent: Agent, scripted: Script
) -> None:
    scripted(reply_remembering(2), repeat=True)
    energy = runtime.load(agent.id).energy
    cycle = runtime.run_cycle(agent.id, 5)
    assert (cycle.allocated, cycle.left, cycle.used, cycle.ended) == (5, 0, 5, "used up")
    assert [len(tick.actions) for tick in cycle.ticks] == [2, 2, 1]
    assert {heartbeat.trigger for heartbeat in heartbeats_of(agent)} == {Trigger.CYCLE}
    assert runtime.load(agent.id).energy == energy
    with pytest.raises(BudgetExhausted):
        runtime.run_cycle(agent.id)


def test_a_tick_that_does_nothing_costs_one(runtime: AgentRuntime, agent: Agent, scripted: Script) -> None:
    scripted("nothing to read", repeat=True)
    cycle = runtime.run_cycle(agent.id, 2)
    assert [tick.status for tick in cycle.ticks] == ["failed", "failed"]
    assert [tick.action for tick in cycle.ticks] == [None, None]
    assert cycle.left == 0
    assert runtime.nop_count(agent.id) == 2


def test_a_cycle_of_one_tick_is_audited_as_one(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        allocate(agent_id=agent.id, ticks=1, actor="test")
        assert AuditEvent.objects.filter(message=f"gave {agent.name} a cycle of 1 tick").exists()


def test_a_cycle_ends_uncharged_when_the_model_is_out_of_reach(
    runtime: AgentRuntime, agent: Agent, scripted: Script
) -> None:
    scripted(reply_remembering(2), ModelUnavailable("nobody answers"), repeat=True)
    cycle = runtime.run_cycle(agent.id, 20)
    assert [tick.status for tick in cycle.ticks] == ["done", "failed"]
    assert (cycle.left, runtime.load(agent.id).ticks_left) == (18, 18)
    assert cycle.ended == cycle.ticks[-1].reason
    assert "nobody answers" in cycle.ended


def test_a_cycle_waits_for_a_concurrent_heartbeat_of_the_fleet(
    agent: Agent, fleet: Fleet, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(reply_remembering(1), repeat=True)
    pending_messages: list[int] = []

    def claim(_tick: Tick, left: int) -> None:
        if left == 2:
            begin_heartbeat(fleet, agent)

    def run_fleet(_seconds: float) -> None:
        pending_messages.append(len(fleet.messages))
        fleet.run()

    monkeypatch.setattr(inline, "sleep", run_fleet)
    with tenant_transaction(agent.tenant_id):
        allocate(agent_id=agent.id, ticks=3, actor="test")
    cycle = run_ticks(agent_id=agent.id, tenant_id=agent.tenant_id, progress=claim)
    assert (len(cycle.ticks), cycle.ended, pending_messages) == (3, "used up", [1])
    assert [heartbeat.trigger for heartbeat in heartbeats_of(agent)].count(Trigger.TIMER) == 1


def test_a_cycle_blocked_by_the_fleet_returns_its_completed_ticks(
    agent: Agent, fleet: Fleet, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(reply_remembering(1), repeat=True)
    monkeypatch.setattr(inline, "WAIT_S", 0.0)

    def claim(_tick: Tick, _left: int) -> None:
        begin_heartbeat(fleet, agent)

    with tenant_transaction(agent.tenant_id):
        allocate(agent_id=agent.id, ticks=3, actor="test")
    cycle = run_ticks(agent_id=agent.id, tenant_id=agent.tenant_id, progress=claim)
    assert (len(cycle.ticks), cycle.left) == (1, 2)
    assert cycle.ended.startswith("cannot run now: a heartbeat of Ada is under way already")


def test_a_cycle_ends_when_nothing_is_left_to_do(
    runtime: AgentRuntime, agent: Agent, scripted: Script
) -> None:
    scripted(REST, repeat=True)
    for goal in runtime.goals(agent.id).all:
        with tenant_transaction(agent.tenant_id):
            Intent.objects.filter(goal_id=goal.id).delete()
            Goal.objects.filter(id=goal.id).delete()
    cycle = runtime.run_cycle(agent.id, 20)
    assert cycle.ended.startswith("nothing left to do: idle:")
    assert cycle.left > 0


def test_a_cycle_ends_at_once_when_its_tenant_is_suspended(
    agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(reply_remembering(1), repeat=True)
    waited: list[float] = []
    monkeypatch.setattr(inline, "sleep", waited.append)
    monkeypatch.setattr(inline, "WAIT_S", 0.2)
    with tenant_transaction(agent.tenant_id):
        allocate(agent_id=agent.id, ticks=5, actor="test")
        slug = agent.tenant.slug

    def suspend(_tick: Tick, _left: int) -> None:
        suspend_tenant(slug=slug, actor="test")

    cycle = run_ticks(agent_id=agent.id, tenant_id=agent.tenant_id, progress=suspend)
    assert (len(cycle.ticks), cycle.left) == (1, 4)
    assert cycle.ended.startswith(f"no longer active: the tenant {slug} is suspended")
    assert waited == []


def test_a_refused_cycle_does_not_change_the_ticks(runtime: AgentRuntime, agent: Agent, fleet: Fleet) -> None:
    runtime.allocate_ticks(agent.id, 3)
    with pytest.raises(BudgetExhausted):
        runtime.run_cycle(agent.id, 0)
    fleet.claim(agent)
    with pytest.raises(TransitionIllegal, match="is under way already"):
        runtime.run_cycle(agent.id, 7)
    runtime.set_status(agent.id, AgentStatus.PAUSED)
    with pytest.raises(AgentNotActive):
        runtime.run_cycle(agent.id, 7)
    assert runtime.load(agent.id).ticks_left == 3
    with tenant_transaction(agent.tenant_id):
        allocations = AuditEvent.objects.filter(agent_id=agent.id, message__contains="a cycle of")
        assert [event.detail for event in allocations] == [{"ticks": 3}]


@pytest.mark.parametrize("ticks", [-1, 257])
def test_the_ticks_of_a_cycle_are_bounded(runtime: AgentRuntime, agent: Agent, ticks: int) -> None:
    with pytest.raises(Invalid, match="0 to 256"):
        runtime.allocate_ticks(agent.id, ticks)
