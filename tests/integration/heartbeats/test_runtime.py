"""The runtime of seed 003, section 4, as a program that embeds Arbor uses it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from apps.agents.models import Agent
from apps.agents.services.runtime import Runtime
from apps.goals.models import Goal, Intent
from apps.heartbeats.models import HeartbeatStatus, Trigger
from apps.selves.models import PeerModel
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import create_tenant
from arbor.agents.genome import AgentGenome, AgentRole, AgentTraits
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import (
    AgentDormant,
    AgentNotActive,
    AlreadyExists,
    BudgetExhausted,
    GoalStackFull,
    Invalid,
    NotFound,
    TransitionIllegal,
    WorkingMemoryOverflow,
)
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.working_memory import Thought, WorkingMemory
from arbor.ids import uuid7
from arbor.models.ports import ScriptedModel
from arbor.runtime import AgentRuntime, NewGoal
from config.runtime import open_runtime
from tests.integration.heartbeats.conftest import REST, beats_of, make_due
from tests.integration.heartbeats.fleet import Fleet

GENOME = AgentGenome(
    role=AgentRole.EXPLORER,
    traits=AgentTraits(risk_tolerance=0.9, collaboration=0.4, depth_vs_breadth=0.7, quality_vs_speed=0.7),
)


@pytest.fixture
def runtime(tenant: Tenant, agent: Agent) -> AgentRuntime:
    return open_runtime(tenant=tenant.slug, actor="program:test")


def remember(count: int) -> str:
    actions = [
        {"action": "remember", "params": {"content": f"The pier has {n} lamps."}} for n in range(count)
    ]
    return json.dumps({"thinking": "Keep it.", "actions": actions})


def test_an_agent_is_spawned_with_its_genome_and_lives(
    runtime: AgentRuntime, agent: Agent, scripted: Callable[..., ScriptedModel]
) -> None:
    scripted(remember(1))
    made = runtime.spawn(name="Nova", template="Scout", genome=GENOME, ticks=5, parent=agent.id)
    loaded = runtime.load(made)
    assert (loaded.name, loaded.status, loaded.genome, loaded.ticks_left) == (
        "Nova",
        AgentStatus.ACTIVE,
        GENOME,
        5,
    )
    tick = runtime.tick("Nova")
    assert (tick.status, tick.number) == (HeartbeatStatus.DONE, 1)
    assert tick.action is not None
    assert tick.action.action == "remember"
    assert runtime.load(made).beats == 1
    with pytest.raises(AlreadyExists):
        runtime.spawn(name="Nova", template="Scout")


def test_a_cycle_ends_when_its_ticks_are_used_up(
    runtime: AgentRuntime, agent: Agent, scripted: Callable[..., ScriptedModel]
) -> None:
    scripted(remember(2), repeat=True)
    energy = runtime.load(agent.id).energy
    cycle = runtime.run_cycle(agent.id, 5)
    assert (cycle.allocated, cycle.left, cycle.used, cycle.ended) == (5, 0, 5, "used up")
    assert [len(tick.actions) for tick in cycle.ticks] == [2, 2, 1]
    assert {beat.trigger for beat in beats_of(agent)} == {Trigger.CYCLE}
    assert runtime.load(agent.id).energy == energy
    with pytest.raises(BudgetExhausted):
        runtime.run_cycle(agent.id)


def test_a_tick_that_does_nothing_costs_one(
    runtime: AgentRuntime, agent: Agent, scripted: Callable[..., ScriptedModel]
) -> None:
    scripted("nothing to read", repeat=True)
    cycle = runtime.run_cycle(agent.id, 2)
    assert [tick.status for tick in cycle.ticks] == ["failed", "failed"]
    assert [tick.action for tick in cycle.ticks] == [None, None]
    assert cycle.left == 0
    assert runtime.nop_count(agent.id) == 2


def test_a_cycle_ends_when_nothing_is_left_to_do(
    runtime: AgentRuntime, agent: Agent, scripted: Callable[..., ScriptedModel]
) -> None:
    scripted(REST, repeat=True)
    for goal in runtime.goals(agent.id).all:
        with tenant_transaction(agent.tenant_id):
            Intent.objects.filter(goal_id=goal.id).delete()
            Goal.objects.filter(id=goal.id).delete()
    cycle = runtime.run_cycle(agent.id, 20)
    assert cycle.ended.startswith("nothing left to do: idle:")
    assert cycle.left > 0


def test_who_sleeps_or_is_held_does_not_beat(runtime: AgentRuntime, agent: Agent) -> None:
    assert runtime.set_status(agent.id, AgentStatus.PAUSED) is AgentStatus.PAUSED
    with pytest.raises(AgentNotActive):
        runtime.tick(agent.id)
    with tenant_transaction(agent.tenant_id):
        Agent.objects.filter(id=agent.id).update(status=AgentStatus.DORMANT)
    with pytest.raises(AgentDormant):
        runtime.run_cycle(agent.id, 3)
    with pytest.raises(TransitionIllegal, match="it can become active, stopped"):
        runtime.set_status(agent.id, AgentStatus.CREATED)
    assert runtime.set_status(agent.id, AgentStatus.ACTIVE) is AgentStatus.ACTIVE
    assert runtime.status(agent.id) is AgentStatus.ACTIVE


def test_goals_are_given_seen_by_layer_and_bounded(runtime: AgentRuntime, agent: Agent) -> None:
    goal = NewGoal(title="Answer Mia", layer=GoalLayer.TASK, source=GoalSource.USER_REQUEST)
    made = runtime.inject_goal(agent.id, goal)
    assert str(made) in [each.id for each in runtime.goals(agent.id).tasks]
    assert runtime.active_plan(agent.id) is None
    with pytest.raises(AlreadyExists):
        runtime.inject_goal(agent.id, goal)

    def fill() -> None:
        for n in range(60):
            runtime.inject_goal(agent.id, NewGoal(title=f"{n}: {uuid7()}", state=GoalState.BACKBURNER))

    with pytest.raises(GoalStackFull):
        fill()


def test_peers_are_found_by_id_and_by_name(runtime: AgentRuntime, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        PeerModel.objects.create(
            tenant_id=agent.tenant_id, agent_id=agent.id, name="Mia", interactions=4, successes=3
        )
    found = runtime.peer_model(agent.id, "Mia")
    assert found is not None
    assert (found.interactions, found.successes) == (4, 3)
    assert runtime.peer_model(agent.id, uuid7()) is None


def test_working_memory_is_stored_unless_it_is_too_large_or_a_beat_runs(
    runtime: AgentRuntime, agent: Agent, fleet: Fleet, scripted: Callable[..., ScriptedModel]
) -> None:
    memory = WorkingMemory(concerns=["the tide"])
    assert runtime.flush_memory(agent.id, memory) > 10
    assert runtime.load(agent.id).working_memory.concerns == ["the tide"]
    huge = memory.model_copy(update={"thoughts": [Thought(text="x" * 70_000, at="2026-01-05T00:00:00Z")]})
    with pytest.raises(WorkingMemoryOverflow):
        runtime.flush_memory(agent.id, huge)
    scripted(REST)
    make_due(agent)
    fleet.dispatch()
    with pytest.raises(TransitionIllegal, match="is beating"):
        runtime.flush_memory(agent.id)


@pytest.mark.parametrize("ticks", [-1, 257])
def test_a_cycle_has_so_many_ticks_at_most(runtime: AgentRuntime, agent: Agent, ticks: int) -> None:
    with pytest.raises(Invalid, match="0 to 256"):
        runtime.allocate_ticks(agent.id, ticks)


def test_another_tenants_agent_is_not_found(agent: Agent) -> None:
    other = create_tenant(slug="elsewhere", name="Elsewhere")
    runtime = Runtime(tenant_id=other.id, actor="test")
    for ask in (runtime.tick, runtime.load, runtime.goals, runtime.nop_count, runtime.status):
        with pytest.raises(NotFound):
            ask(agent.id)
        with pytest.raises(NotFound):
            ask("Ada")
