"""Actions that serve goals without being planned steps, and the review of goals."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connections
from django.utils import timezone

from apps.agents.models import Agent
from apps.goals.models import Goal, GoalMemoryLink
from apps.goals.services.goals import create_goal, move_goal
from apps.tenants.scope import APP, tenant_transaction
from arbor.goals.plans import LinkKind
from arbor.goals.values import GoalSource, GoalState
from tests.integration.heartbeats.conftest import REST
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.goals.conftest import RunReplies, allow_actions, last_done
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of


def action_for(goal_id: object, name: str, /, **params: Any) -> dict[str, Any]:
    """Return an action that serves a goal."""
    return {**action_of(name, **params), "goal_id": str(goal_id)}


def test_an_action_for_a_goal_is_effort_and_relates_the_heartbeat(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(id=reef.id).update(touched_at=timezone.now() - timedelta(days=8))
    run_replies(
        reply_of(
            actions=[
                action_for(reef.id, "remember", content="Twelve fathoms at the north end."),
                action_for(reef.id, "reflect", insight="It is deeper than the charts say."),
                action_for(reef.id, "connect", from_id="x", to_id="y", relation="causes"),
            ]
        )
    )
    heartbeat = last_done(agent)
    assert [(change["title"], change["kind"], change["change"]) for change in heartbeat.goal_changes] == [
        ("Sound the reef", "progressed", "by remember, reflect")
    ]
    with tenant_transaction(agent.tenant_id):
        reef.refresh_from_db()
        link = GoalMemoryLink.objects.get(goal_id=reef.id)
    assert (reef.effort, timezone.now() - reef.touched_at < timedelta(hours=1)) == (1, True)
    assert (link.memory_id, link.kind) == (heartbeat.memory_id, LinkKind.PROGRESS)
    prompt = run_replies()
    assert "1 heartbeat spent" in prompt
    assert "My goal “Sound the reef” went on: by remember, reflect." in prompt


def test_several_round_trips_for_one_goal_count_as_one_heartbeat(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    first = action_for(reef.id, "remember", content="Twelve fathoms at the north end.")
    again = action_for(reef.id, "remember", content="Nine at the south end.")
    run_replies(reply_of(actions=[first, action_of("observe")]), reply_of(actions=[again]))
    assert last_done(agent).round_trips == 2
    assert [change["kind"] for change in last_done(agent).goal_changes] == ["progressed"]
    with tenant_transaction(agent.tenant_id):
        assert Goal.objects.get(id=reef.id).effort == 1


def test_a_goal_update_replaces_the_progress_by_actions(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    remembering = action_for(reef.id, "remember", content="Twelve fathoms at the north end.")
    run_replies(
        reply_of(actions=[remembering], goal_updates=[{"goal_id": str(reef.id), "state": "completed"}])
    )
    with tenant_transaction(agent.tenant_id):
        assert Goal.objects.get(id=reef.id).effort == 1
    kinds = [(change["title"], change["kind"]) for change in last_done(agent).goal_changes]
    assert kinds == [("Sound the reef", "completed"), ("Chart the coast", "completed")]


def test_resting_moving_and_failing_add_no_effort_to_a_goal(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    coast, reef = goals
    locked: list[str] = []

    def record_locks(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "FROM goals_goal" in sql and "FOR UPDATE" in sql:
            locked.append(sql)
        return execute(sql, params, many, context)

    with connections[APP].execute_wrapper(record_locks):
        run_replies(
            reply_of(
                actions=[
                    action_for(reef.id, "rest"),
                    action_for(reef.id, "connect", from_id="x", to_id="y", relation="causes"),
                    action_of("remember", content="The tide turns at six."),
                ]
            )
        )
        assert locked == []
        allow_actions(agent, "reprioritize")
        run_replies(
            reply_of(actions=[action_for(reef.id, "reprioritize", goal_id=str(reef.id), state="queued")])
        )
        assert len(locked) == 1
    with tenant_transaction(agent.tenant_id):
        efforts = {goal.title: (goal.state, goal.effort) for goal in Goal.objects.filter(agent_id=agent.id)}
    assert efforts == {coast.title: ("active", 0), reef.title: ("queued", 0)}


def test_an_action_for_a_closed_goal_runs_and_the_goal_is_dropped(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    with tenant_transaction(agent.tenant_id):
        move_goal(goal_id=reef.id, to=GoalState.ABANDONED, reason="the reef is gone")
    actions = [action_for(goal, "remember", content=f"For {goal}.") for goal in (reef.id, "the-reef")]
    run_replies(reply_of(actions=actions))
    heartbeat = last_done(agent)
    assert [action["outcome"] for action in heartbeat.actions] == ["success", "success"]
    assert [(item["path"], item["reason"]) for item in heartbeat.dropped] == [
        ("actions[0].goal_id", f"there is no open goal {reef.id}"),
        ("actions[1].goal_id", "there is no open goal the-reef"),
    ]
    assert heartbeat.goal_changes == []


def test_work_for_a_goal_counts_though_its_step_is_closed(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    closed, remembering = str(uuid4()), action_of("remember", None, content="The reef is at twelve fathoms.")
    run_replies(reply_of(actions=[{**remembering, "intent_id": closed, "goal_id": str(goals[1].id)}]))
    heartbeat = last_done(agent)
    assert [item["path"] for item in heartbeat.dropped] == ["actions[0].intent_id"]
    assert [change["kind"] for change in heartbeat.goal_changes] == ["refused", "progressed"]
    with tenant_transaction(agent.tenant_id):
        assert Goal.objects.get(id=goals[1].id).effort == 1
        assert GoalMemoryLink.objects.filter(goal=goals[1]).exists()


def test_review_goals_shows_every_open_goal_to_a_further_round_trip(
    fleet: Fleet, agent: Agent, goals: tuple[Goal, Goal], scripted: Script
) -> None:
    titles = ("Name the islands", "Draw the currents", "Count the seals", "Mend the boat", "Learn the stars")
    with tenant_transaction(agent.tenant_id):
        for title in titles:
            create_goal(agent_id=agent.id, title=title, source=GoalSource.IDENTITY, expected_reward=0.9)
        sixth = create_goal(agent_id=agent.id, title="Find the wreck")
        backburner = GoalState.BACKBURNER
        some_day = create_goal(agent_id=agent.id, title="Sail around it", state=backburner)
        blocked = create_goal(agent_id=agent.id, title="Raise it", state=backburner, blocked_by="no diver")
    model = scripted(
        reply_of(actions=[action_of("review_goals")]),
        reply_of(
            actions=[action_of("reprioritize", goal_id=str(some_day.id), state="queued")],
            goal_updates=[{"goal_id": str(sixth.id), "state": "active"}],
        ),
    )
    allow_actions(agent, "review_goals", "reprioritize")
    fleet.claim(agent)
    fleet.run()

    first, second = (request.messages[-1].content for request in model.requests)
    assert "Queued besides these: 1." in first
    assert "On the backburner: 2." in first
    assert not any(str(goal.id) in first for goal in (sixth, some_day))
    for shown in (
        f"[{goals[1].id}] Sound the reef (active, 0% done, part of {goals[0].id})",
        f"[{sixth.id}] Find the wreck (queued, 0% done)",
        f"[{some_day.id}] Sail around it (backburner, 0% done)",
        f"[{blocked.id}] Raise it (backburner, 0% done, blocked)",
    ):
        assert shown in second
    with tenant_transaction(agent.tenant_id):
        states = dict(Goal.objects.values_list("id", "state"))
    assert (states[sixth.id], states[some_day.id]) == (GoalState.ACTIVE, GoalState.QUEUED)


def test_a_review_shows_the_goals_brainstormed_in_the_same_round_trip(
    fleet: Fleet, agent: Agent, goals: tuple[Goal, Goal], scripted: Script
) -> None:
    ideas = [{"title": "Name the islands"}, {"title": "Draw the currents", "state": "backburner"}]
    model = scripted(
        reply_of(actions=[action_of("brainstorm_goals", goals=ideas), action_of("review_goals")]), REST
    )
    allow_actions(agent, "review_goals", "brainstorm_goals")
    fleet.claim(agent)
    fleet.run()
    with tenant_transaction(agent.tenant_id):
        goal_ids: dict[str, UUID] = dict(
            Goal.objects.filter(heartbeat_id__isnull=False).values_list("title", "id")
        )
    prompt = model.requests[1].messages[-1].content
    assert f"[{goal_ids['Name the islands']}] Name the islands (queued" in prompt
    assert f"[{goal_ids['Draw the currents']}] Draw the currents (backburner" in prompt
