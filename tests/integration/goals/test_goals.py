"""The backlog of an agent as rows, with concurrent changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.agents.models import Agent, Percept
from apps.audit.models import AuditEvent
from apps.goals.models import Goal, Intent, ProgressNote
from apps.goals.services.acts import REASON_LENGTH, GoalEdit, abandon_latest_plan, change_goal
from apps.goals.services.backlogs import lock_backlog, save_backlog
from apps.goals.services.goals import create_goal, move_goal, record_progress
from apps.heartbeats.services.situations.goal_situation import goal_views, load_goals
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import AlreadyExists, Invalid, LimitReached, NotFound, TransitionIllegal
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanDraft, StepDraft
from arbor.goals.review import GoalFlag
from arbor.goals.values import (
    FEELING_OF_PROGRESS,
    MAX_ACTIVE,
    GoalLayer,
    GoalSource,
    GoalState,
    NewGoalRequest,
)
from arbor.heartbeat.goal_situation import view_goals
from tests.factories.agents import AgentFactory
from tests.support.races import race

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    with tenant_transaction(tenant.id):
        created: Agent = AgentFactory()
        return created


def commit_intent(agent_id: UUID, *, tick_limit: int | None = None) -> Intent:
    """Add a goal with one intent, and return the intent."""
    backlog = lock_backlog(agent_id, now=NOW)
    goal = backlog.add(NewGoalRequest(title="Map", source=GoalSource.USER_REQUEST))
    backlog.plan(goal.id, PlanDraft(steps=[StepDraft(action="recall", description="Recall the river.")]))
    (intent,) = backlog.changes().new_intents
    intent.tick_limit = tick_limit
    save_backlog(backlog)
    return Intent.objects.get(id=intent.id)


def states(agent_id: UUID) -> dict[str, str]:
    return dict(Goal.objects.filter(agent_id=agent_id).values_list("title", "state"))


def test_the_reason_of_people_and_programs_has_one_limit(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Map")
    edit = GoalEdit(state=GoalState.ABANDONED, reason="a" * (REASON_LENGTH + 1))
    with pytest.raises(Invalid, match="at most 500 characters"):
        change_goal(agent_id=agent_id, goal_id=goal.id, change=edit, actor="test")
    with pytest.raises(Invalid, match="at most 500 characters"):
        abandon_latest_plan(agent_id=agent_id, goal_id=goal.id, reason=edit.reason, actor="test")


@pytest.mark.parametrize(
    ("edit", "refusal"),
    [
        (GoalEdit(note=" "), "there is nothing to change"),
        (GoalEdit(reason="It is dry."), "there is nothing to change"),
        (GoalEdit(note="Half of the bank.", reason="It is dry."), "belongs to a new state"),
    ],
)
def test_an_edit_without_effect_is_refused(agent_id: UUID, edit: GoalEdit, refusal: str) -> None:
    goal = create_goal(agent_id=agent_id, title="Map")
    with pytest.raises(Invalid, match=refusal):
        change_goal(agent_id=agent_id, goal_id=goal.id, change=edit, actor="test")


@pytest.mark.parametrize(
    "edit",
    [
        GoalEdit(state=GoalState.QUEUED),
        GoalEdit(state=GoalState.COMPLETED, fraction=1.0),
        GoalEdit(fraction=1.0),
    ],
)
def test_the_reason_of_a_new_state_is_audited(agent_id: UUID, edit: GoalEdit) -> None:
    goal = create_goal(agent_id=agent_id, title="Map", source=GoalSource.USER_REQUEST)
    change = replace(edit, reason=" The ford is closed. ")
    change_goal(agent_id=agent_id, goal_id=goal.id, change=change, actor="test")
    assert AuditEvent.objects.get().message.endswith(": The ford is closed.")


def test_two_open_goals_do_not_share_a_title(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Map the river")
    with pytest.raises(AlreadyExists):
        create_goal(agent_id=agent_id, title="map  the RIVER")
    move_goal(goal_id=goal.id, to=GoalState.ABANDONED, reason="It is dry.")
    create_goal(agent_id=agent_id, title="map the river")


def test_only_legal_moves_are_made_and_only_where_there_is_room(agent_id: UUID) -> None:
    goals = [
        create_goal(agent_id=agent_id, title=f"Goal {number}", source=GoalSource.USER_REQUEST)
        for number in range(MAX_ACTIVE + 1)
    ]
    with pytest.raises(LimitReached, match="at most 3 goals are active"):
        move_goal(goal_id=goals[-1].id, to=GoalState.ACTIVE)
    with pytest.raises(TransitionIllegal, match="can become"):
        move_goal(goal_id=goals[-1].id, to=GoalState.COMPLETED)
    with pytest.raises(Invalid, match="needs a reason"):
        move_goal(goal_id=goals[0].id, to=GoalState.ABANDONED, reason=" ")
    completed = move_goal(goal_id=goals[0].id, to=GoalState.COMPLETED)
    assert (completed.fraction, completed.completed_at is not None) == (1.0, True)
    assert move_goal(goal_id=goals[-1].id, to=GoalState.ACTIVE).state == GoalState.ACTIVE
    with pytest.raises(NotFound):
        move_goal(goal_id=goals[0].id, to=GoalState.ACTIVE)


def test_full_progress_is_noted_and_completes_an_active_goal(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Map", source=GoalSource.USER_REQUEST)
    record_progress(goal_id=goal.id, note="Half of the bank.", fraction=0.5)
    with pytest.raises(Invalid, match="0 to 1"):
        record_progress(goal_id=goal.id, fraction=1.5)
    assert record_progress(goal_id=goal.id, note="All of it.", fraction=1).state == GoalState.COMPLETED
    assert list(ProgressNote.objects.order_by("id").values_list("text", flat=True)) == [
        "Half of the bank.",
        "All of it.",
    ]


def test_a_heartbeat_spent_on_a_goal_keeps_it_from_going_stale(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Map", source=GoalSource.USER_REQUEST)
    Goal.objects.update(touched_at=NOW - timedelta(days=8))
    assert flags_of(agent_id) == [GoalFlag.STALE]
    backlog = lock_backlog(agent_id, now=NOW)
    backlog.count_heartbeat(goal.id)
    save_backlog(backlog)
    assert flags_of(agent_id) == []
    assert Goal.objects.get().effort == 1


def test_an_aspiration_that_nobody_has_touched_is_not_flagged(agent_id: UUID) -> None:
    create_goal(agent_id=agent_id, title="Map", source=GoalSource.USER_REQUEST, layer=GoalLayer.ASPIRATION)
    Goal.objects.update(touched_at=NOW - timedelta(days=8))
    assert flags_of(agent_id) == []


def flags_of(agent_id: UUID) -> list[str]:
    (view,) = goal_views(agent_id=agent_id, traits=None, now=NOW)
    return view.flags


def test_progress_and_failure_move_the_valence_of_a_goal(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Map", source=GoalSource.USER_REQUEST)
    backlog = lock_backlog(agent_id, now=NOW)
    backlog.progress(goal.id, fraction=0.5)
    save_backlog(backlog)
    (view,) = view_goals(load_goals([agent_id])[agent_id], traits=None, now=NOW)["goals"]
    assert view.emotional_valence == FEELING_OF_PROGRESS
    backlog = lock_backlog(agent_id, now=NOW)
    backlog.plan(goal.id, PlanDraft(steps=[StepDraft(action="recall", description="Look at it")]))
    (intent,) = backlog.changes().new_intents
    backlog.record_attempt(intent.id, error="nothing was found")
    save_backlog(backlog)
    (view,) = view_goals(load_goals([agent_id])[agent_id], traits=None, now=NOW)["goals"]
    assert view.emotional_valence == 0


def test_closing_a_goal_abandons_its_intents(agent_id: UUID) -> None:
    intent = commit_intent(agent_id)
    move_goal(goal_id=intent.goal_id, to=GoalState.ABANDONED, reason="It is dry.")
    stored = Intent.objects.get(id=intent.id)
    assert (stored.status, stored.last_error) == (IntentStatus.ABANDONED, "its goal is abandoned")


def test_an_intent_is_tried_three_times(agent_id: UUID) -> None:
    intent = commit_intent(agent_id)
    outcomes = []
    for _ in range(3):
        backlog = lock_backlog(agent_id, now=NOW)
        outcomes.append(str(backlog.record_attempt(intent.id, error="nothing came to mind").status))
        save_backlog(backlog)
    assert outcomes == ["pending", "pending", "abandoned"]
    assert Intent.objects.get().attempts == 3
    assert view_goals(load_goals([agent_id])[agent_id], traits=None, now=NOW)["intents"] == []


@pytest.mark.parametrize(("limit", "tries", "kind"), [(1, 1, "timeout"), (None, 3, "action_result")])
def test_timeouts_and_failures_of_a_step_are_different_percepts(
    agent_id: UUID, limit: int | None, tries: int, kind: str
) -> None:
    intent = commit_intent(agent_id, tick_limit=limit)
    for _ in range(tries):
        assert not Percept.objects.exists()
        backlog = lock_backlog(agent_id, now=NOW)
        backlog.record_attempt(intent.id, error="nothing came to mind")
        save_backlog(backlog)
    assert Percept.objects.get().kind == kind


def test_a_backlog_is_written_only_when_saved(agent_id: UUID) -> None:
    backlog = lock_backlog(agent_id, now=NOW)
    backlog.add(NewGoalRequest(title="Map"))
    assert not Goal.objects.exists()
    save_backlog(backlog)
    save_backlog(backlog)
    assert Goal.objects.count() == 1


def test_an_unknown_goal_is_not_found(agent_id: UUID) -> None:
    for wrong in (uuid4(), "not-an-id"):
        with pytest.raises(NotFound):
            lock_backlog(agent_id, now=NOW).goal(wrong)
    with pytest.raises(NotFound):
        move_goal(goal_id=uuid4(), to=GoalState.ACTIVE)


def test_another_tenants_goal_is_not_found(agent: Agent, other_tenant: Tenant) -> None:
    with tenant_transaction(agent.tenant_id):
        goal = create_goal(agent_id=agent.id, title="Map")
    with tenant_transaction(other_tenant.id), pytest.raises(NotFound):
        move_goal(goal_id=goal.id, to=GoalState.ACTIVE)


def test_goals_are_viewed_with_their_last_notes_in_one_query(agent_id: UUID) -> None:
    urgent = create_goal(
        agent_id=agent_id, title="Late", source=GoalSource.USER_REQUEST, deadline=NOW - timedelta(days=1)
    )
    create_goal(agent_id=agent_id, title="Idle", source=GoalSource.CURIOSITY)
    for number in range(4):
        record_progress(goal_id=urgent.id, note=f"note {number}")
    with CaptureQueriesContext(connection) as queries:
        viewed = view_goals(load_goals([agent_id])[agent_id], traits=None, now=NOW)
    assert len(queries) == 1
    assert viewed["intents"] == []
    views = viewed["goals"]
    assert [view.title for view in views] == ["Late", "Idle"]
    assert views[0].notes == ["note 1", "note 2", "note 3"]
    assert views[0].flags


def test_concurrent_goals_fill_the_last_place_once(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        for number in range(MAX_ACTIVE - 1):
            create_goal(agent_id=agent.id, title=f"Goal {number}", source=GoalSource.USER_REQUEST)

    def add(number: int) -> None:
        with tenant_transaction(agent.tenant_id):
            create_goal(agent_id=agent.id, title=f"Late {number}", source=GoalSource.USER_REQUEST)

    race(*(partial(add, number) for number in range(4)))
    with tenant_transaction(agent.tenant_id):
        goal_states = list(states(agent.id).values())
    assert (goal_states.count(GoalState.ACTIVE), goal_states.count(GoalState.QUEUED)) == (MAX_ACTIVE, 3)
