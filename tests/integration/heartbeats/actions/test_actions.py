"""Each action through a real heartbeat: offered, priced, permitted, refused when invalid, and its effects."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent, AgentState
from apps.contacts.models import Channel, OutboxMessage
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.memories.models import Edge, Memory
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalState
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.prompts.sections.moment import SHOWN_PERCEPTS
from tests.factories.agents import AgentPolicyFactory
from tests.factories.authority import allow
from tests.factories.heartbeats import PerceptFactory
from tests.integration.heartbeats.actions.conftest import RunReplies, store_medium_fact
from tests.integration.heartbeats.conftest import first_action, heartbeats_of, last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import action_of, reply_of

#: Actions with invalid parameters, and a part of the reason for which each is refused.
INVALID_ACTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("recall", {}, "query: Field required"),
    ("remember", {"content": "x", "type": "dream"}, "type:"),
    ("connect", {"from_id": "a"}, "to_id: Field required"),
    ("maintain", {"target": "goal", "id": "x"}, "target: Input should be 'memory'"),
    ("maintain", {"target": "memory", "id": "x", "verdict": "keep"}, "a verdict needs a reason"),
    (
        "maintain",
        {"target": "memory", "id": "x", "verdict": "revise", "reason": "r"},
        "give content or importance",
    ),
    ("maintain", {"target": "belief", "id": "x", "verdict": "revise", "reason": "r"}, "give confidence"),
    (
        "maintain",
        {"target": "belief", "id": "x", "verdict": "retire", "reason": "r"},
        "only a memory can be retired",
    ),
    ("maintain", {"target": "memory", "id": "x", "importance": "nan"}, "importance:"),
    ("reflect", {"insight": "x", "rests_on": ["a"] * 21}, "rests_on: Tuple should have at most 20 items"),
    ("synthesize", {"topic": "t"}, "content: Field required"),
    ("synthesize", {"topic": "t", "content": "x", "kind": "poem"}, "kind: Input should be 'conclusion'"),
    ("brainstorm_goals", {"goals": [{"title": "one"}]}, "goals: Tuple should have at least 2 items"),
    ("brainstorm_goals", {"goals": [{"title": "a", "state": "active"}, {"title": "b"}]}, "goals.0.state:"),
    ("reprioritize", {"goal_id": "g", "state": "completed"}, "state:"),
    ("inquire_shallow", {"question": " "}, "question: String should have at least 1 character"),
    (
        "inquire_shallow",
        {"question": "q", "queries": ["a", "b", "c"]},
        "queries: Tuple should have at most 2",
    ),
    ("inquire_deep", {"question": "x" * 501}, "question: String should have at most 500"),
    ("reach_out_user", {"content": "Hello"}, "intent: Field required"),
    ("reach_out_public", {"intent": "i", "content": "x" * 4_001}, "content: String should have at most 4000"),
]


def test_every_action_is_offered_and_invalid_parameters_cost_nothing(
    run_replies: RunReplies, agent: Agent, unused_web: None
) -> None:
    prompt = (
        run_replies(reply_of(*(action_of(name, **params) for name, params, _ in INVALID_ACTIONS[:10])))
        .requests[0]
        .system
    )
    first = last_heartbeat(agent)
    run_replies(reply_of(*(action_of(name, **params) for name, params, _ in INVALID_ACTIONS[10:])))
    second = last_heartbeat(agent)

    for name, spec in ACTIONS.items():
        # There is no other agent to write to, no workflow is granted, and no step of one waits.
        absent = name in {"reach_out_agent", "start_workflow", "complete_step"}
        assert (f"- {name} ({spec.cost}): " in prompt) is not absent
    for (name, _, message), action in zip(INVALID_ACTIONS, [*first.actions, *second.actions], strict=True):
        assert (action["action"], action["verdict"], action["outcome"], action["cost"]) == (
            name,
            "invalid",
            "blocked",
            0,
        )
        assert message in action["reason"], action["reason"]
    assert (first.energy_end, second.energy_end) == (20, 20)


def test_a_disallowed_action_is_neither_offered_nor_charged(run_replies: RunReplies, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        allow(agent, "rest")
    names = [name for name in ACTIONS if name != "rest"]
    prompt = run_replies(reply_of(*map(action_of, names[:10]))).requests[0].system

    assert "- recall (1): " not in prompt
    assert {action["verdict"] for action in last_heartbeat(agent).actions} == {"not_authorized"}
    assert last_heartbeat(agent).energy_end == last_heartbeat(agent).energy_start


def test_observe_shows_the_budget_without_cost(run_replies: RunReplies, agent: Agent) -> None:
    model = run_replies(reply_of(action_of("observe")))

    assert (first_action(agent)["outcome"], first_action(agent)["cost"]) == ("success", 0)
    assert first_action(agent)["summary"] == "looked around and saw no pending percept"
    assert "20 of 20 energy" in first_action(agent)["brought"]
    # Its results are read in the same heartbeat.
    assert "20 of 20 energy" in model.requests[1].messages[-1].content


def test_observe_lists_first_what_the_next_heartbeat_takes_in(run_replies: RunReplies, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        for number in range(SHOWN_PERCEPTS):
            PerceptFactory(agent=agent, content=f"Has gull {number} come back?")
        for number in range(SHOWN_PERCEPTS):
            PerceptFactory(agent=agent, kind="event", content=f"Gull {number} is back.")
        PerceptFactory(agent=agent, kind="event", content="The dike leaks.", urgent=True)
    run_replies(reply_of(action_of("observe")))

    assert "The dike leaks." in first_action(agent)["brought"]
    assert first_action(agent)["summary"] == "looked around and saw 5 pending percepts"


def test_review_goals_succeeds_without_goals(run_replies: RunReplies, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
    run_replies(reply_of(action_of("review_goals")))

    assert (first_action(agent)["outcome"], first_action(agent)["cost"]) == ("success", 0)
    assert first_action(agent)["summary"].startswith("reviewed the goals and found 1 issue: brainstorm")


def test_reflect_relates_an_insight_to_its_source(run_replies: RunReplies, agent: Agent) -> None:
    ground = store_medium_fact(agent, "The north end is eleven fathoms deep.")
    run_replies(reply_of(action_of("reflect", insight="It is deeper than it looks.", rests_on=[ground])))

    insight_id = first_action(agent)["memory_ids"][0]
    with tenant_transaction(agent.tenant_id):
        edge = Edge.objects.get(source_id=insight_id, relation="derived_from")
    assert str(edge.target_id) == ground


@pytest.mark.parametrize(
    ("kind", "stored"), [("conclusion", "semantic"), ("text", "semantic"), ("creative", "episodic")]
)
def test_synthesize_stores_a_text_related_to_its_materials(
    run_replies: RunReplies, agent: Agent, kind: str, stored: str
) -> None:
    materials = [store_medium_fact(agent, "The reef is deep."), store_medium_fact(agent, "The chart is old.")]
    run_replies(
        reply_of(
            action_of(
                "synthesize",
                topic="reef",
                content="The chart understates the reef.",
                materials=materials,
                kind=kind,
            )
        )
    )

    action = first_action(agent)
    assert (action["outcome"], action["cost"]) == ("success", 4)
    with tenant_transaction(agent.tenant_id):
        synthesis = Memory.objects.get(id=action["memory_ids"][0])
        edges = Edge.objects.filter(source_id=synthesis.id, relation="derived_from")
        assert {str(edge.target_id) for edge in edges} == set(materials)
    assert (synthesis.type, synthesis.detail["artifact"], synthesis.embedding is not None) == (
        stored,
        kind,
        True,
    )


def test_a_synthesis_of_missing_memories_fails_and_stores_none(run_replies: RunReplies, agent: Agent) -> None:
    unknown = str(UUID(int=7))
    run_replies(
        reply_of(action_of("synthesize", topic="reef", content="A reef of dreams.", materials=[unknown]))
    )

    assert (first_action(agent)["outcome"], first_action(agent)["cost"]) == ("failure", 4)
    assert f"there is no memory {unknown}" in first_action(agent)["summary"]
    with tenant_transaction(agent.tenant_id):
        assert not Memory.objects.filter(content="A reef of dreams.").exists()


def test_brainstorming_adds_goals_and_the_guard_refuses_the_fourth(
    run_replies: RunReplies, agent: Agent
) -> None:
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
    ideas = [
        {"title": f"Idea {number}", "description": "d", "rationale": "r", "state": state}
        for number, state in enumerate(["queued", "backburner", "queued", "queued"])
    ]
    run_replies(reply_of(action_of("brainstorm_goals", goals=ideas)))

    assert (first_action(agent)["outcome"], first_action(agent)["cost"]) == ("partial", 3)
    with tenant_transaction(agent.tenant_id):
        states = dict(Goal.objects.filter(agent_id=agent.id).values_list("title", "state"))
    assert states == {"Idea 0": "queued", "Idea 1": "backburner", "Idea 2": "queued"}


def test_reprioritize_moves_a_goal_for_one_energy(run_replies: RunReplies, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        goal = create_goal(agent_id=agent.id, title="Chart the reef", state=GoalState.BACKBURNER)
    run_replies(reply_of(action_of("reprioritize", goal_id=str(goal.id), state="queued")))

    assert (first_action(agent)["outcome"], first_action(agent)["cost"]) == ("success", 1)
    with tenant_transaction(agent.tenant_id):
        assert Goal.objects.get(id=goal.id).state == "queued"


@pytest.mark.parametrize(("name", "cost"), [("reach_out_user", 5), ("reach_out_public", 7)])
def test_reaching_out_puts_a_message_into_the_outbox(
    run_replies: RunReplies, agent: Agent, name: str, cost: int
) -> None:
    run_replies(reply_of(action_of(name, intent="they asked for it", content="The reef is charted.")))

    assert (first_action(agent)["outcome"], first_action(agent)["cost"]) == ("success", cost), first_action(
        agent
    )["summary"]
    with tenant_transaction(agent.tenant_id):
        assert OutboxMessage.objects.get(agent_id=agent.id).content == "The reef is charted."


def test_without_a_public_channel_nobody_publishes(run_replies: RunReplies, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        Channel.objects.all().delete()
    model = run_replies(reply_of(action_of("reach_out_public", intent="i", content="c")))

    assert "reach_out_public" not in model.requests[0].system
    assert (first_action(agent)["verdict"], first_action(agent)["cost"]) == ("unavailable", 0)
    assert "no public channel" in first_action(agent)["reason"]


def test_energy_is_spent_as_the_example_turns_say(run_replies: RunReplies, agent: Agent) -> None:
    """Run the example of seed 004, 2.5: cheap turns save energy, and an expensive one spends it."""
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(energy=0)
    memory_id = store_medium_fact(agent, "The reef is deep.")
    keep = action_of("maintain", target="memory", id=memory_id, verdict="keep", reason="it is")
    run_replies(reply_of(action_of("reflect", insight="One."), keep, action_of("rest")))
    saving = last_heartbeat(agent)
    run_replies(
        reply_of(
            action_of("synthesize", topic="t", content="A work."),
            action_of("reach_out_user", intent="i", content="Done."),
            action_of("reflect", insight="Two."),
            action_of("synthesize", topic="t", content="Too much."),
            action_of("brainstorm_goals", goals=[{"title": "A"}, {"title": "B"}]),
        )
    )
    expensive = last_heartbeat(agent)

    assert (saving.energy_start, saving.energy_end) == (10, 6)
    assert (expensive.energy_start, expensive.energy_end) == (16, 1)
    assert [action["verdict"] for action in expensive.actions] == [
        "run",
        "run",
        "run",
        "run",
        "too_little_energy",
    ]


def test_an_action_budget_gives_four_and_two_rests_earn_one_more(
    run_replies: RunReplies, agent: Agent
) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentPolicyFactory(agent=agent, budget="actions")
    five = [action_of("remember", content=f"Thing {number}.") for number in range(5)]
    run_replies(reply_of(*five))
    first = last_heartbeat(agent)
    run_replies(reply_of(action_of("rest"), action_of("rest"), action_of("observe")))
    prompt = run_replies(reply_of(*five)).requests[0].messages[0].content
    third = last_heartbeat(agent)

    assert [action["verdict"] for action in first.actions] == ["run"] * 4 + ["too_little_energy"]
    assert "## Energy\n5 of at most 5 actions." in prompt
    assert [action["verdict"] for action in third.actions] == ["run"] * 5
    with tenant_transaction(agent.tenant_id):
        state = AgentState.objects.get(agent_id=agent.id)
    assert (state.bonus_actions, state.energy) == (0, 10)


def test_a_tick_budget_lasts_a_cycle_of_heartbeats(run_replies: RunReplies, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentPolicyFactory(agent=agent, budget="ticks", allowance=3)
    two = [action_of("remember", content="One."), action_of("remember", content="Two.")]
    left = []
    for _ in range(3):
        run_replies(reply_of(*two))
        with tenant_transaction(agent.tenant_id):
            left.append(AgentState.objects.get(agent_id=agent.id).ticks_left)

    # The second heartbeat has one tick; the third has none and begins a new cycle.
    assert left == [1, 0, 1]
    assert [action["verdict"] for action in heartbeats_of(agent)[1].actions] == ["run", "too_little_energy"]
