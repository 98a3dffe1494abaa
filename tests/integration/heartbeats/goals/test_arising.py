"""What brings an agent a new goal, and how many at once."""

from __future__ import annotations

from collections.abc import Callable

from apps.agents.models import Agent, AgentState
from apps.goals.models import Goal, GoalMemoryLink
from apps.heartbeats.models import Percept, PerceptKind
from apps.selves.models import PeerModel
from apps.tenants.scope import tenant_transaction
from arbor.goals.plans import LinkKind
from arbor.goals.values import GoalLayer, GoalSource
from tests.factories.agents import AgentFactory
from tests.integration.heartbeats.beater import reply_of
from tests.integration.heartbeats.conftest import REST, beats_of
from tests.integration.heartbeats.goals.conftest import action, last_done


def test_curiosity_brings_a_goal_once_and_the_prompt_of_the_same_beat_shows_it(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(stale_beats=40)
    assert "Explore something unfamiliar" in beat(REST)
    (change,) = last_done(agent).goal_changes
    assert change["change"] == "it is queued; it came by itself (curiosity)"
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(stale_beats=40)
    beat(REST)
    assert last_done(agent).goal_changes == []
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
    prompt = beat(reply_of(new_goals=[{"title": "A fourth goal"}]))
    with tenant_transaction(agent.tenant_id):
        rules = set(Goal.objects.filter(agent_id=agent.id).values_list("rule", flat=True)) - {""}
        assert not Goal.objects.filter(title="A fourth goal").exists()
    assert rules == {"opportunity", "role", "mentoring"}
    assert "See what to make of: A ship is wrecked." in prompt
    assert "Go where nobody has looked" in prompt
    reasons = [each["reason"] for each in last_done(agent).dropped]
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
    beat(reply_of(actions=[action("brainstorm_goals", goals=wanted), action("review_goals")]), reply_of())
    with tenant_transaction(agent.tenant_id):
        made = Goal.objects.filter(agent_id=agent.id, heartbeat_id=last_done(agent).id)
        assert dict(made.values_list("title", "state")) == {
            "Name the islands": "queued",
            "Draw the currents": "backburner",
        }
    brainstormed, reviewed = last_done(agent).actions
    assert brainstormed["outcome"] == "partial"
    assert "says the same as 'Sounding the reefs'" in brainstormed["summary"]
    assert reviewed["summary"] == "nothing wants attention"
    assert [change["kind"] for change in last_done(agent).goal_changes] == ["created", "created"]


def test_a_new_goal_comes_with_its_deadline_and_worth_and_both_weigh_in_the_next_prompt(
    beat: Callable[..., str], agent: Agent, goals: tuple[Goal, Goal]
) -> None:
    new = {"title": "Name the islands", "deadline": "2031-01-31T18:00:00Z", "expected_reward": 0.9}
    beat(reply_of(new_goals=[new]))
    with tenant_transaction(agent.tenant_id):
        made = Goal.objects.get(title="Name the islands")
    assert (made.expected_reward, made.deadline and made.deadline.year) == (0.9, 2031)
    # 1 urgency, 0.75 of 0.9 reward and of 0.5 capability, 0.25 of 1 novelty
    assert f"[{made.id}] Name the islands (queued, objective, from curiosity, priority 2.30" in beat(REST)
