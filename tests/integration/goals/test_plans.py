"""Plans, parents, blockers and satisfactions of an agent's backlog, as rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.agents.models import Agent, Percept
from apps.audit.models import AuditEvent
from apps.goals.models import Goal, Intent, Plan, PlanStep, Satisfaction
from apps.goals.services.acts import abandon_latest_plan, plan_goal
from apps.goals.services.backlogs import lock_backlog, save_backlog
from apps.goals.services.goals import (
    abandon_plan,
    add_plan,
    block_goal,
    create_goal,
    move_goal,
    place_goal,
    start_plan,
)
from apps.heartbeats.services.situations.goal_situation import goal_views, plan_views
from arbor.errors import AlreadyExists, Invalid, LimitReached, NotFound
from arbor.goals.plans import PlanDraft, PlanStatus, StepDraft, StepStatus
from arbor.goals.values import MAX_NEW_PER_HEARTBEAT, GoalSource, GoalState, NewGoalRequest
from tests.factories.goals import SatisfactionFactory

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ASKED = GoalSource.USER_REQUEST


def draft_of(*texts: str) -> PlanDraft:
    return PlanDraft(steps=[StepDraft(action="recall", description=text) for text in texts])


def intents(goal: Goal) -> list[tuple[str, str]]:
    return list(Intent.objects.filter(goal=goal).order_by("id").values_list("description", "status"))


def test_a_plan_commits_three_steps_at_a_time(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Map", source=ASKED)
    plan = add_plan(agent_id=agent_id, goal_id=goal.id, draft=draft_of("a", "b", "c", "d"))
    assert [text for text, _ in intents(goal)] == ["a", "b", "c"]
    backlog = lock_backlog(agent_id, now=NOW)
    backlog.record_attempt(Intent.objects.get(description="a").id)
    save_backlog(backlog)
    assert intents(goal) == [("a", "completed"), ("b", "pending"), ("c", "pending"), ("d", "pending")]
    assert plan.status == PlanStatus.ACTIVE


def test_a_plan_of_one_step_is_audited_as_one(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Map", source=ASKED)
    plan_goal(agent_id=agent_id, goal_id=goal.id, draft=draft_of("a"), as_draft=False, actor="test")
    abandon_latest_plan(agent_id=agent_id, goal_id=goal.id, reason=" too\nlate ", actor="test")
    messages = AuditEvent.objects.order_by("id").values_list("message", flat=True)
    assert list(messages) == ["planned goal 'Map' in 1 step", "gave up the plan of goal 'Map': too\nlate"]


def test_a_goal_has_one_active_plan_which_grows(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Map", source=ASKED)
    first = add_plan(agent_id=agent_id, goal_id=goal.id, draft=draft_of("a"))
    again = add_plan(agent_id=agent_id, goal_id=goal.id, draft=draft_of("A ", "b"))
    assert again.id == first.id
    assert list(PlanStep.objects.filter(plan=first).values_list("position", "description")) == [
        (1, "a"),
        (2, "b"),
    ]
    with pytest.raises(AlreadyExists, match="planned already"):
        add_plan(agent_id=agent_id, goal_id=goal.id, draft=draft_of("a", "b"))
    with pytest.raises(LimitReached, match="at most 20 steps; this one would have 22"):
        add_plan(agent_id=agent_id, goal_id=goal.id, draft=draft_of(*map(str, range(20))))


def test_a_person_gives_a_plan_at_most_ten_dependencies(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Map", source=ASKED)
    first = replace(draft_of("a"), dependencies=[f"boat {number}" for number in range(10)])
    plan = add_plan(agent_id=agent_id, goal_id=goal.id, draft=first)
    for further in ("a net", "Map"):
        with pytest.raises(Invalid, match=f"at most 10 things, and not on its own goal; left out: {further}"):
            add_plan(agent_id=agent_id, goal_id=goal.id, draft=replace(draft_of("b"), dependencies=[further]))
    assert PlanStep.objects.filter(plan=plan).count() == 1
    add_plan(agent_id=agent_id, goal_id=goal.id, draft=replace(draft_of("b"), dependencies=["boat 0"]))


def test_a_plan_commits_steps_once_started_with_an_active_goal(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Some day", source=GoalSource.CURIOSITY)
    draft = add_plan(agent_id=agent_id, goal_id=goal.id, draft=draft_of("a"), as_draft=True)
    assert (draft.status, intents(goal)) == (PlanStatus.DRAFT, [])
    assert start_plan(plan_id=draft.id).status == PlanStatus.ACTIVE
    assert intents(goal) == []
    move_goal(goal_id=goal.id, to=GoalState.ACTIVE)
    assert intents(goal) == [("a", "pending")]
    (view,) = plan_views(agent_id=agent_id)
    assert (view.status, view.steps[0].status) == (PlanStatus.ACTIVE, StepStatus.COMMITTED)
    other = add_plan(agent_id=agent_id, goal_id=goal.id, draft=draft_of("b"), as_draft=True)
    with pytest.raises(AlreadyExists, match="has an active plan already"):
        start_plan(plan_id=other.id)
    with pytest.raises(NotFound, match="no plan"):
        start_plan(plan_id=uuid4())


def test_an_abandoned_plan_ends_its_steps_and_leaves_a_percept(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Map", source=ASKED)
    plan = add_plan(agent_id=agent_id, goal_id=goal.id, draft=draft_of("a", "b"))
    with pytest.raises(Invalid, match="needs a reason"):
        abandon_plan(plan_id=plan.id, reason=" ")
    abandon_plan(plan_id=plan.id, reason="The pilots moved away.")
    assert {status for _, status in intents(goal)} == {"abandoned"}
    assert set(PlanStep.objects.values_list("status", flat=True)) == {StepStatus.ABANDONED}
    assert "The pilots moved away." in Percept.objects.get(agent_id=agent_id).content
    (view,) = goal_views(agent_id=agent_id, traits=None, now=NOW)
    assert set(view.flags) == {"dead-lettered", "needs a new plan"}


def test_closing_a_goal_abandons_its_plan_and_intents(agent_id: UUID) -> None:
    goal = create_goal(agent_id=agent_id, title="Map", source=ASKED)
    add_plan(agent_id=agent_id, goal_id=goal.id, draft=draft_of("a", "b"))
    move_goal(goal_id=goal.id, to=GoalState.COMPLETED)
    plan = Plan.objects.get()
    assert (plan.status, plan.reason) == (PlanStatus.ABANDONED, "its goal is completed")
    assert {status for _, status in intents(goal)} == {"abandoned"}


def test_completion_propagates_to_parents_without_open_children(agent_id: UUID) -> None:
    top = create_goal(agent_id=agent_id, title="Coast", source=ASKED)
    middle = create_goal(agent_id=agent_id, title="Reef", source=GoalSource.DERIVED, parent_id=top.id)
    low = create_goal(agent_id=agent_id, title="Shoal", source=GoalSource.DERIVED, parent_id=middle.id)
    side = create_goal(agent_id=agent_id, title="Port", source=GoalSource.DERIVED, parent_id=top.id)
    assert [low.state, side.state] == [GoalState.ACTIVE, GoalState.QUEUED]
    move_goal(goal_id=low.id, to=GoalState.COMPLETED)
    state = dict(Goal.objects.values_list("title", "state"))
    assert (state["Reef"], state["Coast"]) == (GoalState.COMPLETED, GoalState.ACTIVE)
    assert Goal.objects.get(title="Coast").fraction == 0.5
    move_goal(goal_id=side.id, to=GoalState.ABANDONED, reason="silted up")
    assert Goal.objects.get(title="Coast").state == GoalState.COMPLETED
    assert Satisfaction.objects.count() == 4


def test_goals_are_placed_without_cycles_and_not_too_deep(agent_id: UUID) -> None:
    top = create_goal(agent_id=agent_id, title="Coast")
    low = create_goal(agent_id=agent_id, title="Reef", parent_id=top.id)
    with pytest.raises(Invalid, match="part of itself"):
        place_goal(goal_id=top.id, parent_id=low.id)
    assert place_goal(goal_id=low.id, parent_id=None).parent_id is None
    place_goal(goal_id=top.id, parent_id=low.id)
    assert Goal.objects.get(id=top.id).parent_id == low.id


def test_goals_do_not_wait_for_each_other_in_a_circle(agent_id: UUID) -> None:
    first, second = (create_goal(agent_id=agent_id, title=title) for title in ("Boat", "Reef"))
    block_goal(goal_id=second.id, by=str(first.id))
    with pytest.raises(Invalid, match="cannot wait for itself"):
        block_goal(goal_id=first.id, by=str(second.id))
    with pytest.raises(Invalid, match="at most 500 characters"):
        block_goal(goal_id=first.id, by="x" * 501)
    with pytest.raises(NotFound):
        block_goal(goal_id=first.id, by=str(uuid4()))
    assert block_goal(goal_id=second.id, by="").blocked_by_goal_id is None


def test_one_heartbeat_adds_three_goals_at_most(agent_id: UUID) -> None:
    heartbeat = uuid4()
    for number in range(MAX_NEW_PER_HEARTBEAT):
        backlog = lock_backlog(agent_id, now=NOW, heartbeat_id=heartbeat)
        backlog.add(NewGoalRequest(title=f"Goal {number}"))
        save_backlog(backlog)
    with pytest.raises(LimitReached, match="at most 3 new goals"):
        lock_backlog(agent_id, now=NOW, heartbeat_id=heartbeat).add(NewGoalRequest(title="One more"))
    lock_backlog(agent_id, now=NOW, heartbeat_id=uuid4()).add(NewGoalRequest(title="One more"))
    create_goal(agent_id=agent_id, title="One more")


def test_past_rewards_lower_the_priority_of_similar_goals(agent_id: UUID) -> None:
    create_goal(agent_id=agent_id, title="Asked", source=ASKED)
    (before,) = goal_views(agent_id=agent_id, traits=None, now=NOW)
    for _ in range(9):
        past = SatisfactionFactory(agent=Agent.objects.get(id=agent_id), reward_actual=0.0)
        Goal.objects.filter(id=past.goal_id).update(source=ASKED, state=GoalState.ABANDONED)
    (after,) = goal_views(agent_id=agent_id, traits=None, now=NOW)
    assert after.priority == pytest.approx(before.priority - 0.75 * 0.75)


def test_a_changed_backlog_takes_three_reads_and_three_writes(agent_id: UUID) -> None:
    top = create_goal(agent_id=agent_id, title="Coast", source=ASKED)
    goal = create_goal(agent_id=agent_id, title="Reef", source=GoalSource.DERIVED, parent_id=top.id)
    add_plan(agent_id=agent_id, goal_id=goal.id, draft=draft_of("a", "b"))
    first = Intent.objects.get(description="a")
    with CaptureQueriesContext(connection) as queries:
        backlog = lock_backlog(agent_id, now=NOW, heartbeat_id=uuid4())
        backlog.record_attempt(first.id, error="no boat", final=True)
        backlog.plan(goal.id, draft_of("c", "d"))
        backlog.add(NewGoalRequest(title="Another"))
        backlog.progress(goal.id, note="hard going", fraction=1)
        save_backlog(backlog)
    # The last statement writes the signals.
    assert len(queries) == 6, [query["sql"][:80] for query in queries.captured_queries]
    assert Goal.objects.get(id=top.id).state == GoalState.COMPLETED
