"""Goals at work: planned, pursued and reached over several beats, and what each beat left for the next."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from apps.agents.models import Agent, AgentState
from apps.goals.models import Goal, GoalMemoryLink, Intent, Plan, PlanStep, Satisfaction
from apps.goals.services.goals import create_goal, move_goal
from apps.heartbeats import acts
from apps.heartbeats.acts.desk import rest
from apps.heartbeats.models import Heartbeat, Percept, PerceptKind
from apps.heartbeats.services.schedule import tick_now
from apps.memories.models import Edge
from apps.selves.models import PeerModel
from apps.tenants.scope import tenant_transaction
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import LinkKind, PlanStatus, StepStatus
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.results import ActionOutcome, ActionResult
from arbor.models.ports import ModelRequest, ScriptedModel
from tests.factories.agents import AgentFactory
from tests.factories.selves import BeliefFactory
from tests.integration.heartbeats.conftest import REST, beats_of
from tests.integration.heartbeats.fleet import Fleet


def reply(**keys: Any) -> str:
    return json.dumps({"thinking": "", "actions": [], "memory_notes": [], "goal_updates": [], **keys})


def action(name: str, intent_id: UUID | None = None, **params: Any) -> dict[str, Any]:
    return {"action": name, "params": params, "intent_id": str(intent_id) if intent_id else None}


@pytest.fixture
def beat(fleet: Fleet, agent: Agent, scripted: Callable[..., ScriptedModel]) -> Callable[..., str]:
    """Return what runs one beat with these replies, and returns the prompt of its first question."""

    def run(*replies: str) -> str:
        model = scripted(*(replies or (REST,)))
        with tenant_transaction(agent.tenant_id):
            tick_now(agent_id=agent.id)
        fleet.run()
        request: ModelRequest = model.requests[0]
        return "\n".join([request.system, *(message.content for message in request.messages)])

    return run


@pytest.fixture
def goals(agent: Agent) -> tuple[Goal, Goal]:
    """Return the agent's only goals: an active one, and its only part, active too."""
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
        coast = create_goal(agent_id=agent.id, title="Chart the coast", source=GoalSource.USER_REQUEST)
        reef = create_goal(
            agent_id=agent.id,
            title="Sound the reef",
            source=GoalSource.DERIVED,
            parent_id=coast.id,
            expected_reward=0.8,
        )
    return coast, reef


def last(agent: Agent) -> Heartbeat:
    found = beats_of(agent)[-1]
    assert found.status == "done", found.reason
    return found


def plan_for(goal: Goal, *steps: str, **of: Any) -> str:
    intentions = [{"action": "recall", "description": step} for step in steps]
    return reply(decompositions=[{"goal_id": str(goal.id), "intentions": intentions, **of}])


def test_over_five_beats_a_goal_is_planned_pursued_and_reached_and_its_parent_with_it(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    coast, reef = goals
    steps = [
        {"action": "recall", "description": "what the pilots said", "estimated_ticks": 2},
        {
            "action": "rest",
            "description": "let it settle",
            "precondition": "the pilots were heard",
            "postcondition": "the depth is known",
        },
    ]
    prompt = beat(
        reply(
            decompositions=[
                {
                    "goal_id": str(reef.id),
                    "intentions": steps,
                    "estimated_ticks": 4,
                    "estimated_cost": 2,
                    "risk": 0.3,
                    "dependencies": ["a calm day"],
                }
            ]
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
    prompt = beat(
        reply(actions=[action("remember", content=known), action("remember", first.id, content=known)])
    )
    assert "## Plan" in prompt
    assert "(estimated: heartbeats 4, energy 2, risk 0.3)" in prompt
    assert "needs: a calm day" in prompt
    assert "1. committed: recall: what the pilots said" in prompt
    assert "2. waiting: rest: let it settle" in prompt
    assert "before: the pilots were heard" in prompt
    assert "after: the depth is known" in prompt
    assert f"[{first.id}] recall: what the pilots said" in prompt
    with tenant_transaction(agent.tenant_id):
        first.refresh_from_db()
    # That was known already: a part of a step that may take longer, so it goes on.
    assert (first.status, first.attempts, first.ticks_used) == (IntentStatus.PENDING, 1, 1)

    prompt = beat(reply(actions=[action("recall", first.id, query="the deep")]))
    assert "heartbeats spent: 1 of at most 6" in prompt
    with tenant_transaction(agent.tenant_id):
        first.refresh_from_db()
        second = Intent.objects.get(goal_id=reef.id, action="rest")
    assert (first.status, first.ticks_used, first.locked_by) == (IntentStatus.COMPLETED, 2, None)
    assert second.status == IntentStatus.PENDING

    prompt = beat(reply(actions=[action("rest", second.id)]))
    assert "1. completed: recall: what the pilots said" in prompt
    with tenant_transaction(agent.tenant_id):
        plan.refresh_from_db()
        assert list(PlanStep.objects.filter(plan=plan).values_list("status", flat=True)) == [
            StepStatus.COMPLETED,
            StepStatus.COMPLETED,
        ]
    assert (plan.status, plan.ended_at is not None) == (PlanStatus.COMPLETED, True)

    prompt = beat(reply(goal_updates=[{"goal_id": str(reef.id), "progress": 1, "note": "12 fathoms"}]))
    assert "every step of its plan is done. Complete it" in prompt
    done = last(agent)
    kinds = [(change["title"], change["kind"]) for change in done.goal_changes]
    assert kinds == [
        ("Sound the reef", "progressed"),
        ("Sound the reef", "completed"),
        ("Chart the coast", "completed"),
    ]
    with tenant_transaction(agent.tenant_id):
        states = set(Goal.objects.filter(agent_id=agent.id).values_list("state", flat=True))
        reef.refresh_from_db()
        signals = {each.goal_id: each for each in Satisfaction.objects.filter(agent_id=agent.id)}
        links = set(GoalMemoryLink.objects.values_list("goal_id", "memory_id", "kind"))
    assert states == {GoalState.COMPLETED}
    assert reef.effort == 5
    assert (signals[reef.id].outcome, signals[reef.id].reward_actual) == ("success", 0.8)
    assert signals[reef.id].effort == 5
    assert signals[coast.id].reward_actual == 1.0
    assert (reef.id, done.memory_id, LinkKind.COMPLETION) in links
    assert (coast.id, done.memory_id, LinkKind.COMPLETION) in links
    assert (reef.id, beats_of(agent)[0].memory_id, LinkKind.PROGRESS) in links

    prompt = beat(REST)
    assert "You have no goals." in prompt
    assert "My goal “Chart the coast” is done: all its parts are done." in prompt
    assert "brainstorm: You have no goals. Think of some worth wanting." in prompt


def test_dependencies_that_a_plan_has_no_room_for_are_listed(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    beat(plan_for(reef, "one", dependencies=[f"boat {n}" for n in range(10)]))
    beat(plan_for(reef, "two", dependencies=["boat 3", "a rope", "a lamp"]))
    (dropped,) = last(agent).dropped
    assert (dropped["path"], dropped["value"]) == ("decompositions.dependencies", "a rope; a lamp")
    with tenant_transaction(agent.tenant_id):
        assert Plan.objects.get(goal_id=reef.id).dependencies == [f"boat {n}" for n in range(10)]


def test_a_step_that_fails_for_good_ends_its_plan_and_is_told_at_the_next_beat_and_only_there(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    steps = [
        {"action": "connect", "description": "tie them", "estimated_ticks": 0},
        {"action": "rest", "description": "wait"},
    ]
    beat(reply(decompositions=[{"goal_id": str(reef.id), "intentions": steps}]))
    with tenant_transaction(agent.tenant_id):
        intent = Intent.objects.get(goal_id=reef.id, action="connect")
    failing = action("connect", intent.id, from_id=str(UUID(int=7)), to_id=str(reef.id), relation="causes")
    for _ in range(3):
        beat(reply(actions=[failing]))
    with tenant_transaction(agent.tenant_id):
        plan = Plan.objects.get(goal_id=reef.id)
        percept = Percept.objects.get(agent_id=agent.id, kind=PerceptKind.ACTION_RESULT)
        assert set(Intent.objects.filter(goal_id=reef.id).values_list("status", flat=True)) == {
            IntentStatus.ABANDONED
        }
    assert plan.status == PlanStatus.ABANDONED
    assert plan.reason.startswith("step 1 failed for good: ")
    assert percept.detail == {"goal": str(reef.id), "intent": str(intent.id)}
    prompt = beat(REST)
    told = "You gave up the step 'tie them' (connect) towards 'Sound the reef'"
    assert told in prompt
    assert "its plan was given up (step 1 failed for good" in prompt
    assert "all its 2 steps have ended, and none was done" in prompt
    assert f"action_result: {told}" not in beat(REST)


def test_an_intent_is_locked_while_its_action_runs_and_a_lock_of_a_lost_beat_is_let_go_after_a_minute(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, reef = goals
    beat(plan_for(reef, "what the pilots said"))
    seen: list[tuple[str, bool]] = []

    def look(desk: Any, decision: Any) -> Any:
        intent = Intent.objects.get(goal_id=reef.id)
        seen.append((intent.status, intent.locked_by == desk.heartbeat_id))
        return rest(desk, decision)

    monkeypatch.setattr("apps.heartbeats.handlers.act.ACTS", {**acts.ACTS, "recall": look})
    with tenant_transaction(agent.tenant_id):
        Intent.objects.filter(goal_id=reef.id).update(
            status=IntentStatus.LOCKED, locked_by=UUID(int=9), locked_at=timezone.now()
        )
        intent = Intent.objects.get(goal_id=reef.id)
    assert f"[{intent.id}]" not in beat(REST)
    with tenant_transaction(agent.tenant_id):
        Intent.objects.update(locked_at=timezone.now() - timedelta(seconds=61))
    prompt = beat(reply(actions=[action("recall", intent.id, query="pilots")]))
    assert f"[{intent.id}]" in prompt
    assert seen == [(IntentStatus.LOCKED, True)]
    with tenant_transaction(agent.tenant_id):
        intent.refresh_from_db()
    assert (intent.status, intent.ticks_used) == (IntentStatus.COMPLETED, 1)


def test_what_blocks_a_goal_is_flagged_until_the_blocking_goal_closes(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    with tenant_transaction(agent.tenant_id):
        boat = create_goal(agent_id=agent.id, title="Caulk the boat", source=GoalSource.USER_REQUEST)
    beat(reply(goal_updates=[{"goal_id": str(reef.id), "blocked_by": str(boat.id)}]))
    prompt = beat(reply(goal_updates=[{"goal_id": str(boat.id), "state": "completed"}]))
    assert "Sound the reef: it is blocked by Caulk the boat." in prompt
    assert "waits for: Caulk the boat" in prompt
    assert "blocked by" not in beat(REST)
    with tenant_transaction(agent.tenant_id):
        kinds = set(GoalMemoryLink.objects.filter(goal_id=reef.id).values_list("kind", flat=True))
    assert LinkKind.BLOCKER in kinds


def test_a_goal_that_goes_against_a_belief_is_suggested_to_be_given_up(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
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
    assert "it goes against what you hold: The reef is gone." in beat(REST)


def test_curiosity_brings_a_goal_once_and_the_prompt_of_the_same_beat_shows_it(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(stale_beats=40)
    assert "Explore something unfamiliar" in beat(REST)
    (change,) = last(agent).goal_changes
    assert change["change"] == "it is queued; it came by itself (curiosity)"
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(stale_beats=40)
    beat(REST)
    assert last(agent).goal_changes == []
    with tenant_transaction(agent.tenant_id):
        made = Goal.objects.get(rule="curiosity")
        assert GoalMemoryLink.objects.filter(goal_id=made.id, kind=LinkKind.ORIGIN).count() == 1
    assert (made.layer, made.source, made.heartbeat_id) == (
        GoalLayer.OBJECTIVE,
        GoalSource.CURIOSITY,
        beats_of(agent)[0].id,
    )


def test_role_opportunity_standing_and_exhaustion_bring_goals_but_three_at_most_in_a_beat(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    with tenant_transaction(agent.tenant_id):
        leanings = dict.fromkeys(
            ("risk_tolerance", "collaboration", "depth_vs_breadth", "quality_vs_speed"), 0.5
        )
        Agent.objects.filter(id=agent.id).update(genome={"role": "EXPLORER", "traits": leanings})
        Percept.objects.create(
            tenant_id=agent.tenant_id, agent=agent, kind=PerceptKind.ENVIRONMENT, content="A ship is wrecked."
        )
        other = AgentFactory()
        PeerModel.objects.create(
            tenant_id=agent.tenant_id, agent=other, peer=agent, name=agent.name, interactions=9, successes=8
        )
        AgentState.objects.filter(agent_id=agent.id).update(stale_beats=99)
    prompt = beat(reply(new_goals=[{"title": "A fourth goal"}]))
    with tenant_transaction(agent.tenant_id):
        rules = set(Goal.objects.filter(agent_id=agent.id).values_list("rule", flat=True)) - {""}
        assert not Goal.objects.filter(title="A fourth goal").exists()
    assert rules == {"opportunity", "role", "mentoring"}
    assert "See what to make of: A ship is wrecked." in prompt
    assert "Go where nobody has looked" in prompt
    reasons = [each["reason"] for each in last(agent).dropped]
    assert reasons == ["one heartbeat takes up at most 3 new goals"]


def test_a_brainstorm_takes_up_what_there_is_room_for_and_says_what_not(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    with tenant_transaction(agent.tenant_id):
        allowed = [*agent.allowed_actions, "brainstorm_goals", "review_goals"]
        Agent.objects.filter(id=agent.id).update(allowed_actions=allowed)
    wanted = [
        {"title": "Sounding the reefs", "rationale": "again"},
        {"title": "Name the islands", "description": "each has one", "rationale": "maps need names"},
        {"title": "Draw the currents", "state": "backburner"},
    ]
    beat(reply(actions=[action("brainstorm_goals", goals=wanted), action("review_goals")]))
    with tenant_transaction(agent.tenant_id):
        made = Goal.objects.filter(agent_id=agent.id, heartbeat_id=last(agent).id)
        assert dict(made.values_list("title", "state")) == {
            "Name the islands": "queued",
            "Draw the currents": "backburner",
        }
    brainstormed, reviewed = last(agent).actions
    assert brainstormed["outcome"] == "partial"
    assert "says the same as 'Sounding the reefs'" in brainstormed["summary"]
    assert reviewed["summary"] == "nothing wants attention"
    assert [change["kind"] for change in last(agent).goal_changes] == ["created", "created"]


def test_what_a_person_closes_the_agent_hears_of_once(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _, reef = goals
    beat(plan_for(reef, "what the pilots said", "what the charts say"))
    with tenant_transaction(agent.tenant_id):
        move_goal(goal_id=reef.id, to=GoalState.ABANDONED, reason="the reef is gone")
    told = "Your goal 'Sound the reef' was abandoned by a person: the reef is gone."
    assert told + " 2 open steps towards it were dropped." in beat(REST)
    assert f"action_result: {told}" not in beat(REST)


def test_a_beat_that_touches_no_goal_runs_no_statement_for_goals(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    beat(REST)
    with tenant_transaction(agent.tenant_id):
        assert not GoalMemoryLink.objects.exists()
        assert Goal.objects.get(id=goals[1].id).effort == 0


def test_a_new_goal_comes_with_its_deadline_and_worth_and_both_weigh_in_the_next_prompt(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    new = {"title": "Name the islands", "deadline": "2031-01-31T18:00:00Z", "expected_reward": 0.9}
    beat(reply(new_goals=[new]))
    with tenant_transaction(agent.tenant_id):
        made = Goal.objects.get(title="Name the islands")
    assert (made.expected_reward, made.deadline and made.deadline.year) == (0.9, 2031)
    # 1 urgency, 0.75 of 0.9 reward and of 0.5 capability, 0.25 of 1 novelty
    assert f"[{made.id}] Name the islands (queued, objective, from curiosity, priority 2.30" in beat(REST)


def test_an_intent_that_was_tried_and_then_put_off_in_one_beat_keeps_what_its_try_took(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal], monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = _two_turns(beat, agent, goals, monkeypatch, ActionOutcome.FAILURE, ActionOutcome.BLOCKED)
    assert (intent.status, intent.attempts, intent.ticks_used) == (IntentStatus.PENDING, 1, 1)


def test_an_intent_that_was_put_off_and_then_tried_in_one_beat_takes_the_heartbeat_once(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal], monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = _two_turns(beat, agent, goals, monkeypatch, ActionOutcome.BLOCKED, ActionOutcome.FAILURE)
    assert (intent.status, intent.attempts, intent.ticks_used) == (IntentStatus.PENDING, 1, 1)
    intent = _two_turns(beat, agent, goals, monkeypatch, ActionOutcome.BLOCKED, ActionOutcome.BLOCKED)
    assert (intent.status, intent.attempts, intent.ticks_used) == (IntentStatus.PENDING, 1, 1)


def _two_turns(
    beat: Callable[..., str],
    agent: Agent,
    goals: tuple[Goal, Goal],
    monkeypatch: pytest.MonkeyPatch,
    *outcomes: ActionOutcome,
) -> Intent:
    """Take an intent in hand twice in one beat, with these outcomes."""
    coming = iter(outcomes)

    def look(desk: Any, decision: Decision) -> ActionResult:
        done = rest(desk, decision)
        outcome = next(coming) if decision.intent_id else done.outcome
        return done.model_copy(update={"outcome": outcome, "brought": "" if decision.intent_id else "a map"})

    beat(plan_for(goals[1], "what the pilots said"))
    monkeypatch.setattr("apps.heartbeats.handlers.act.ACTS", {**acts.ACTS, "recall": look})
    with tenant_transaction(agent.tenant_id):
        intent: Intent = Intent.objects.get(goal_id=goals[1].id)
    tried = action("recall", intent.id, query="pilots")
    beat(reply(actions=[tried, action("recall", query="maps")]), reply(actions=[tried]))
    assert last(agent).turns == 2
    with tenant_transaction(agent.tenant_id):
        intent.refresh_from_db()
    return intent
