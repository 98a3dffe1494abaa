"""Actions that execute planned steps: the named one, or a substitute where that is unavailable."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from apps.agents.models import Agent
from apps.goals.models import Goal, Intent, Plan, PlanStep
from apps.goals.services.goals import add_plan
from apps.tenants.scope import tenant_transaction
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanDraft, PlanStatus, StepDraft, StepStatus
from arbor.models.handles import REFLEX_HANDLE
from tests.factories.authority import allow, allowed_actions
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.goals.conftest import RunReplies, allow_actions, last_done
from tests.integration.heartbeats.heartbeat_runner import action_of, reply_of

#: Actions that the steps of these tests do not name, with their parameters.
OTHER_ACTIONS: dict[str, dict[str, Any]] = {
    "rest": {},
    "observe": {},
    "review_goals": {},
    "reflect": {"insight": "The report will be long."},
    "remember": {"content": "The report is due."},
}
REPORT = {"topic": "the reef", "content": "Twelve fathoms at the north end, nine at the south end."}


@pytest.mark.parametrize("name", list(OTHER_ACTIONS))
def test_an_action_that_a_step_does_not_name_leaves_it_pending(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal], name: str
) -> None:
    allow_actions(agent, "synthesize", name)
    step = _plan_step(run_replies, goals[1], "synthesize", "write the report")
    run_replies(reply_of(actions=[action_of(name, step.id, **OTHER_ACTIONS[name])]), reply_of())
    assert _progress(step) == (IntentStatus.PENDING, 0, 0, None)
    reason = f"the step is synthesize; {name} does not carry it out"
    (dropped,) = last_done(agent).dropped
    assert (dropped["path"], dropped["reason"]) == ("actions[0].intent_id", reason)
    (change,) = last_done(agent).goal_changes
    assert (change["title"], change["kind"], change["change"]) == ("Sound the reef", "refused", reason)
    with tenant_transaction(agent.tenant_id):
        assert Plan.objects.get(goal=goals[1]).status == PlanStatus.ACTIVE
        assert PlanStep.objects.get(plan__goal=goals[1]).status == StepStatus.COMMITTED
        assert Goal.objects.get(id=goals[1].id).effort == 1

    run_replies(reply_of(actions=[action_of("synthesize", step.id, **REPORT)]))
    assert _progress(step) == (IntentStatus.COMPLETED, 1, 1, None)
    with tenant_transaction(agent.tenant_id):
        assert Plan.objects.get(goal=goals[1]).status == PlanStatus.COMPLETED


def test_another_action_for_the_goal_is_effort_but_completes_no_step(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    allow_actions(agent, "synthesize")
    step = _plan_step(run_replies, goals[1], "synthesize", "write the report")
    thought = action_of("reflect", step.id, **OTHER_ACTIONS["reflect"])
    run_replies(reply_of(actions=[{**thought, "goal_id": str(goals[1].id)}]))
    assert _progress(step)[0] == IntentStatus.PENDING
    assert [change["kind"] for change in last_done(agent).goal_changes] == ["refused", "progressed"]
    with tenant_transaction(agent.tenant_id):
        assert Goal.objects.get(id=goals[1].id).effort == 2


def test_a_step_completes_though_another_action_names_it_too(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    allow_actions(agent, "synthesize")
    step = _plan_step(run_replies, goals[1], "synthesize", "write the report")
    run_replies(reply_of(actions=[action_of("rest", step.id), action_of("synthesize", step.id, **REPORT)]))
    assert _progress(step) == (IntentStatus.COMPLETED, 1, 1, None)


def test_a_step_named_by_another_action_completes_a_round_trip_later(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    allow_actions(agent, "synthesize", "observe")
    step = _plan_step(run_replies, goals[1], "synthesize", "write the report")
    report = reply_of(actions=[action_of("synthesize", step.id, **REPORT)])
    run_replies(reply_of(actions=[action_of("observe", step.id)]), report)
    assert last_done(agent).round_trips == 2
    assert _progress(step) == (IntentStatus.COMPLETED, 1, 1, None)


def test_an_unknown_action_leaves_the_step_pending(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    step = _plan_step(run_replies, goals[1], "recall", "what the pilots said")
    run_replies(reply_of(actions=[action_of("fly", step.id)]))
    assert _progress(step) == (IntentStatus.PENDING, 0, 0, None)


@pytest.mark.parametrize(
    ("name", "status"), [("reflect", "completed"), ("rest", "pending"), ("observe", "pending")]
)
def test_a_substitute_action_completes_a_step_unless_it_does_nothing(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal], name: str, status: str
) -> None:
    allow_actions(agent, "observe")
    step = _plan_step(run_replies, goals[1], "inquire_deep", "ask the pilots")
    with tenant_transaction(agent.tenant_id):
        allow(agent, *(action for action in allowed_actions(agent) if action != "inquire_deep"))
    run_replies(reply_of(actions=[action_of(name, step.id, **OTHER_ACTIONS[name])]), reply_of())
    assert _progress(step)[0] == status


def test_the_reflex_policy_completes_a_step_by_the_nearest_action(
    fleet: Fleet, agent: Agent, goals: tuple[Goal, Goal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "ARBOR_DEFAULT_MODEL", str(REFLEX_HANDLE))
    allow_actions(agent, "maintain")
    with tenant_transaction(agent.tenant_id):
        draft = PlanDraft(steps=[StepDraft(action="maintain", description="revise the report")])
        add_plan(agent_id=agent.id, goal_id=goals[1].id, draft=draft)
        step: Intent = Intent.objects.get(goal_id=goals[1].id)
    fleet.claim(agent)
    fleet.run()
    assert [(action["action"], action["intent_id"]) for action in last_done(agent).actions] == [
        ("reflect", str(step.id))
    ]
    assert _progress(step) == (IntentStatus.COMPLETED, 1, 1, None)


def _plan_step(run_replies: RunReplies, goal: Goal, name: str, description: str) -> Intent:
    intentions = [{"action": name, "description": description}]
    run_replies(reply_of(decompositions=[{"goal_id": str(goal.id), "intentions": intentions}]))
    with tenant_transaction(goal.tenant_id):
        return Intent.objects.get(goal_id=goal.id)


def _progress(step: Intent) -> tuple[str, int, int, object]:
    with tenant_transaction(step.tenant_id):
        step.refresh_from_db()
    return step.status, step.attempts, step.ticks_used, step.locked_by
