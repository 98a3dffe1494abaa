"""Follow-up round trips of a heartbeat, and their models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.agents.models import Agent, AgentPolicy, AgentState
from apps.calls.models import ExternalCall
from apps.console.pages.call import read_call
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.calls import calls
from apps.heartbeats.services.legs import checkpoints
from apps.heartbeats.services.reports.trace import steps_of
from apps.memories.models import Memory
from apps.memories.services.store.remember import remember
from apps.tenants.models import Tenant
from apps.tenants.packing import unpack
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.clock import SystemClock
from arbor.errors import ModelRefused, ModelTimeout, ModelUnavailable
from arbor.goals.values import GoalState
from arbor.heartbeat.tiers import parse_tier_models
from arbor.memory.values import NewMemory
from arbor.models.ports import ModelRequest, ScriptedModel
from config.cli.agents.trace import trace_of
from tests.integration.heartbeats.conftest import REST, heartbeats_of, lose_lease, run_at_once
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, reply_of, store_memory


def _recall(query: str = "Who keeps the lighthouse?") -> dict[str, Any]:
    return {"action": "recall", "params": {"query": query}}


@pytest.fixture(autouse=True)
def _known(agent: Agent) -> None:
    """Store a memory that the agent can recall."""
    store_memory(agent, "The lighthouse keeper is called Ines.")


def _set_policy(agent: Agent, **values: Any) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentPolicy.objects.update_or_create(
            agent_id=agent.id, defaults={"tenant_id": agent.tenant_id, **values}
        )


def test_recalled_memories_are_read_in_the_next_round_trip(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    note = {"action": "remember", "params": {"content": "Ines keeps the light.", "type": "semantic"}}
    model = scripted(
        reply_of(_recall(), thinking="Who was it?"), reply_of(note, thinking="Ines it is."), REST
    )

    heartbeat = run_at_once(fleet, agent)

    first, second = model.requests
    mark = first.messages[0].content.split("\n")[0].removeprefix("The mark of this message is ").rstrip(".")
    assert [message.role for message in second.messages] == ["user", "assistant", "user"]
    assert second.messages[:2] == (first.messages[0], second.messages[1])
    results = second.messages[2].content
    assert f"<data-{mark}>" in results
    assert "The lighthouse keeper is called Ines." in results
    assert "(round trip 2 of at most 10)" in results
    assert (heartbeat.status, heartbeat.round_trips) == (HeartbeatStatus.DONE, 2)
    assert [(action["action"], action.get("round_trip")) for action in heartbeat.actions] == [
        ("recall", None),
        ("remember", 2),
    ]
    assert heartbeat.reasoning == "Who was it?\n\nInes it is."
    assert "Who was it?" in heartbeat.narrative
    assert "Ines it is." in heartbeat.narrative


def test_the_situation_is_stored_once_and_no_vector_of_this_process(
    agent: Agent, fleet: Fleet, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[dict[str, Any]] = []

    def record(statement: str, **values: Any) -> Any:
        written.append(values)
        return fetch(statement, **values)

    monkeypatch.setattr(checkpoints, "fetch", record)
    note = {"text": "Ines is the keeper of the lighthouse.", "referenced_date": None}
    scripted(reply_of(_recall(), memory_notes=[note]), REST)

    heartbeat = run_at_once(fleet, agent)

    asked, followed, ended = written
    assert unpack(asked["situation"][0])["heartbeat_number"] == heartbeat.number
    assert (followed["situation"], ended["situation"]) == ([None], [None])
    (checkpoint,) = map(unpack, followed["checkpoint"])
    recalled = [memory["content"] for memory in checkpoint["heartbeat"]["recalled"]]
    assert "The lighthouse keeper is called Ines." in recalled
    assert "vectors" not in checkpoint["heartbeat"]
    with tenant_transaction(agent.tenant_id):
        stored = Memory.objects.get(agent_id=agent.id, content=note["text"])
    assert stored.embedding is not None


def test_a_long_memory_is_cut_in_a_further_round_trip(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    store_memory(agent, "Who keeps the lighthouse? " + "fog " * 1_000)
    model = scripted(reply_of(_recall()), REST)

    run_at_once(fleet, agent)

    results = model.requests[1].messages[2].content
    assert "(cut; 4025 characters in all)" in results
    assert "The lighthouse keeper is called Ines." in results
    assert results.count("fog") < 200


def test_the_energy_of_all_round_trips_is_spent_once(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    scripted(reply_of(_recall()), reply_of(_recall("the lighthouse")), reply_of())

    heartbeat = run_at_once(fleet, agent)

    assert (heartbeat.energy_start, heartbeat.energy_end, heartbeat.round_trips) == (20.0, 18.0, 3)
    assert "I spent 2 energy and have 18 left." in heartbeat.narrative
    assert heartbeat.situation["energy"] == 20.0
    with tenant_transaction(agent.tenant_id):
        assert AgentState.objects.get(agent_id=agent.id).energy == 18.0


def test_items_of_each_round_trip_are_applied_once(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
        goal = create_goal(agent_id=agent.id, title="Chart the reef", state=GoalState.ACTIVE)
    new = [{"title": title} for title in ("Name the isles", "Count the boats", "Draw the pier")]
    update = {"goal_id": str(goal.id), "progress": 0.2, "note": "began"}
    scripted(
        reply_of(
            _recall(),
            memory_notes=["Ada asked first."],
            new_goals=new[:2],
            goal_updates=[update],
            concerns=["wind"],
        ),
        reply_of(memory_notes=["Ada asked again."], new_goals=[new[2], {"title": "Sail"}], concerns=["rain"]),
    )

    heartbeat = run_at_once(fleet, agent)

    with tenant_transaction(agent.tenant_id):
        assert Goal.objects.get(id=goal.id).fraction == 0.2
        assert set(Goal.objects.exclude(id=goal.id).values_list("title", flat=True)) == {
            goal["title"] for goal in new
        }
        for text in ("Ada asked first.", "Ada asked again."):
            assert Memory.objects.filter(content=text).count() == 1
        working_memory = AgentState.objects.get(agent_id=agent.id).working_memory
    assert working_memory["concerns"] == ["wind", "rain"]
    kinds = [change["kind"] for change in heartbeat.goal_changes]
    assert (kinds.count("progressed"), kinds.count("created")) == (1, 3)
    assert [(item["path"], item["value"]) for item in heartbeat.dropped] == [("new_goals[1]", "Sail")]


def test_a_heartbeat_ends_after_ten_round_trips(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    model = scripted(reply_of(_recall()), repeat=True)

    heartbeat = run_at_once(fleet, agent)

    assert (len(model.requests), heartbeat.round_trips, heartbeat.status) == (10, 10, HeartbeatStatus.DONE)
    assert heartbeat.energy_end == 10.0


@pytest.mark.parametrize(
    ("own", "installed", "round_trips"), [(0, 9, 1), (2, 9, 3), (None, 0, 1), (None, 1, 2)]
)
def test_the_policy_and_the_installation_limit_the_round_trips(
    agent: Agent,
    fleet: Fleet,
    scripted: Script,
    settings: Any,
    own: int | None,
    installed: int,
    round_trips: int,
) -> None:
    settings.ARBOR_FOLLOW_UPS = installed
    _set_policy(agent, follow_ups=own)
    model = scripted(reply_of(_recall()), repeat=True)

    assert run_at_once(fleet, agent).round_trips == round_trips
    assert len(model.requests) == round_trips


def test_a_reply_without_results_to_read_ends_the_heartbeat(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    model = scripted(REST)

    assert run_at_once(fleet, agent).round_trips == 1
    assert len(model.requests) == 1


def test_a_worker_dying_between_round_trips_repeats_neither(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    model = scripted(reply_of(_recall(), memory_notes=["Ada asked."]), reply_of(thinking="Ines it is."))
    fleet.claim(agent)
    while len(model.requests) < 1 or _count_think_calls(agent) < 2:
        fleet.step()
    fleet.messages.clear()  # the broker loses all messages
    lose_lease(agent)

    fleet.dispatch()
    fleet.run()

    (heartbeat,) = heartbeats_of(agent)
    assert (heartbeat.status, heartbeat.round_trips, len(model.requests)) == (HeartbeatStatus.DONE, 2, 2)
    assert [action["action"] for action in heartbeat.actions] == ["recall"]
    assert heartbeat.energy_end == 19.0
    with tenant_transaction(agent.tenant_id):
        assert Memory.objects.filter(content="Ada asked.").count() == 1


def _count_think_calls(agent: Agent) -> int:
    with tenant_transaction(agent.tenant_id):
        return ExternalCall.objects.filter(agent_id=agent.id, purpose="think").count()


@pytest.mark.parametrize(
    "lines", [[ModelTimeout("too slow")], ["no", "no", "no"]], ids=["unreachable", "unreadable"]
)
def test_a_failed_round_trip_keeps_effects_of_the_first(
    agent: Agent, fleet: Fleet, scripted: Script, lines: list[Any]
) -> None:
    scripted(reply_of(_recall(), thinking="Who was it?"), *lines)

    heartbeat = run_at_once(fleet, agent)

    assert (heartbeat.status, heartbeat.round_trips, heartbeat.reason) == (HeartbeatStatus.DONE, 1, "")
    assert [action["action"] for action in heartbeat.actions] == ["recall"]
    assert heartbeat.dropped[-1]["path"] == "round trip 2"
    assert "Who was it?" in heartbeat.narrative
    with tenant_transaction(agent.tenant_id):
        state = AgentState.objects.get(agent_id=agent.id)
    assert (state.energy, state.heartbeats, state.nops) == (19.0, 1, 0)


def test_an_unreadable_round_trip_is_retried_with_its_history(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    model = scripted(reply_of(_recall()), "no", reply_of(thinking="Ines it is."))

    heartbeat = run_at_once(fleet, agent)

    roles = [message.role for message in model.requests[2].messages]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert "could not be read" in model.requests[2].messages[-1].content
    assert (heartbeat.round_trips, heartbeat.status) == (2, HeartbeatStatus.DONE)


# --- Tiers ---------------------------------------------------------------------------------------------


class _Models:
    """Models by their handles, with one reply each; `asked` records the calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **lines: Any) -> None:
        self.asked: list[str] = []
        self._models = {name: ScriptedModel(line, repeat=True) for name, line in lines.items()}
        monkeypatch.setattr(calls, "model_for", self._model)

    def _model(self, handle: str) -> Any:
        self.asked.append(handle)
        return self._models[handle.partition("/")[2]]


def _add_active_goal(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        create_goal(agent_id=agent.id, title="Chart the reef", state=GoalState.ACTIVE)


def test_a_heartbeat_calls_the_model_of_its_tier(
    agent: Agent, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add_active_goal(agent)
    _set_policy(agent, tier_models={"strategic": ["openai/deep"], "standard": ["openai/usual"]})
    models = _Models(monkeypatch, deep=REST, usual=REST)

    heartbeat = run_at_once(fleet, agent)

    assert (heartbeat.mode, heartbeat.tier, heartbeat.model) == ("plan_execution", "strategic", "openai/deep")
    assert models.asked == ["openai/deep"]


@pytest.mark.parametrize("error", [ModelTimeout("slow"), ModelUnavailable("away")])
def test_a_model_out_of_reach_is_followed_by_the_next_of_its_tier(
    agent: Agent, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    _add_active_goal(agent)
    _set_policy(agent, tier_models={"strategic": ["openai/deep", "openai/other"]})
    models = _Models(monkeypatch, deep=error, other=REST)

    heartbeat = run_at_once(fleet, agent)

    assert models.asked == ["openai/deep", "openai/other"]
    assert (heartbeat.status, heartbeat.model) == (HeartbeatStatus.DONE, "openai/other")
    assert [step.outcome for step in steps_of(heartbeat) if step.node == "llm_plan"] == [
        "waiting",
        "retry",
        "waiting",
        "success",
    ]
    with tenant_transaction(agent.tenant_id):
        failed, answered = ExternalCall.objects.filter(heartbeat_id=heartbeat.id).order_by("requested_at")
    assert (failed.status, failed.model, answered.model) == ("failed", "openai/deep", "openai/other")
    assert ModelRequest.from_json(_request_without_schema(failed)).messages == (
        ModelRequest.from_json(_request_without_schema(answered)).messages
    )


def _request_without_schema(call: ExternalCall) -> dict[str, Any]:
    return {name: value for name, value in call.request.items() if name != "schema_of"}


def test_a_heartbeat_fails_when_all_models_of_its_tier_fail(
    agent: Agent, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add_active_goal(agent)
    _set_policy(agent, tier_models={"strategic": ["openai/deep", "openai/other"]})
    slow = ModelTimeout("slow")
    models = _Models(monkeypatch, deep=slow, other=slow)

    heartbeat = run_at_once(fleet, agent)

    assert models.asked == ["openai/deep", "openai/other"]
    assert (heartbeat.status, heartbeat.reason) == (HeartbeatStatus.FAILED, "ModelTimeout: slow")


def test_a_refusal_does_not_fall_back_to_the_next_model(
    agent: Agent, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add_active_goal(agent)
    _set_policy(agent, tier_models={"strategic": ["openai/deep", "openai/other"]})
    models = _Models(monkeypatch, deep=ModelRefused("I may not"), other=REST)

    assert run_at_once(fleet, agent).status == HeartbeatStatus.FAILED
    assert models.asked == ["openai/deep"]


def test_an_agent_without_a_model_asks_the_installations_tier(
    tenant: Tenant,
    agent: Agent,
    new_agent: Callable[..., Agent],
    fleet: Fleet,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    settings.ARBOR_TIER_MODELS = parse_tier_models("strategic=openai/deep,standard=openai/usual")
    own = new_agent(tenant, name="Grace", model="openai/own")
    models = _Models(monkeypatch, deep=REST, own=REST)
    for asker in (agent, own):
        _add_active_goal(asker)
        run_at_once(fleet, asker)

    assert models.asked == ["openai/deep", "openai/own"]


# --- Token shares --------------------------------------------------------------------------------------------


def test_sections_cut_from_a_prompt_are_counted_in_prompt_and_trace(
    agent: Agent, fleet: Fleet, scripted: Script, settings: Any
) -> None:
    settings.ARBOR_MODEL_CONTEXT = 4_096
    remember(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        memories=[
            NewMemory(content=f"Day {day}: {'rain ' * 200}", occurred_at=SystemClock().now())
            for day in range(5)
        ],
    )
    model = scripted(REST)

    heartbeat = run_at_once(fleet, agent)

    assert "Not shown, for want of room: " in model.requests[0].messages[0].content
    with tenant_transaction(agent.tenant_id):
        (call,) = trace_of(Heartbeat.objects.select_related("agent").get(id=heartbeat.id))["calls"]
        shown = read_call(ExternalCall.objects.get(heartbeat_id=heartbeat.id), None)
    cut = {section["name"]: section["cut"] for section in call["sections"] if section["cut"]}
    assert cut
    assert {section.name: section.cut for section in shown.sections if section.cut} == cut
