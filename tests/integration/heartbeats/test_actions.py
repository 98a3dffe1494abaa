"""Every action, through a real beat: offered, priced, permitted, refused when it is wrong, and with its effect."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from apps import web
from apps.agents.models import Agent, AgentPolicy, AgentState
from apps.audit.models import AuditAction, AuditEvent
from apps.contacts.models import Channel, OutboxMessage
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.schedule import tick_now
from apps.memories.models import Cluster, ClusterMember, Edge, Memory, MemoryAccess
from apps.memories.services.remember import remember
from apps.selves.models import Belief, SelfChange
from apps.selves.services.beliefs import hold_belief
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.clock import SystemClock
from arbor.contacts.values import Audience, ChannelKind
from arbor.goals.values import GoalState
from arbor.heartbeat.actions import ACTIONS
from arbor.memory.values import MemoryType, NewMemory
from arbor.models.ports import ScriptedModel
from arbor.selves.values import BeliefCategory, NewBelief
from tests.integration.heartbeats.conftest import beats_of
from tests.integration.heartbeats.fleet import Fleet

type Script = Callable[..., ScriptedModel]
type Beat = Callable[..., ScriptedModel]


def reply(*actions: dict[str, Any]) -> str:
    """Return a reply with these actions."""
    return json.dumps({"thinking": "", "actions": list(actions), "memory_notes": [], "goal_updates": []})


def act(name: str, **params: Any) -> dict[str, Any]:
    """Return an action as a model writes it."""
    return {"action": name, "params": params, "reasoning": "because"}


@pytest.fixture
def agent(agent: Agent) -> Agent:
    """Return an agent that may do everything, and publish."""
    with tenant_transaction(agent.tenant_id):
        Agent.objects.filter(id=agent.id).update(allowed_actions=list(ACTIONS))
        AgentState.objects.filter(agent_id=agent.id).update(energy=10)
        Channel.objects.create(
            tenant_id=agent.tenant_id, name="board", kind=ChannelKind.INBOX, audience=Audience.PUBLIC
        )
    return agent


@pytest.fixture
def beat(fleet: Fleet, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch) -> Beat:
    """Return a way to run one beat with an action; what it brings is read, and nothing more is done."""

    def run(*replies: str) -> ScriptedModel:
        model = scripted(*replies, reply(), reply())
        with tenant_transaction(agent.tenant_id):
            tick_now(agent_id=agent.id)
        fleet.run()
        return model

    return run


def _last(agent: Agent) -> Heartbeat:
    return beats_of(agent)[-1]


def _done(agent: Agent) -> dict[str, Any]:
    last = _last(agent)
    assert last.status == HeartbeatStatus.DONE, last.reason
    done: dict[str, Any] = last.actions[0]
    return done


def _memory(agent: Agent, text: str, kind: MemoryType = MemoryType.SEMANTIC) -> str:
    memory = NewMemory(content=text, occurred_at=SystemClock().now(), type=kind, importance=0.5)
    return str(remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=[memory]).ids[0])


def _theme(agent: Agent, memory_id: str) -> str:
    with tenant_transaction(agent.tenant_id):
        theme = Cluster.objects.create(
            tenant_id=agent.tenant_id, agent_id=agent.id, name="reef, depth", stale=False
        )
        ClusterMember.objects.create(
            tenant_id=agent.tenant_id, cluster_id=theme.id, memory_id=memory_id, strength=0.9
        )
    return str(theme.id)


WRONG: list[tuple[str, dict[str, Any], str]] = [
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


@pytest.fixture
def the_web(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the web be set up; nothing here asks it."""
    monkeypatch.setattr(web.settings, "ARBOR_SEARCH_URL", "http://search.invalid")
    monkeypatch.setattr(web.settings, "ARBOR_WEB_ALLOW", ["*"])


def test_every_action_is_offered_with_its_price_and_wrong_parameters_are_refused_for_nothing(
    beat: Beat, agent: Agent, the_web: None
) -> None:
    prompt = beat(reply(*(act(name, **params) for name, params, _ in WRONG[:10]))).requests[0].system
    first = _last(agent)
    beat(reply(*(act(name, **params) for name, params, _ in WRONG[10:])))
    second = _last(agent)

    for name, spec in ACTIONS.items():
        assert f"- {name} ({spec.cost}): " in prompt
    for (name, _, said), done in zip(WRONG, [*first.actions, *second.actions], strict=True):
        assert (done["action"], done["verdict"], done["outcome"], done["cost"]) == (
            name,
            "invalid",
            "blocked",
            0,
        )
        assert said in done["reason"], done["reason"]
    assert (first.energy_end, second.energy_end) == (20, 20)


def test_what_the_template_does_not_allow_is_not_offered_and_refused_for_nothing(
    beat: Beat, agent: Agent
) -> None:
    with tenant_transaction(agent.tenant_id):
        Agent.objects.filter(id=agent.id).update(allowed_actions=["rest"])
    names = [name for name in ACTIONS if name != "rest"]
    prompt = beat(reply(*map(act, names[:10]))).requests[0].system

    assert "- recall (1): " not in prompt
    assert {each["verdict"] for each in _last(agent).actions} == {"not_permitted"}
    assert _last(agent).energy_end == _last(agent).energy_start


def test_observe_tells_the_time_and_costs_nothing(beat: Beat, agent: Agent) -> None:
    model = beat(reply(act("observe")))

    assert (_done(agent)["outcome"], _done(agent)["cost"]) == ("success", 0)
    assert "20 of 20 energy" in _done(agent)["brought"]
    # What it brought is read in the same beat.
    assert "20 of 20 energy" in model.requests[1].messages[-1].content


def test_review_goals_says_what_wants_attention(beat: Beat, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
    beat(reply(act("review_goals")))

    assert (_done(agent)["outcome"], _done(agent)["cost"]) == ("success", 0)
    assert "attention" in _done(agent)["summary"]


def test_reflect_ties_an_insight_to_what_it_rests_on(beat: Beat, agent: Agent) -> None:
    ground = _memory(agent, "The north end is eleven fathoms deep.")
    beat(reply(act("reflect", insight="It is deeper than it looks.", rests_on=[ground])))

    made = _done(agent)["memory_ids"][0]
    with tenant_transaction(agent.tenant_id):
        edge = Edge.objects.get(source_id=made, relation="derived_from")
    assert str(edge.target_id) == ground


@pytest.mark.parametrize(
    ("kind", "stored"), [("conclusion", "semantic"), ("text", "semantic"), ("creative", "episodic")]
)
def test_synthesize_keeps_what_was_made_tied_to_its_materials(
    beat: Beat, agent: Agent, kind: str, stored: str
) -> None:
    materials = [_memory(agent, "The reef is deep."), _memory(agent, "The chart is old.")]
    beat(
        reply(
            act(
                "synthesize",
                topic="reef",
                content="The chart understates the reef.",
                materials=materials,
                kind=kind,
            )
        )
    )

    done = _done(agent)
    assert (done["outcome"], done["cost"]) == ("success", 4)
    with tenant_transaction(agent.tenant_id):
        made = Memory.objects.get(id=done["memory_ids"][0])
        edges = Edge.objects.filter(source_id=made.id, relation="derived_from")
        assert {str(edge.target_id) for edge in edges} == set(materials)
    assert (made.type, made.detail["artifact"], made.embedding is not None) == (stored, kind, True)


def test_a_synthesis_of_what_is_not_there_fails_and_keeps_nothing(beat: Beat, agent: Agent) -> None:
    unknown = str(UUID(int=7))
    beat(reply(act("synthesize", topic="reef", content="A reef of dreams.", materials=[unknown])))

    assert (_done(agent)["outcome"], _done(agent)["cost"]) == ("failure", 4)
    assert f"there is no memory {unknown}" in _done(agent)["summary"]
    with tenant_transaction(agent.tenant_id):
        assert not Memory.objects.filter(content="A reef of dreams.").exists()


def test_brainstorming_adds_goals_and_the_guard_refuses_the_fourth(beat: Beat, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
    ideas = [
        {"title": f"Idea {number}", "description": "d", "rationale": "r", "state": state}
        for number, state in enumerate(["queued", "backburner", "queued", "queued"])
    ]
    beat(reply(act("brainstorm_goals", goals=ideas)))

    assert (_done(agent)["outcome"], _done(agent)["cost"]) == ("partial", 3)
    with tenant_transaction(agent.tenant_id):
        states = dict(Goal.objects.filter(agent_id=agent.id).values_list("title", "state"))
    assert states == {"Idea 0": "queued", "Idea 1": "backburner", "Idea 2": "queued"}


def test_reprioritize_moves_a_goal_for_one_energy(beat: Beat, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        goal = create_goal(agent_id=agent.id, title="Chart the reef", state=GoalState.BACKBURNER)
    beat(reply(act("reprioritize", goal_id=str(goal.id), state="queued")))

    assert (_done(agent)["outcome"], _done(agent)["cost"]) == ("success", 1)
    with tenant_transaction(agent.tenant_id):
        assert Goal.objects.get(id=goal.id).state == "queued"


@pytest.mark.parametrize(("name", "cost"), [("reach_out_user", 5), ("reach_out_public", 7)])
def test_reaching_out_puts_a_message_into_the_outbox(beat: Beat, agent: Agent, name: str, cost: int) -> None:
    beat(reply(act(name, intent="they asked for it", content="The reef is charted.")))

    assert (_done(agent)["outcome"], _done(agent)["cost"]) == ("success", cost), _done(agent)["summary"]
    with tenant_transaction(agent.tenant_id):
        assert OutboxMessage.objects.get(agent_id=agent.id).content == "The reef is charted."


def test_without_a_public_channel_nobody_publishes(beat: Beat, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        Channel.objects.all().delete()
    model = beat(reply(act("reach_out_public", intent="i", content="c")))

    assert "reach_out_public" not in model.requests[0].system
    assert (_done(agent)["verdict"], _done(agent)["cost"]) == ("unavailable", 0)
    assert "no public channel" in _done(agent)["reason"]


class TestMaintain:
    """Memories, beliefs and themes, judged anew."""

    def test_without_a_verdict_the_memory_is_shown_and_nothing_changes(
        self, beat: Beat, agent: Agent
    ) -> None:
        memory_id = _memory(agent, "The reef is ten fathoms deep.")
        model = beat(reply(act("maintain", target="memory", id=memory_id)))

        assert (_done(agent)["outcome"], _done(agent)["cost"]) == ("success", 2)
        assert "The reef is ten fathoms deep." in model.requests[1].messages[-1].content
        with tenant_transaction(agent.tenant_id):
            assert Memory.objects.get(id=memory_id).status == "active"

    def test_a_revision_keeps_the_former_text_and_says_what_became_of_it(
        self, beat: Beat, agent: Agent
    ) -> None:
        memory_id = _memory(agent, "The reef is ten fathoms deep.")
        judged = {
            "verdict": "revise",
            "content": "The reef is eleven fathoms deep.",
            "reason": "sounded again",
        }
        beat(reply(act("maintain", target="memory", id=memory_id, **judged)))

        with tenant_transaction(agent.tenant_id):
            former = Memory.objects.get(id=memory_id)
            now = Memory.objects.get(id=_done(agent)["memory_ids"][0])
            edge = Edge.objects.get(source_id=memory_id, relation="evolved_into")
            event = AuditEvent.objects.get(action=AuditAction.MEMORIES_REVISED)
        assert (former.status, former.content) == ("archived", "The reef is ten fathoms deep.")
        assert (now.status, now.content) == ("active", "The reef is eleven fathoms deep.")
        assert edge.target_id == now.id
        assert event.detail["changes"]["content"] == {"from": former.content, "to": now.content}

    @pytest.mark.parametrize(
        ("judged", "expected"),
        [
            ({"verdict": "revise", "importance": 0.9}, {"importance": 0.9, "status": "active"}),
            ({"verdict": "retire"}, {"importance": 0.5, "status": "archived"}),
            ({"verdict": "doubt"}, {"trust": 0.5, "status": "active"}),
            ({"verdict": "keep"}, {"trust": 1.0, "status": "active"}),
        ],
    )
    def test_a_memory_is_weighed_retired_doubted_or_kept(
        self, beat: Beat, agent: Agent, judged: dict[str, Any], expected: dict[str, Any]
    ) -> None:
        memory_id = _memory(agent, "The reef is ten fathoms deep.")
        beat(reply(act("maintain", target="memory", id=memory_id, reason="so it is", **judged)))

        assert _done(agent)["outcome"] == "success", _done(agent)["summary"]
        with tenant_transaction(agent.tenant_id):
            memory = Memory.objects.get(id=memory_id)
            reinforced = MemoryAccess.objects.filter(memory_id=memory_id, reinforced__gt=0).exists()
        assert {name: getattr(memory, name) for name in expected} == expected
        assert reinforced is (judged["verdict"] == "keep")

    def test_a_belief_is_revised_within_limits_and_on_record(self, beat: Beat, agent: Agent) -> None:
        with tenant_transaction(agent.tenant_id):
            belief = hold_belief(
                agent_id=agent.id,
                belief=NewBelief(
                    category=BeliefCategory.WORLD, statement="Tides are regular.", confidence=0.7
                ),
                actor="test",
            )
        params = {"target": "belief", "id": str(belief.id), "verdict": "revise", "reason": "seen otherwise"}
        beat(reply(act("maintain", **params, confidence=0.65), act("maintain", **params, confidence=0.01)))

        done, refused = _last(agent).actions
        assert (done["outcome"], refused["outcome"]) == ("success", "failure")
        with tenant_transaction(agent.tenant_id):
            assert Belief.objects.get(id=belief.id).confidence == 0.65
            assert (
                SelfChange.objects.filter(agent_id=agent.id).latest("at").decided_by
                == f"heartbeat:{_last(agent).id}"
            )

    def test_a_theme_is_shown_named_and_put_in_order(self, beat: Beat, agent: Agent) -> None:
        theme = _theme(agent, _memory(agent, "The reef is ten fathoms deep."))
        named = {"verdict": "revise", "content": "The reef", "reason": "clearer"}
        beat(
            reply(
                act("maintain", target="cluster", id="Reef, depth"),
                act("maintain", target="cluster", id=theme, **named),
                act("maintain", target="cluster", id="the reef", verdict="doubt", reason="it is a muddle"),
            )
        )

        assert [each["outcome"] for each in _last(agent).actions[:3]] == ["success"] * 3
        assert "The reef is ten fathoms deep." in _last(agent).actions[0]["brought"]
        with tenant_transaction(agent.tenant_id):
            cluster = Cluster.objects.get(id=theme)
        assert (cluster.name, cluster.stale) == ("The reef", True)

    @pytest.mark.parametrize("target", ["memory", "belief", "cluster"])
    @pytest.mark.parametrize("verdict", [None, "keep", "doubt"])
    def test_what_is_another_agents_is_not_there(
        self,
        beat: Beat,
        agent: Agent,
        tenant: Tenant,
        new_agent: Callable[..., Agent],
        target: str,
        verdict: str | None,
    ) -> None:
        other = new_agent(tenant, name="Grace")
        theirs = _memory(other, "Grace keeps this to herself.")
        named = _theme(other, theirs) if target == "cluster" else theirs
        if target == "belief":
            with tenant_transaction(agent.tenant_id):
                held = NewBelief(category=BeliefCategory.WORLD, statement="Mine alone.")
                named = str(hold_belief(agent_id=other.id, belief=held, actor="test").id)
        beat(reply(act("maintain", target=target, id=named, verdict=verdict, reason="why")))

        assert _done(agent)["outcome"] == "failure"
        assert "there is no" in _done(agent)["summary"]


def test_energy_is_spent_as_the_example_turns_say(beat: Beat, agent: Agent) -> None:
    """Seed 004, 2.5: a saving turn banks what it does not spend, and an expensive one draws on it."""
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(energy=0)
    memory_id = _memory(agent, "The reef is deep.")
    keep = act("maintain", target="memory", id=memory_id, verdict="keep", reason="it is")
    beat(reply(act("reflect", insight="One."), keep, act("rest")))
    saving = _last(agent)
    beat(
        reply(
            act("synthesize", topic="t", content="A work."),
            act("reach_out_user", intent="i", content="Done."),
            act("reflect", insight="Two."),
            act("synthesize", topic="t", content="Too much."),
            act("brainstorm_goals", goals=[{"title": "A"}, {"title": "B"}]),
        )
    )
    expensive = _last(agent)

    assert (saving.energy_start, saving.energy_end) == (10, 6)
    assert (expensive.energy_start, expensive.energy_end) == (16, 1)
    assert [each["verdict"] for each in expensive.actions] == [
        "run",
        "run",
        "run",
        "run",
        "too_little_energy",
    ]


def test_an_action_budget_gives_four_and_two_rests_earn_one_more(beat: Beat, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentPolicy.objects.create(tenant_id=agent.tenant_id, agent_id=agent.id, budget="actions")
    five = [act("remember", content=f"Thing {number}.") for number in range(5)]
    beat(reply(*five))
    first = _last(agent)
    beat(reply(act("rest"), act("rest"), act("observe")))
    prompt = beat(reply(*five)).requests[0].messages[0].content
    third = _last(agent)

    assert [each["verdict"] for each in first.actions] == ["run"] * 4 + ["too_little_energy"]
    assert "## Energy\n5 of at most 5 actions." in prompt
    assert [each["verdict"] for each in third.actions] == ["run"] * 5
    with tenant_transaction(agent.tenant_id):
        state = AgentState.objects.get(agent_id=agent.id)
    assert (state.bonus_actions, state.energy) == (0, 10)


def test_a_tick_budget_lasts_a_cycle_of_beats(beat: Beat, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentPolicy.objects.create(tenant_id=agent.tenant_id, agent_id=agent.id, budget="ticks", allowance=3)
    two = [act("remember", content="One."), act("remember", content="Two.")]
    left = []
    for _ in range(3):
        beat(reply(*two))
        with tenant_transaction(agent.tenant_id):
            left.append(AgentState.objects.get(agent_id=agent.id).ticks_left)

    # The second beat has one tick; the third finds none and begins a new cycle.
    assert left == [1, 0, 1]
    assert [each["verdict"] for each in beats_of(agent)[1].actions] == ["run", "too_little_energy"]
