"""Goals planned, pursued and completed over several heartbeats."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from apps.agents.models import Agent, Percept, PerceptKind
from apps.goals.models import Goal, GoalMemoryLink, Intent, Plan, PlanStep, Satisfaction
from apps.goals.services.goals import create_goal, move_goal
from apps.memories.models import Edge
from apps.tenants.scope import tenant_transaction
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import LinkKind, PlanStatus, StepStatus
from arbor.goals.values import GoalSource, GoalState
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.needs import OpenBacklog
from arbor.heartbeat.results import ActionOutcome, ActionResult, action_result
from arbor.heartbeat.steps import actions
from arbor.heartbeat.steps.actions import ACTS, Act, Execution
from tests.factories.selves import BeliefFactory
from tests.integration.heartbeats.conftest import REST, heartbeats_of
from tests.integration.heartbeats.goals.conftest import RunReplies, last_done, plan_for
from tests.integration.heartbeats.heartbeat_runner import action_of, reply_of


def test_a_planned_goal_completes_in_five_heartbeats_with_its_parent(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    coast, reef = goals
    steps = [
        {"action": "remember", "description": "what the pilots said", "estimated_ticks": 2},
        {
            "action": "rest",
            "description": "let it settle",
            "precondition": "the pilots were heard",
            "postcondition": "the depth is known",
        },
    ]
    prompt = run_replies(
        reply_of(
            decompositions=[
                {
                    "goal_id": str(reef.id),
                    "intentions": steps,
                    "estimated_ticks": 4,
                    "estimated_cost": 2,
                    "risk": 0.3,
                    "dependencies": ["a calm day"],
                }
            ],
            goal_updates=[{"goal_id": str(reef.id), "met": ["A calm day"]}],
        )
    )
    assert f"[{reef.id}] Sound the reef (active, objective, from derived, priority" in prompt
    assert f"part of {coast.id}" in prompt

    with tenant_transaction(agent.tenant_id):
        plan = Plan.objects.get(goal_id=reef.id)
        first = Intent.objects.get(goal_id=reef.id)
    assert (plan.status, plan.estimated_ticks, plan.risk, plan.dependencies) == (
        PlanStatus.ACTIVE,
        4,
        0.3,
        ["a calm day"],
    )
    assert (first.status, first.tick_limit) == (IntentStatus.PENDING, 6)
    known = "The pilots take twelve fathoms."
    prompt = run_replies(
        reply_of(
            actions=[action_of("remember", content=known), action_of("remember", first.id, content=known)]
        )
    )
    assert "## Plan" in prompt
    assert "(estimated: heartbeats 4, energy 2, risk 0.3)" in prompt
    assert "met: a calm day" in prompt
    assert "1. committed: remember: what the pilots said" in prompt
    assert "2. waiting: rest: let it settle" in prompt
    assert "before: the pilots were heard" in prompt
    assert "after: the depth is known" in prompt
    assert f"[{first.id}] remember: what the pilots said" in prompt
    with tenant_transaction(agent.tenant_id):
        first.refresh_from_db()
    # The memory existed already: the step is partly done, may take longer, and continues.
    assert (first.status, first.attempts, first.ticks_used) == (IntentStatus.PENDING, 0, 1)

    prompt = run_replies(
        reply_of(actions=[action_of("remember", first.id, content="Nine fathoms at the bar.")])
    )
    assert "heartbeats spent: 1 of at most 6" in prompt
    with tenant_transaction(agent.tenant_id):
        first.refresh_from_db()
        second = Intent.objects.get(goal_id=reef.id, action="rest")
    assert (first.status, first.ticks_used, first.locked_by) == (IntentStatus.COMPLETED, 2, None)
    assert second.status == IntentStatus.PENDING

    prompt = run_replies(reply_of(actions=[action_of("rest", second.id)]))
    assert "1. completed: remember: what the pilots said" in prompt
    with tenant_transaction(agent.tenant_id):
        plan.refresh_from_db()
        assert list(PlanStep.objects.filter(plan=plan).values_list("status", flat=True)) == [
            StepStatus.COMPLETED,
            StepStatus.COMPLETED,
        ]
    assert (plan.status, plan.ended_at is not None) == (PlanStatus.COMPLETED, True)

    prompt = run_replies(
        reply_of(goal_updates=[{"goal_id": str(reef.id), "progress": 1, "note": "12 fathoms"}])
    )
    assert "every step of its plan is done. Complete it" in prompt
    heartbeat = last_done(agent)
    kinds = [(change["title"], change["kind"]) for change in heartbeat.goal_changes]
    assert kinds == [
        ("Sound the reef", "progressed"),
        ("Sound the reef", "completed"),
        ("Chart the coast", "completed"),
    ]
    with tenant_transaction(agent.tenant_id):
        states = set(Goal.objects.filter(agent_id=agent.id).values_list("state", flat=True))
        reef.refresh_from_db()
        satisfactions = {
            satisfaction.goal_id: satisfaction
            for satisfaction in Satisfaction.objects.filter(agent_id=agent.id)
        }
        links = set(GoalMemoryLink.objects.values_list("goal_id", "memory_id", "kind"))
    assert states == {GoalState.COMPLETED}
    assert reef.effort == 5
    assert (satisfactions[reef.id].outcome, satisfactions[reef.id].reward_actual) == ("success", 0.8)
    assert satisfactions[reef.id].effort == 5
    assert satisfactions[coast.id].reward_actual == 1.0
    assert (reef.id, heartbeat.memory_id, LinkKind.COMPLETION) in links
    assert (coast.id, heartbeat.memory_id, LinkKind.COMPLETION) in links
    assert (reef.id, heartbeats_of(agent)[0].memory_id, LinkKind.PROGRESS) in links

    prompt = run_replies(REST)
    assert "You have no goals." in prompt
    assert "My goal “Chart the coast” is done: all its parts are done." in prompt
    assert "brainstorm: You have no goals. Think of some worth wanting." in prompt


def test_a_plan_waits_for_what_it_depends_on(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    run_replies(plan_for(reef, "the soundings", dependencies=["a calm day"]))
    with tenant_transaction(agent.tenant_id):
        assert not Intent.objects.filter(goal_id=reef.id).exists()
    wrong = {"goal_id": str(reef.id), "met": ["a boat"]}
    prompt = run_replies(reply_of(goal_updates=[wrong]))
    assert "    waits for: a calm day\n    Its steps wait too." in prompt
    assert f"attend: [{reef.id}] Sound the reef: it is blocked by a calm day" in prompt
    (dropped,) = last_done(agent).dropped
    assert dropped["reason"] == "its plan does not wait for 'a boat'; it waits for a calm day"

    run_replies(reply_of(goal_updates=[{"goal_id": str(reef.id), "met": ["A calm day"]}]))
    assert "its plan no longer waits for A calm day" in str(last_done(agent).goal_changes)
    prompt = run_replies(REST)
    assert "met: a calm day" in prompt
    assert "] recall: the soundings (for goal" in prompt


def test_steps_of_a_plan_that_waits_are_not_executed(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    run_replies(plan_for(reef, "the soundings"))
    with tenant_transaction(agent.tenant_id):
        intent = Intent.objects.get(goal_id=reef.id)
    run_replies(plan_for(reef, "the buoys", dependencies=["a boat"]))
    prompt = run_replies(reply_of(actions=[action_of("recall", intent.id, query="soundings")]))
    assert "the soundings (for goal" not in prompt
    assert "the step waits until its plan has what it needs: a boat" in str(last_done(agent).dropped)
    with tenant_transaction(agent.tenant_id):
        intent.refresh_from_db()
    assert (intent.status, intent.attempts, intent.ticks_used) == (IntentStatus.PENDING, 0, 0)


def test_dependencies_that_a_plan_has_no_room_for_are_listed(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    run_replies(plan_for(reef, "one", dependencies=[f"boat {n}" for n in range(10)]))
    run_replies(plan_for(reef, "two", dependencies=["boat 3", "a rope", "a lamp"]))
    (dropped,) = last_done(agent).dropped
    assert (dropped["path"], dropped["value"]) == ("decompositions[0].dependencies", "a rope; a lamp")
    with tenant_transaction(agent.tenant_id):
        assert Plan.objects.get(goal_id=reef.id).dependencies == [f"boat {n}" for n in range(10)]


def test_a_step_that_fails_for_good_ends_its_plan_and_is_shown_once(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    steps = [
        {"action": "connect", "description": "tie them", "estimated_ticks": 0},
        {"action": "rest", "description": "wait"},
    ]
    run_replies(reply_of(decompositions=[{"goal_id": str(reef.id), "intentions": steps}]))
    with tenant_transaction(agent.tenant_id):
        intent = Intent.objects.get(goal_id=reef.id, action="connect")
    failing = action_of("connect", intent.id, from_id=str(UUID(int=7)), to_id=str(reef.id), relation="causes")
    for _ in range(3):
        run_replies(reply_of(actions=[failing]))
    with tenant_transaction(agent.tenant_id):
        plan = Plan.objects.get(goal_id=reef.id)
        percept = Percept.objects.get(agent_id=agent.id, kind=PerceptKind.ACTION_RESULT)
        assert set(Intent.objects.filter(goal_id=reef.id).values_list("status", flat=True)) == {
            IntentStatus.ABANDONED
        }
    assert plan.status == PlanStatus.ABANDONED
    assert plan.reason.startswith("step 1 failed for good: ")
    assert percept.detail == {"goal": str(reef.id), "intent": str(intent.id)}
    prompt = run_replies(REST)
    report = "You gave up the step 'tie them' (connect) towards 'Sound the reef'"
    assert report in prompt
    assert "its plan was given up (step 1 failed for good" in prompt
    assert "all its 2 steps have ended, and none was done" in prompt
    assert f"action_result: {report}" not in run_replies(REST)


def test_running_locks_an_intent_and_lost_locks_end_in_a_minute(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, reef = goals
    run_replies(plan_for(reef, "what the pilots said"))
    observed: list[tuple[str, bool]] = []

    def observe_lock(execution: Execution, decision: Decision) -> Act:
        backlog = yield OpenBacklog()
        intent = backlog.intent(str(decision.intent_id))
        observed.append((intent.status, intent.locked_by == execution.heartbeat.heartbeat_id))
        return action_result(decision, ActionOutcome.SUCCESS, "rested")

    monkeypatch.setattr(actions, "ACTS", {**ACTS, "recall": observe_lock})
    with tenant_transaction(agent.tenant_id):
        Intent.objects.filter(goal_id=reef.id).update(
            status=IntentStatus.LOCKED, locked_by=UUID(int=9), locked_at=timezone.now()
        )
        intent = Intent.objects.get(goal_id=reef.id)
    assert f"[{intent.id}]" not in run_replies(REST)
    with tenant_transaction(agent.tenant_id):
        Intent.objects.update(locked_at=timezone.now() - timedelta(seconds=61))
    prompt = run_replies(reply_of(actions=[action_of("recall", intent.id, query="pilots")]))
    assert f"[{intent.id}]" in prompt
    assert observed == [(IntentStatus.LOCKED, True)]
    with tenant_transaction(agent.tenant_id):
        intent.refresh_from_db()
    assert (intent.status, intent.ticks_used) == (IntentStatus.COMPLETED, 1)


def test_a_blocked_goal_is_flagged_until_its_blocker_closes(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    with tenant_transaction(agent.tenant_id):
        boat = create_goal(agent_id=agent.id, title="Caulk the boat", source=GoalSource.USER_REQUEST)
    run_replies(reply_of(goal_updates=[{"goal_id": str(reef.id), "blocked_by": str(boat.id)}]))
    prompt = run_replies(reply_of(goal_updates=[{"goal_id": str(boat.id), "state": "completed"}]))
    assert "Sound the reef: it is blocked by Caulk the boat." in prompt
    assert "waits for: Caulk the boat" in prompt
    assert "blocked by" not in run_replies(REST)
    with tenant_transaction(agent.tenant_id):
        kinds = set(GoalMemoryLink.objects.filter(goal_id=reef.id).values_list("kind", flat=True))
    assert LinkKind.BLOCKER in kinds


def test_an_agent_lifts_a_blocker_given_in_words(run_replies: RunReplies, goals: tuple[Goal, Goal]) -> None:
    _, reef = goals
    run_replies(reply_of(goal_updates=[{"goal_id": str(reef.id), "blocked_by": "the storm"}]))
    assert "blocked by the storm" in run_replies(
        reply_of(goal_updates=[{"goal_id": str(reef.id), "blocked_by": "Nothing."}])
    )
    prompt = run_replies(REST)
    assert "blocked by" not in prompt
    assert "waits for: the storm" not in prompt


def test_a_goal_contradicted_by_a_belief_is_flagged(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    with tenant_transaction(agent.tenant_id):
        belief = BeliefFactory(agent=agent, statement="The reef is gone.")
        Edge.objects.create(
            tenant_id=agent.tenant_id,
            agent=agent,
            source_kind="belief",
            source_id=belief.id,
            target_kind="goal",
            target_id=goals[1].id,
            relation="contradicts",
        )
    assert "it goes against what you hold: The reef is gone." in run_replies(REST)


def test_a_goal_closed_by_a_person_is_reported_once(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    run_replies(plan_for(reef, "what the pilots said", "what the charts say"))
    with tenant_transaction(agent.tenant_id):
        move_goal(goal_id=reef.id, to=GoalState.ABANDONED, reason="the reef is gone")
    report = "Your goal 'Sound the reef' was abandoned by a person: the reef is gone."
    assert report + " 2 open steps towards it were dropped." in run_replies(REST)
    assert f"action_result: {report}" not in run_replies(REST)


def test_a_heartbeat_without_goal_work_adds_no_effort(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    run_replies(REST)
    with tenant_transaction(agent.tenant_id):
        assert not GoalMemoryLink.objects.exists()
        assert Goal.objects.get(id=goals[1].id).effort == 0


def test_an_intent_tried_and_then_blocked_keeps_its_attempt(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal], monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = _run_round_trips(
        run_replies, agent, goals, monkeypatch, ActionOutcome.FAILURE, ActionOutcome.BLOCKED
    )
    assert (intent.status, intent.attempts, intent.ticks_used) == (IntentStatus.PENDING, 1, 1)


def test_an_intent_blocked_and_then_tried_uses_one_tick(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal], monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = _run_round_trips(
        run_replies, agent, goals, monkeypatch, ActionOutcome.BLOCKED, ActionOutcome.FAILURE
    )
    assert (intent.status, intent.attempts, intent.ticks_used) == (IntentStatus.PENDING, 1, 1)
    # A heartbeat in which the intent is only blocked adds neither.
    intent = _run_round_trips(
        run_replies, agent, goals, monkeypatch, ActionOutcome.BLOCKED, ActionOutcome.BLOCKED
    )
    assert (intent.status, intent.attempts, intent.ticks_used) == (IntentStatus.PENDING, 1, 1)


def test_an_unknown_action_between_two_tries_uses_no_further_tick(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = ActionOutcome.FAILURE
    intent = _run_round_trips(
        run_replies, agent, goals, monkeypatch, failed, failed, names=("recall", "fly", "recall")
    )
    assert (intent.status, intent.attempts, intent.ticks_used) == (IntentStatus.PENDING, 2, 1)


def _run_round_trips(
    run_replies: RunReplies,
    agent: Agent,
    goals: tuple[Goal, Goal],
    monkeypatch: pytest.MonkeyPatch,
    *outcomes: ActionOutcome,
    names: Sequence[str] = ("recall", "recall"),
) -> Intent:
    """Plan a step, and run one heartbeat with an action for its intent in each round trip; return the intent.

    The recalls for the intent have the given outcomes, in order.
    """
    next_outcomes = iter(outcomes)

    def recall(_: Execution, decision: Decision) -> ActionResult:
        result = action_result(decision, ActionOutcome.SUCCESS, "rested")
        outcome = next(next_outcomes) if decision.intent_id else result.outcome
        return result.model_copy(
            update={"outcome": outcome, "brought": "" if decision.intent_id else "a map"}
        )

    run_replies(plan_for(goals[1], "what the pilots said"))
    monkeypatch.setattr(actions, "ACTS", {**ACTS, "recall": recall})
    with tenant_transaction(agent.tenant_id):
        intent: Intent = Intent.objects.get(goal_id=goals[1].id)
    named = [action_of(name, intent.id, query="pilots") for name in names]
    # The results of the other recall lead to a further round trip.
    recalls = [action_of("recall", query=f"maps {turn}") for turn in range(1, len(names))]
    run_replies(
        *(reply_of(actions=[*pair]) for pair in zip(named, recalls, strict=False)),
        reply_of(actions=named[-1:]),
    )
    assert last_done(agent).round_trips == len(names)
    with tenant_transaction(agent.tenant_id):
        intent.refresh_from_db()
    return intent
