"""Rules that create goals, and their limits."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from apps.agents.models import Agent, AgentState, Percept, PerceptKind
from apps.goals.models import Goal, GoalMemoryLink, Satisfaction
from apps.goals.services.goals import create_goal, move_goal
from apps.heartbeats.models import Heartbeat
from apps.selves.models import PeerModel
from apps.tenants.scope import tenant_transaction
from arbor.goals.goal_rules import EXHAUSTED_HEARTBEATS
from arbor.goals.plans import LinkKind
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from tests.factories.agents import AgentFactory
from tests.factories.authority import allow_also
from tests.factories.heartbeats import HeartbeatFactory
from tests.integration.heartbeats.conftest import REST, heartbeats_of
from tests.integration.heartbeats.goals.conftest import RunReplies, last_done
from tests.integration.heartbeats.heartbeat_runner import action_of, reply_of

#: Title, state and priority of the goals that a prompt lists.
LISTED = re.compile(r"\[[0-9a-f-]{36}\] (.+) \((\w+), \w+, from \w+, priority ([\d.]+)")


def priorities_in(prompt: str) -> dict[str, str]:
    """Return the priorities of the goals that a prompt lists, by title."""
    return {title: priority for title, _, priority in LISTED.findall(prompt)}


def test_curiosity_creates_one_goal_shown_in_the_same_prompt(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(stale_beats=40)
    assert "Explore something unfamiliar" in run_replies(REST)
    (change,) = last_done(agent).goal_changes
    assert change["change"] == "it is queued; it came by itself (curiosity)"
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(stale_beats=40)
    run_replies(REST)
    assert last_done(agent).goal_changes == []
    with tenant_transaction(agent.tenant_id):
        goal = Goal.objects.get(rule="curiosity")
        assert GoalMemoryLink.objects.filter(goal_id=goal.id, kind=LinkKind.ORIGIN).count() == 1
    assert (goal.layer, goal.source, goal.heartbeat_id) == (
        GoalLayer.OBJECTIVE,
        GoalSource.CURIOSITY,
        heartbeats_of(agent)[0].id,
    )


def test_goal_rules_create_three_goals_at_most_in_a_heartbeat(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    with tenant_transaction(agent.tenant_id):
        traits = dict.fromkeys(
            ("risk_tolerance", "collaboration", "depth_vs_breadth", "quality_vs_speed"), 0.5
        )
        Agent.objects.filter(id=agent.id).update(genome={"role": "EXPLORER", "traits": traits})
        Percept.objects.create(
            tenant_id=agent.tenant_id, agent=agent, kind=PerceptKind.ENVIRONMENT, content="A ship is wrecked."
        )
        other = AgentFactory()
        PeerModel.objects.create(
            tenant_id=agent.tenant_id, agent=other, peer=agent, name=agent.name, interactions=9, successes=8
        )
        AgentState.objects.filter(agent_id=agent.id).update(stale_beats=99)
    prompt = run_replies(reply_of(new_goals=[{"title": "A fourth goal"}]))
    with tenant_transaction(agent.tenant_id):
        rules = set(Goal.objects.filter(agent_id=agent.id).values_list("rule", flat=True)) - {""}
        assert not Goal.objects.filter(title="A fourth goal").exists()
    assert rules == {"opportunity", "role", "mentoring"}
    assert "See what to make of: A ship is wrecked." in prompt
    assert "Go where nobody has looked" in prompt
    reasons = [item["reason"] for item in last_done(agent).dropped]
    assert reasons == ["one heartbeat creates at most 3 new goals"]


@pytest.mark.parametrize(("hours", "returns"), [(1, []), (25, ["curiosity"])])
def test_a_goal_by_rule_does_not_return_once_a_person_ended_it(
    run_replies: RunReplies,
    agent: Agent,
    goals: tuple[Goal, Goal],
    superuser: psycopg.Connection[Any],
    hours: int,
    returns: list[str],
) -> None:
    traits = dict.fromkeys(("risk_tolerance", "collaboration", "depth_vs_breadth", "quality_vs_speed"), 0.5)
    for _ in range(2):
        with tenant_transaction(agent.tenant_id):
            Agent.objects.filter(id=agent.id).update(genome={"role": "EXPLORER", "traits": traits})
            AgentState.objects.filter(agent_id=agent.id).update(stale_beats=99)
        run_replies(REST)
        with tenant_transaction(agent.tenant_id):
            by_rule = Goal.objects.filter(agent_id=agent.id).exclude(rule="")
            found = sorted(
                by_rule.filter(state__in=["active", "queued", "backburner"]).values_list("rule", flat=True)
            )
            for goal_id in by_rule.filter(state__in=["active", "queued", "backburner"]).values_list(
                "id", flat=True
            ):
                move_goal(goal_id=goal_id, to=GoalState.ABANDONED, reason="not now")
        superuser.execute("UPDATE goals_satisfaction SET at = at - make_interval(hours => %s)", [hours])
    assert found == returns


def test_a_goal_by_rule_has_its_priority_and_place_at_once(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    _exhaust(agent)
    prompt = run_replies(REST)
    listed = [goal for goal in LISTED.findall(prompt) if goal[1] == "active"]
    # 1 urgency, 0.75 of 1 reward and of 0.5 capability, 0.25 of 0.2 novelty
    assert ("Live within your means", "active", "2.17") in listed
    assert [title for title, *_ in listed] == [
        "Chart the coast",
        "Live within your means",
        "Sound the reef",
    ]
    # The next heartbeat gives it the same priority.
    assert [goal for goal in LISTED.findall(run_replies(REST)) if goal[1] == "active"] == listed


def test_traits_and_experience_weigh_in_a_goal_by_rule(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    traits = {"risk_tolerance": 0.5, "collaboration": 0.5, "depth_vs_breadth": 0.5, "quality_vs_speed": 1.0}
    with tenant_transaction(agent.tenant_id):
        create_goal(agent_id=agent.id, title="Be somebody", layer=GoalLayer.ASPIRATION)
        Agent.objects.filter(id=agent.id).update(genome={"role": "EXPLORER", "traits": traits})
        saved = create_goal(agent_id=agent.id, title="Save strength", source=GoalSource.SURVIVAL)
        move_goal(goal_id=saved.id, to=GoalState.ABANDONED, reason="no need")
    _exhaust(agent)
    first = priorities_in(run_replies(REST))["Live within your means"]
    # 1 urgency, 0.5 of 0.75 reward (three quarters of the expected reward), 0.75 of 0.5 capability, 0.25 of 0.2 novelty
    assert first == "1.80"
    assert priorities_in(run_replies(REST))["Live within your means"] == first


@pytest.mark.parametrize(("days", "created"), [(1, 1), (6, 1), (8, 2)])
def test_the_survival_goal_comes_once_in_a_week(
    run_replies: RunReplies,
    agent: Agent,
    goals: tuple[Goal, Goal],
    superuser: psycopg.Connection[Any],
    days: int,
    created: int,
) -> None:
    for _ in range(2):
        _exhaust(agent)
        run_replies(REST)
        with tenant_transaction(agent.tenant_id):
            Heartbeat.objects.filter(agent_id=agent.id).update(energy_end=9)
        run_replies(REST)
        superuser.execute("UPDATE goals_goal SET created_at = created_at - make_interval(days => %s)", [days])
    with tenant_transaction(agent.tenant_id):
        survival = Goal.objects.filter(agent_id=agent.id, rule="survival")
        assert survival.count() == created
        assert not survival.filter(state__in=["active", "queued", "backburner"]).exists()


def test_a_goal_closed_by_rule_leaves_no_satisfaction(
    run_replies: RunReplies,
    agent: Agent,
    goals: tuple[Goal, Goal],
    superuser: psycopg.Connection[Any],
) -> None:
    with tenant_transaction(agent.tenant_id):
        for title in ("Buoy the channel", "Light the point"):
            create_goal(agent_id=agent.id, title=title, source=GoalSource.USER_REQUEST)
    listings = []
    for _ in range(3):
        _exhaust(agent)
        listings.append(
            {title: (state, priority) for title, state, priority in LISTED.findall(run_replies(REST))}
        )
        with tenant_transaction(agent.tenant_id):
            Heartbeat.objects.filter(agent_id=agent.id).update(energy_end=9)
        run_replies(REST)
        assert "there is enough again" in str(last_done(agent).goal_changes)
        superuser.execute("UPDATE goals_goal SET created_at = created_at - interval '8 days'")
    assert [listing["Live within your means"] for listing in listings] == [("queued", "2.17")] * 3
    with tenant_transaction(agent.tenant_id):
        assert not Satisfaction.objects.exists()
        closed = Goal.objects.filter(rule="survival").values_list("state", "abandonment_reason")
        assert [*closed] == [("abandoned", "there is enough again")] * 3


def _exhaust(agent: Agent) -> None:
    """Replace the agent's heartbeats by three that ended without energy."""
    with tenant_transaction(agent.tenant_id):
        Heartbeat.objects.filter(agent_id=agent.id).delete()
        for _ in range(EXHAUSTED_HEARTBEATS):
            HeartbeatFactory.create(agent=agent, status="done", energy_end=0)


def test_a_brainstorm_adds_new_goals_and_reports_a_duplicate(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    with tenant_transaction(agent.tenant_id):
        allow_also(agent, "brainstorm_goals", "review_goals")
    ideas = [
        {"title": "Sounding the reefs", "rationale": "again"},
        {"title": "Name the islands", "description": "each has one", "rationale": "maps need names"},
        {"title": "Draw the currents", "state": "backburner"},
    ]
    run_replies(
        reply_of(actions=[action_of("brainstorm_goals", goals=ideas), action_of("review_goals")]), reply_of()
    )
    with tenant_transaction(agent.tenant_id):
        added = Goal.objects.filter(agent_id=agent.id, heartbeat_id=last_done(agent).id)
        assert dict(added.values_list("title", "state")) == {
            "Name the islands": "queued",
            "Draw the currents": "backburner",
        }
    brainstormed, reviewed = last_done(agent).actions
    assert brainstormed["outcome"] == "partial"
    assert "says the same as 'Sounding the reefs'" in brainstormed["summary"]
    assert reviewed["summary"] == "reviewed the goals and found no issue"
    assert [change["kind"] for change in last_done(agent).goal_changes] == ["created", "created"]


def test_a_new_goals_deadline_and_reward_weigh_in_the_next_prompt(
    run_replies: RunReplies, agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    new = {"title": "Name the islands", "deadline": "2031-01-31T18:00:00Z", "expected_reward": 0.9}
    run_replies(reply_of(new_goals=[new]))
    with tenant_transaction(agent.tenant_id):
        goal = Goal.objects.get(title="Name the islands")
    assert (goal.expected_reward, goal.deadline and goal.deadline.year) == (0.9, 2031)
    # 1 urgency, 0.75 of 0.9 reward and of 0.5 capability, 0.25 of 1 novelty
    assert f"[{goal.id}] Name the islands (queued, objective, from curiosity, priority 2.30" in run_replies(
        REST
    )
