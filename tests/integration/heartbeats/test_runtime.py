"""The runtime, as a program that embeds Arbor uses it."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError

from apps.agents.models import Agent, AgentState, ScheduleState
from apps.agents.services.percepts import perceive
from apps.audit.models import AuditAction, AuditEvent
from apps.fleet.runtime import Runtime
from apps.goals.models import Goal
from apps.goals.services.goals import add_plan, create_goal
from apps.heartbeats.models import HeartbeatStatus
from apps.selves.models import PeerModel, Preference
from apps.tenants import services
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import create_tenant
from arbor.agents.genome import AgentGenome, AgentRole, AgentTraits
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import (
    AgentDormant,
    AgentNotActive,
    AlreadyExists,
    GoalStackFull,
    Invalid,
    NotFound,
    ServerError,
    TransitionIllegal,
    WorkingMemoryOverflow,
)
from arbor.goals.plans import PlanDraft, StepDraft
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.working_memory import Thought, WorkingMemory
from arbor.ids import uuid7
from arbor.runtime import AgentRuntime, NewGoal
from arbor.selves.drives import Drive
from config.runtime import open_runtime
from tests.integration.heartbeats.conftest import REST, begin_heartbeat, schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of

REMEMBER = reply_of(actions=[action_of("remember", content="The pier has a lamp.")])
GENOME = AgentGenome(
    role=AgentRole.EXPLORER,
    traits=AgentTraits(risk_tolerance=0.9, collaboration=0.4, depth_vs_breadth=0.7, quality_vs_speed=0.7),
)


def test_an_agent_is_spawned_with_its_genome_and_lives(
    runtime: AgentRuntime, agent: Agent, scripted: Script
) -> None:
    scripted(REMEMBER)
    spawned = runtime.spawn(name="Nova", template="Scout", genome=GENOME, ticks=5, parent=agent.id)
    loaded = runtime.load(spawned)
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
    assert runtime.load(spawned).heartbeats == 1
    with pytest.raises(AlreadyExists):
        runtime.spawn(name="Nova", template="Scout")


def test_a_paused_or_dormant_agent_refuses_a_heartbeat(runtime: AgentRuntime, agent: Agent) -> None:
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


def test_a_program_puts_an_agent_to_sleep_and_wakes_it(runtime: AgentRuntime, agent: Agent) -> None:
    assert runtime.set_status(agent.id, AgentStatus.DORMANT) is AgentStatus.DORMANT
    assert schedule_of(agent).state == ScheduleState.OFF
    with tenant_transaction(agent.tenant_id):
        slept = AuditEvent.objects.get(agent_id=agent.id, action=AuditAction.AGENT_DORMANT)
    assert (slept.actor, slept.detail) == ("program:test", {"from": "active", "to": "dormant"})
    with pytest.raises(AgentDormant):
        runtime.tick(agent.id)
    assert runtime.set_status(agent.id, AgentStatus.ACTIVE) is AgentStatus.ACTIVE


def test_an_agent_is_named_by_either_id_and_by_its_name(runtime: AgentRuntime, agent: Agent) -> None:
    for name in (agent.id, str(agent.id), str(agent.id).upper(), agent.public_id, "Ada", "ada"):
        assert runtime.load(name).id == agent.id
        assert runtime.status(name) is AgentStatus.ACTIVE
    for name in ("", "nobody", "agent_00", str(uuid7()), "a\0b"):
        with pytest.raises(NotFound):
            runtime.status(name)


@pytest.mark.parametrize(
    ("goal", "fault"),
    [
        ({"layer": "nope"}, "aspiration, objective, task"),
        ({"source": "nope"}, "user_request"),
        ({"state": "nope"}, "active, queued, backburner"),
    ],
)
def test_a_goal_with_an_invalid_value_is_refused(
    runtime: AgentRuntime, agent: Agent, goal: dict[str, Any], fault: str
) -> None:
    with pytest.raises(Invalid, match=f"{fault}.*got 'nope'"):
        runtime.inject_goal(agent.id, NewGoal(title="Answer Mia", **goal))


def test_enum_values_are_accepted_as_texts(runtime: AgentRuntime, agent: Agent) -> None:
    goal: dict[str, Any] = {"layer": "task", "source": "user_request", "state": "queued"}
    goal_id = runtime.inject_goal(agent.id, NewGoal(title="Answer Mia", **goal))
    task_goal = next(task for task in runtime.goals(agent.id).tasks if task.id == str(goal_id))
    assert (task_goal.source, task_goal.state) == (GoalSource.USER_REQUEST, GoalState.QUEUED)
    status: Any = "dead"
    with pytest.raises(Invalid, match=r"a status is one of created, active, .* got 'dead'"):
        runtime.set_status(agent.id, status)


def test_a_program_without_servers_gets_the_command_that_starts_them(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ARBOR_HAS_DATABASE = settings.ARBOR_RUNS_HERE = True

    def fail(_slug: str) -> None:
        raise OperationalError("connection refused\nIs the server running?")

    monkeypatch.setattr(services, "tenant_by_slug", fail)
    with pytest.raises(ServerError, match=r"connection refused\. Is `arbor up` running\?"):
        open_runtime(tenant=tenant.slug)


def test_goals_are_added_listed_by_layer_and_bounded(runtime: AgentRuntime, agent: Agent) -> None:
    goal = NewGoal(title="Answer Mia", layer=GoalLayer.TASK, source=GoalSource.USER_REQUEST)
    goal_id = runtime.inject_goal(agent.id, goal)
    assert str(goal_id) in [task.id for task in runtime.goals(agent.id).tasks]
    assert runtime.active_plan(agent.id) is None
    with pytest.raises(AlreadyExists):
        runtime.inject_goal(agent.id, goal)

    def fill() -> None:
        for n in range(60):
            runtime.inject_goal(agent.id, NewGoal(title=f"{n}: {uuid7()}", state=GoalState.BACKBURNER))

    with pytest.raises(GoalStackFull):
        fill()


def test_the_active_plan_is_the_most_urgent_goals(runtime: AgentRuntime, agent: Agent) -> None:
    steps = PlanDraft(steps=[StepDraft(action="recall", description="look")])
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).update(state=GoalState.BACKBURNER)
        long_term = {"layer": GoalLayer.ASPIRATION, "source": GoalSource.CURIOSITY}
        urgent = {"layer": GoalLayer.TASK, "source": GoalSource.USER_REQUEST}
        goals = [
            create_goal(agent_id=agent.id, title=title, state=GoalState.ACTIVE, **details)
            for title, details in (("Know the sea", long_term), ("Answer Mia", urgent))
        ]
        for goal in goals:
            add_plan(agent_id=agent.id, goal_id=goal.id, draft=steps)
    plan = runtime.active_plan(agent.id)
    assert plan is not None
    assert plan.goal_id == str(goals[1].id)


def test_peers_are_found_by_name_in_any_case(runtime: AgentRuntime, agent: Agent) -> None:
    store_peer(agent, name="Mia", interactions=4, successes=3)
    peer = runtime.peer_model(agent.id, "Mia")
    assert peer is not None
    assert (peer.interactions, peer.successes) == (4, 3)
    assert runtime.peer_model(agent.id, "mia") == peer
    assert runtime.peer_model(agent.id, uuid7()) is None
    assert runtime.peer_model(agent.id, "") is None


def test_a_peer_that_is_an_agent_is_found_by_either_id_with_its_trust(
    runtime: AgentRuntime, agent: Agent, tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    bo = new_agent(tenant, "Bo")
    store_peer(agent, name="Bo", peer=bo, interactions=4, successes=3, last_heartbeat_number=1)
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(heartbeats=100)
    peer = runtime.peer_model(agent.id, bo.id)
    assert peer is not None
    assert peer.trust == pytest.approx(0.75 * math.exp(-0.001 * 100))
    for name in (str(bo.id), bo.public_id, "Bo", "bo"):
        assert runtime.peer_model(agent.id, name) == peer
    assert runtime.load(agent.id).peers[0].trust == peer.trust


def test_an_id_names_its_agent_and_not_a_peer_of_that_name(
    runtime: AgentRuntime, agent: Agent, tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    bo = new_agent(tenant, "Bo")
    store_peer(agent, name="Bo", peer=bo, interactions=4)
    store_peer(agent, name=bo.public_id, interactions=9)
    peer = runtime.peer_model(agent.id, bo.public_id)
    assert peer is not None
    assert peer.interactions == 4


def test_an_ambiguous_peer_name_is_refused(runtime: AgentRuntime, agent: Agent) -> None:
    store_peer(agent, name="Bo", interactions=4)
    store_peer(agent, name="bo", interactions=9)
    peer = runtime.peer_model(agent.id, "bo")
    assert peer is not None
    assert peer.interactions == 9
    with pytest.raises(Invalid, match="several peers are called 'BO'"):
        runtime.peer_model(agent.id, "BO")


def store_peer(agent: Agent, **peer: Any) -> None:
    with tenant_transaction(agent.tenant_id):
        PeerModel.objects.create(tenant_id=agent.tenant_id, agent_id=agent.id, **peer)


def test_a_loaded_agent_has_what_a_heartbeat_would_read_now(
    runtime: AgentRuntime, agent: Agent, scripted: Script
) -> None:
    scripted(REMEMBER)
    runtime.tick(agent.id)
    with tenant_transaction(agent.tenant_id):
        perceive(agent_id=agent.id, kind="environment", content="It snows.", actor="test")
        Preference.objects.create(tenant_id=agent.tenant_id, agent_id=agent.id, key="tone", value="dry")
        goal = create_goal(agent_id=agent.id, title="Chart the reef", state=GoalState.QUEUED)
        draft = PlanDraft(steps=[StepDraft(action="recall", description="look")])
        add_plan(agent_id=agent.id, goal_id=goal.id, draft=draft)
        day_ago = datetime.now(UTC) - timedelta(days=1)
        AgentState.objects.filter(agent_id=agent.id).update(
            mood={"valence": 0.8, "arousal": 0.9, "at": day_ago.isoformat()}
        )
    loaded = runtime.load(agent.id)
    assert [percept.content for percept in loaded.percepts] == ["It snows."]
    assert [(preference.key, preference.value) for preference in loaded.preferences] == [("tone", "dry")]
    assert [plan.goal_id for plan in loaded.plans] == [str(goal.id)]
    assert [experience.action for experience in loaded.experiences] == []
    assert loaded.proposals == []
    assert [(capability.action, capability.attempts) for capability in loaded.capabilities] == [
        ("remember", 1)
    ]
    assert {drive.name for drive in loaded.drives} == set(Drive)
    assert loaded.mood.valence < 0.5
    assert loaded.stale_heartbeats == 1


def test_working_memory_is_refused_if_too_large_or_a_heartbeat_runs(
    runtime: AgentRuntime, agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    memory = WorkingMemory(concerns=["the tide"])
    assert runtime.flush_memory(agent.id, memory) > 10
    assert runtime.load(agent.id).working_memory.concerns == ["the tide"]
    huge = memory.model_copy(update={"thoughts": [Thought(text="x" * 70_000, at="2026-01-05T00:00:00Z")]})
    with pytest.raises(WorkingMemoryOverflow):
        runtime.flush_memory(agent.id, huge)
    scripted(REST)
    begin_heartbeat(fleet, agent)
    with pytest.raises(TransitionIllegal, match="has a heartbeat under way"):
        runtime.flush_memory(agent.id)


def test_another_tenants_agent_is_not_found(agent: Agent) -> None:
    other = create_tenant(slug="elsewhere", name="Elsewhere")
    runtime = Runtime(tenant_id=other.id, actor="test")
    for ask in (runtime.tick, runtime.load, runtime.goals, runtime.nop_count, runtime.status):
        with pytest.raises(NotFound):
            ask(agent.id)
        with pytest.raises(NotFound):
            ask("Ada")
