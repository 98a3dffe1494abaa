"""Backlogs of several agents: locked, loaded and saved together, each as if it were alone."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection, models
from django.test.utils import CaptureQueriesContext
from structlog.testing import capture_logs

from apps.agents.models import Agent, Percept, PerceptKind
from apps.goals.models import Goal, GoalMemoryLink, Intent, Plan, PlanStep, ProgressNote, Satisfaction
from apps.goals.services.backlogs import (
    load_backlogs,
    lock_backlog,
    save_backlog,
    save_backlogs,
)
from apps.goals.services.goals import link_memories
from apps.goals.services.loading import lock_rows
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.situations.goal_situation import load_goals
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.goals.hierarchy import ChildGoal
from arbor.goals.intents import STALE_LOCK, IntentStatus
from arbor.goals.plans import GoalLink, LinkKind, PlanDraft, PlanStatus, StepDraft, StepStatus
from arbor.goals.rows import (
    GoalPerceptKind,
    GoalRow,
    IntentRow,
    NoteRow,
    PerceptRow,
    PlanRow,
    SatisfactionRow,
    StepRow,
)
from arbor.goals.satisfaction import ExperiencedReward
from arbor.goals.values import GoalSource, GoalState, NewGoalRequest
from tests.factories.agents import AgentFactory
from tests.factories.goals import (
    GoalFactory,
    IntentFactory,
    PlanFactory,
    PlanStepFactory,
    SatisfactionFactory,
)
from tests.factories.heartbeats import HeartbeatFactory
from tests.factories.memories import MemoryFactory
from tests.support.threads import start_blocked

NOW = datetime(2026, 5, 1, 12, 30, 15, 123456, tzinfo=UTC)
MODELS: list[tuple[type[Any], type[models.Model]]] = [
    (GoalRow, Goal),
    (PlanRow, Plan),
    (StepRow, PlanStep),
    (IntentRow, Intent),
    (NoteRow, ProgressNote),
    (SatisfactionRow, Satisfaction),
    (PerceptRow, Percept),
]
TWO_STEPS = PlanDraft(
    steps=[StepDraft(action="recall", description=text, estimated_ticks=2) for text in ("a", "b")],
    dependencies=["a boat"],
    risk=0.3,
)


@pytest.fixture
def agents(in_tenant: UUID) -> list[UUID]:
    """Return the ids of three agents, inside their tenant's transaction."""
    return [AgentFactory().id for _ in range(3)]


def assert_same(row: Any, stored: models.Model) -> None:
    """Check that a row as a value equals the row in the database."""
    for field in fields(row):
        assert getattr(row, field.name) == getattr(stored, field.name), field.name


@pytest.mark.parametrize(("row", "model"), MODELS)
def test_a_row_has_the_names_of_its_columns(row: type[Any], model: type[models.Model]) -> None:
    columns = {field.attname for field in model._meta.concrete_fields}
    assert {field.name for field in fields(row)} <= columns


def test_percepts_about_goals_have_kinds_of_percepts() -> None:
    assert {kind.value for kind in GoalPerceptKind} <= set(PerceptKind.values)


def test_backlogs_are_loaded_and_saved_by_three_statements_each(agents: list[UUID]) -> None:
    heartbeats = {agent_id: uuid4() for agent_id in agents}
    coasts = {agent_id: GoalFactory(agent_id=agent_id, title="Chart the coast") for agent_id in agents}
    with CaptureQueriesContext(connection) as queries:
        backlogs = load_backlogs(heartbeats, now=NOW)
    assert len(queries) == 3
    for agent_id, backlog in backlogs.items():
        backlog.plan(coasts[agent_id].id, TWO_STEPS)
        backlog.mark_dependency_met(coasts[agent_id].id, "a boat")
        backlog.progress(coasts[agent_id].id, fraction=0.5, note=f"By {agent_id}.")
        backlog.add(NewGoalRequest(title="Sound the reef"))
    with CaptureQueriesContext(connection) as queries:
        save_backlogs(backlogs.values())
    # One statement writes the signals; a heartbeat writes them with its own row.
    assert len(queries) == 3
    with CaptureQueriesContext(connection) as queries:
        save_backlogs(backlogs.values())
    assert len(queries) == 0
    for agent_id in agents:
        coast, reef = Goal.objects.filter(agent_id=agent_id).order_by("title")
        assert (coast.fraction, coast.touched_at, coast.notes.get().text) == (0.5, NOW, f"By {agent_id}.")
        assert (reef.state, reef.heartbeat_id, reef.created_at) == (
            GoalState.QUEUED,
            heartbeats[agent_id],
            NOW,
        )
        assert list(coast.intents.order_by("id").values_list("agent_id", "description")) == [
            (agent_id, "a"),
            (agent_id, "b"),
        ]


def test_agents_of_a_batch_do_not_share_their_backlogs(agents: list[UUID]) -> None:
    first, second, empty = agents
    mine, other = (GoalFactory(agent_id=agent_id, title="Chart the coast") for agent_id in (first, second))
    backlogs = load_backlogs(dict.fromkeys(agents), now=NOW)
    assert list(backlogs) == agents
    assert [backlog.counts.open for backlog in backlogs.values()] == [1, 1, 0]
    assert backlogs[second].title_of(mine.id) == ""
    backlogs[first].move(mine.id, GoalState.COMPLETED)
    assert not backlogs[second].changes()
    assert not backlogs[empty].changes()
    save_backlogs(backlogs.values())
    other.refresh_from_db()
    assert (other.state, other.fraction) == (GoalState.ACTIVE, 0.4)
    assert set(Percept.objects.values_list("agent_id", flat=True)) == {first}
    assert Satisfaction.objects.get().agent_id == first


def test_empty_and_unchanged_backlogs_run_no_query(agents: list[UUID]) -> None:
    backlogs = load_backlogs(dict.fromkeys(agents), now=NOW)
    with CaptureQueriesContext(connection) as queries:
        assert load_backlogs({}, now=NOW) == {}
        save_backlogs(backlogs.values())
    assert len(queries) == 0


def test_every_column_is_loaded_as_it_is_stored(agents: list[UUID]) -> None:
    agent_id = agents[0]
    whole, blocker = (GoalFactory(agent_id=agent_id, title=title) for title in ("Coast", "Boat"))
    goal = GoalFactory(
        agent_id=agent_id,
        parent=whole,
        title="Reef",
        state=GoalState.BACKBURNER,
        fraction_by_hand=True,
        blocked_by="no diver",
        blocked_by_goal=blocker,
        emotional_valence=-0.25,
        expected_reward=0.7,
        type="avoid",
        priority=80,
        effort=4,
        deadline=NOW,
        heartbeat_id=uuid4(),
        rule="curiosity",
        completed_at=NOW - timedelta(days=1),
        abandoned_at=NOW - timedelta(days=2),
        abandonment_reason="reopened",
    )
    plan = PlanFactory(
        agent_id=agent_id,
        goal=goal,
        dependencies=["a boat", "“a net”"],
        met=["a boat"],
        estimated_cost=1.5,
        reason="why",
    )
    steps = [
        PlanStepFactory(
            plan=plan,
            position=position,
            precondition="before",
            postcondition="after",
            estimated_ticks=position,
            status=status,
        )
        for position, status in ((2, StepStatus.WAITING), (1, StepStatus.COMMITTED))
    ]
    intent = IntentFactory(
        agent_id=agent_id,
        goal=goal,
        step=steps[1],
        status=IntentStatus.LOCKED,
        attempts=2,
        last_error="no boat",
        locked_by=uuid4(),
        locked_at=NOW,
        ticks_used=3,
        tick_limit=6,
    )
    rows = lock_rows(agents)[agent_id]
    for stored in (whole, blocker, goal):
        assert_same(rows.goals[stored.id], stored)
    assert_same(rows.plans[plan.id], plan)
    for row, step in zip(rows.steps, reversed(steps), strict=True):
        assert_same(row, step)
    assert_same(rows.intents[intent.id], intent)


def test_every_column_is_stored_as_it_is_in_memory(agents: list[UUID]) -> None:
    agent_id, heartbeat = agents[0], uuid4()
    backlog = lock_backlog(agent_id, now=NOW, heartbeat_id=heartbeat)
    whole = backlog.add(NewGoalRequest(title="Coast", description="“All” of it."))
    backlog.move(whole.id, GoalState.ACTIVE)
    part = backlog.add(NewGoalRequest(title="Reef", parent_id=whole.id, deadline=NOW, rule="curiosity"))
    backlog.block(part.id, str(whole.id))
    plan, steps = backlog.plan(whole.id, TWO_STEPS)
    backlog.mark_dependency_met(whole.id, "a boat")
    save_backlog(backlog)
    backlog = lock_backlog(agent_id, now=NOW + timedelta(hours=1), heartbeat_id=heartbeat)
    loaded = [backlog.intent(intent.id) for intent in Intent.objects.order_by("id")]
    backlog.lock_intents([intent.id for intent in loaded])
    backlog.record_attempt(loaded[0].id)
    backlog.record_attempt(loaded[1].id, error="no boat", final=True)
    backlog.set_deadline(whole.id, NOW)
    backlog.progress(part.id, fraction=1, note="All\u2028of it.")
    changes = backlog.changes()
    save_backlog(backlog)
    assert {goal.id for goal in changes.changed_goals} == {whole.id, part.id}
    for row in changes.changed_goals:
        assert_same(row, Goal.objects.get(id=row.id))
    assert_same(changes.changed_plans[0], Plan.objects.get(id=plan.id))
    for step in changes.changed_steps:
        assert_same(step, PlanStep.objects.get(id=step.id))
    assert {step.id for step in changes.changed_steps} == {step.id for step in steps}
    for intent in changes.changed_intents:
        assert_same(intent, Intent.objects.get(id=intent.id))
    for additions, manager in (
        (changes.notes, ProgressNote.objects),
        (changes.satisfactions, Satisfaction.objects),
        (changes.percepts, Percept.objects),
    ):
        for addition in additions:
            stored = manager.get(id=addition.id)
            assert_same(addition, stored)
            assert stored.at == NOW + timedelta(hours=1)
    percept = Percept.objects.get()
    assert (percept.urgent, percept.heartbeat_id, percept.peer_id) == (False, None, None)


def test_ended_goals_are_counted_by_goal_and_by_agent(agents: list[UUID]) -> None:
    first, second, empty = agents
    for agent_id, states in ((first, ["completed", "completed", "abandoned"]), (second, ["abandoned"])):
        top = GoalFactory(agent_id=agent_id, title="Coast", source=GoalSource.ROLE)
        GoalFactory(agent_id=agent_id, parent=top, title="Reef")
        for state in states:
            ended = GoalFactory(agent_id=agent_id, parent=top, state=state, source=GoalSource.SOCIAL)
            SatisfactionFactory(agent_id=agent_id, goal=ended, reward_actual=len(states) / 4)
    rows = lock_rows(agents)
    completed, abandoned = ChildGoal(state=GoalState.COMPLETED), ChildGoal(state=GoalState.ABANDONED)
    ((of_first,), (of_second,)) = (rows[agent_id].ended_children.values() for agent_id in (first, second))
    assert sorted(child.state for child in of_first) == ["abandoned", "completed", "completed"]
    assert of_second == [abandoned]
    assert completed in of_first
    assert rows[first].experienced == {GoalSource.SOCIAL: ExperiencedReward(mean=0.75, goals=3)}
    assert rows[second].experienced == {GoalSource.SOCIAL: ExperiencedReward(mean=0.25, goals=1)}
    assert (rows[empty].ended_children, rows[empty].experienced) == ({}, {})


@pytest.mark.parametrize(
    ("holder", "age", "claimed"),
    [
        (HeartbeatStatus.DONE, STALE_LOCK, True),
        (HeartbeatStatus.FAILED, STALE_LOCK, True),
        (None, STALE_LOCK, True),
        (HeartbeatStatus.DONE, STALE_LOCK - timedelta(seconds=1), False),
        (HeartbeatStatus.RUNNING, timedelta(days=1), False),
        (HeartbeatStatus.WAITING, timedelta(days=1), False),
    ],
)
def test_a_lock_is_claimed_when_its_heartbeat_has_ended(
    agents: list[UUID], holder: HeartbeatStatus | None, age: timedelta, claimed: bool
) -> None:
    agent_id, heartbeat = agents[0], uuid4()
    before = HeartbeatFactory(agent_id=agent_id, status=holder).id if holder else uuid4()
    goal = GoalFactory(agent_id=agent_id)
    intent = IntentFactory(
        agent_id=agent_id,
        goal=goal,
        status=IntentStatus.LOCKED,
        locked_by=before,
        locked_at=NOW - age,
        ticks_used=1,
    )
    backlogs = load_backlogs({agent_id: heartbeat, agents[1]: uuid4()}, now=NOW)
    backlogs[agents[1]].lock_intents([intent.id])
    backlogs[agent_id].lock_intents([intent.id])
    save_backlogs(backlogs.values())
    intent.refresh_from_db()
    assert intent.status == IntentStatus.LOCKED
    assert (intent.locked_by, intent.ticks_used) == ((heartbeat, 2) if claimed else (before, 1))


def test_another_tenants_agents_and_their_goals_are_not_loaded(tenant: Tenant, other_tenant: Tenant) -> None:
    with tenant_transaction(other_tenant.id):
        goal = GoalFactory()
        theirs = goal.agent_id
    with tenant_transaction(tenant.id):
        ours = GoalFactory().agent_id
        backlogs = load_backlogs({ours: None, theirs: None}, now=NOW)
        assert [backlogs[agent_id].counts.open for agent_id in (ours, theirs)] == [1, 0]
        assert backlogs[theirs].title_of(goal.id) == ""
        assert load_goals([ours, theirs])[theirs] == {}


def test_a_closed_goal_is_logged_once_by_its_save(agents: list[UUID]) -> None:
    goals = [GoalFactory(agent_id=agent_id, source=GoalSource.ROLE, effort=4) for agent_id in agents[:2]]
    backlogs = load_backlogs(dict.fromkeys(agents, uuid4()), now=NOW)
    with capture_logs() as logs:
        backlogs[agents[0]].move(goals[0].id, GoalState.COMPLETED)
        backlogs[agents[1]].move(goals[1].id, GoalState.ABANDONED, reason="dry")
        assert logs == []
        save_backlogs(backlogs.values())
        save_backlogs(backlogs.values())
    closed = [line for line in logs if line["event"] == "goal_closed"]
    assert [(line["goal_id"], line["state"], line["outcome"], line["effort"]) for line in closed] == [
        (str(goals[0].id), "completed", "success", 4),
        (str(goals[1].id), "abandoned", "failure", 4),
    ]


def test_memories_are_linked_to_goals_once_by_one_statement(agents: list[UUID]) -> None:
    links = []
    for agent_id in agents:
        memory = MemoryFactory(agent_id=agent_id)
        goal = GoalFactory(agent_id=agent_id)
        links += [GoalLink(goal_id=goal.id, memory_id=memory.id, kind=kind) for kind in LinkKind]
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            link_memories([*links, links[0]])
        assert len(queries) == 1
    with CaptureQueriesContext(connection) as queries:
        link_memories([])
    assert len(queries) == 0
    stored = GoalMemoryLink.objects.values_list("goal_id", "memory_id", "kind")
    assert sorted(stored) == sorted((link.goal_id, link.memory_id, link.kind.value) for link in links)


def test_goals_of_several_agents_are_loaded_by_one_query(agents: list[UUID]) -> None:
    for number, agent_id in enumerate(agents[:2]):
        goal = GoalFactory(agent_id=agent_id, title=f"Goal of {number}")
        plan = PlanFactory(agent_id=agent_id, goal=goal, status=PlanStatus.ACTIVE)
        PlanStepFactory(plan=plan, description=f"step of {number}")
        IntentFactory(agent_id=agent_id, goal=goal, description=f"intent of {number}")
    with CaptureQueriesContext(connection) as queries:
        loaded = load_goals([*agents, missing := uuid4()])
    assert len(queries) == 1
    for number, agent_id in enumerate(agents[:2]):
        columns = loaded[agent_id]
        assert [goal[1] for goal in columns["goals"]] == [f"Goal of {number}"]
        assert [intent["description"] for intent in columns["intents"]] == [f"intent of {number}"]
        assert [plan["steps"][0]["description"] for plan in columns["plans"]] == [f"step of {number}"]
    assert (loaded[agents[2]]["goals"], loaded[missing]) == ([], {})


def test_agents_are_locked_in_the_order_of_their_ids(tenant: Tenant) -> None:
    low, high = UUID(int=7 << 64), UUID(int=9 << 64)
    with tenant_transaction(tenant.id):
        # The table has them in the other order.
        for agent_id in (high, low):
            AgentFactory(id=agent_id)

    def load() -> None:
        with tenant_transaction(tenant.id):
            with connection.cursor() as cursor:
                # An index would give them in order by chance.
                cursor.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off")
            load_backlogs(dict.fromkeys((high, low)), now=NOW)

    with tenant_transaction(tenant.id):
        lock_backlog(low, now=NOW)
        start_blocked(load)
        # The other worker waits for its first agent, and has not locked its second: that could become a deadlock.
        assert Agent.objects.filter(id=high).select_for_update(nowait=True).exists()
