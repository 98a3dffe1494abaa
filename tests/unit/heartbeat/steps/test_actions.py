"""Acting: execution of the decided actions, their results and effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from arbor.embedding.models import EmbeddingModel
from arbor.errors import NotFound
from arbor.goals.values import GoalState
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.decision import Decision, DecisionVerdict
from arbor.heartbeat.inputs import BudgetTerms
from arbor.heartbeat.needs import Materials, OpenBacklog, PartialRecalls, PlacedMemories, Placing, Service
from arbor.heartbeat.results import ActionOutcome, GoalChange, GoalChangeKind, RoundTripRecord, action_result
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.actions import ACTS, RECALLED_LENGTH, act
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.trust import Evidence, Source
from arbor.memory.values import HEARTBEATS_SESSION, MemoryType, Retention
from tests.unit.heartbeat.builders import NOW, percept, situation
from tests.unit.heartbeat.state_builders import (
    AGENT,
    HEARTBEAT,
    Answers,
    backlog_of,
    goal_row,
    heartbeat_of,
    permitted,
    recalled_memory,
    refusal_of,
    signed,
)

MODEL = EmbeddingModel(name="wordllama", dimension=2)
#: The id of the first memory that a heartbeat places.
PLACED = UUID(int=1000)
STRANGERS_WORD = Evidence(trust=0.575, speaker=Source(kind="memory", reference="Bo", trust=1.0))


def run_actions(*decisions: Decision, answers: Answers | None = None, **changes: Any) -> HeartbeatState:
    numbered = [decision.model_copy(update={"index": place}) for place, decision in enumerate(decisions)]
    values: dict[str, Any] = {"decisions": numbered, "round_trip": 1, "embedding_model": MODEL, **changes}
    return (answers or Answers()).run(act(signed(heartbeat_of(**values)))).state


def test_every_action_has_a_function() -> None:
    assert set(ACTS) == set(ACTIONS)


# --- Results, energy and the record --------------------------------------------------------------------


def test_results_are_in_order_and_energy_is_spent_on_what_ran() -> None:
    answers = Answers({RecallRequest: []})
    heartbeat = run_actions(
        permitted("recall", query="a"),
        refusal_of("fly", DecisionVerdict.UNKNOWN, "there is no fly"),
        permitted("rest"),
        answers=answers,
    )

    assert [(record.result.action, record.result.outcome.value) for record in heartbeat.action_records] == [
        ("recall", "partial"),
        ("fly", "blocked"),
        ("rest", "success"),
    ]
    assert heartbeat.energy_end == heartbeat.state.energy == 9.0
    assert (heartbeat.rests, heartbeat.has_acted) == (1, True)
    assert [record.to_json()["verdict"] for record in heartbeat.action_records] == ["run", "unknown", "run"]
    assert "round_trip" not in heartbeat.action_records[0].to_json()


@pytest.mark.parametrize(
    ("terms", "rests", "columns"),
    [
        (None, 0, {"energy": 9.0}),
        (BudgetTerms(kind="actions"), 1, {"bonus_actions": 1}),
        (BudgetTerms(kind="ticks"), 0, {"ticks_left": 9}),
    ],
)
def test_actions_change_only_the_columns_of_their_budget(
    terms: BudgetTerms | None, rests: int, columns: dict[str, Any]
) -> None:
    recall = permitted("recall", query="a").model_copy(update={"cost": 1})
    heartbeat = run_actions(
        recall, permitted("rest"), answers=Answers({RecallRequest: []}), budget_terms=terms, rests=rests
    )
    changed = {name: getattr(heartbeat.state, name) for name in ("energy", "bonus_actions", "ticks_left")}
    assert {name: value for name, value in changed.items() if value is not None} == columns


def test_actions_of_a_later_round_trip_carry_its_number() -> None:
    before = GoalChange(kind=GoalChangeKind.PLANNED, title="x", change="y")
    heartbeat = run_actions(permitted("rest"), round_trip=2, present=RoundTripRecord(goal_changes=[before]))
    assert heartbeat.action_records[0].to_json()["round_trip"] == 2
    assert heartbeat.present.goal_changes == [before]


def test_an_action_without_a_grant_is_audited() -> None:
    heartbeat = run_actions(refusal_of("recall", DecisionVerdict.NOT_AUTHORIZED, "not allowed"))
    (note,) = heartbeat.effects.audit
    assert (note.action, note.message) == ("denied", "recall: not allowed")
    resource = "arbor://actions/execute/recall"
    assert note.detail == {"heartbeat_id": str(HEARTBEAT), "resource": resource, "code": "", "tried": []}


def test_percepts_are_consumed_together_with_the_actions() -> None:
    view = situation(percepts=[percept(id=str(UUID(int=50)))])
    assert run_actions(permitted("rest"), situation=view).effects.received_percepts == (UUID(int=50),)


def test_a_domain_error_fails_the_action_alone() -> None:
    answers = Answers({Service: NotFound("there is no such thing")})
    heartbeat = run_actions(permitted("observe"), permitted("rest"), answers=answers)
    (failed, rested) = heartbeat.action_records
    assert (failed.result.outcome, rested.result.outcome) == (ActionOutcome.FAILURE, ActionOutcome.SUCCESS)
    assert failed.result.summary == "did not work: there is no such thing"


def test_an_unexpected_error_of_an_action_propagates() -> None:
    with pytest.raises(ZeroDivisionError):
        run_actions(permitted("observe"), answers=Answers({Service: ZeroDivisionError("on purpose")}))


# --- Services ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "decision",
    [
        permitted("observe"),
        permitted("review_goals"),
        permitted("connect", from_id=str(UUID(int=1)), to_id=str(UUID(int=2)), relation="causes"),
        permitted("maintain", target="memory", id=str(UUID(int=1))),
        permitted("reach_out_public", content="Hello.", intent="so"),
        permitted("reach_out_user", content="Hello.", intent="so"),
    ],
    ids=lambda decision: decision.action,
)
def test_rare_actions_are_left_to_a_service(decision: Decision) -> None:
    vectors = {"a": [1.0]}
    done = Answers({Service: lambda need: action_result(need.decision, ActionOutcome.SUCCESS, "done")})
    heartbeat = run_actions(decision, answers=done, vectors=vectors)

    (need,) = done.needs
    verified = decision.model_copy(update={"capability_id": need.decision.capability_id})
    assert need == Service(decision=verified, situation=heartbeat.situation, vectors=vectors, model=MODEL)
    assert heartbeat.action_records[0].result.summary == "done"
    reached_out_at = heartbeat.state.last_reach_out_at
    assert reached_out_at == (NOW if decision.action == "reach_out_user" else None)


def test_a_blocked_message_does_not_count_as_reaching_out() -> None:
    done = Answers({Service: lambda need: action_result(need.decision, ActionOutcome.BLOCKED, "too soon")})
    heartbeat = run_actions(permitted("reach_out_user", content="Hello.", intent="so"), answers=done)
    assert heartbeat.state.last_reach_out_at is None


# --- Recall --------------------------------------------------------------------------------------------


def test_a_recall_uses_its_parameters_and_returns_memories() -> None:
    memories = [recalled_memory(1, role="Ada"), recalled_memory(2, content="x" * 1_000)]
    answers = Answers({RecallRequest: memories, PartialRecalls: ["evenings", "club"]})
    decision = permitted("recall", query="ferries", limit=7, types=["semantic"], since="2026-01-01")
    heartbeat = run_actions(decision, answers=answers, vectors={"ferries": [0.5, 0.5]})

    request, clusters = answers.needs
    assert (request.agent_id, request.text, request.vector) == (AGENT, "ferries", [0.5, 0.5])
    assert (request.limit, request.model, request.now) == (21, MODEL, NOW)
    assert request.only.types == frozenset({MemoryType.SEMANTIC})
    assert request.only.since is not None
    # A deliberate search does not depend on the mood.
    assert request.mood is None
    assert (clusters.recalled, clusters.vector, clusters.model) == (memories, [0.5, 0.5], MODEL)
    result = heartbeat.action_records[0].result
    assert result.summary.startswith("recalled 2 memories about “ferries”: memory 1; ")
    assert result.summary.endswith("on the tip of the tongue: clusters evenings; club")
    assert result.memory_ids == [str(memory.id) for memory in memories]
    first, second = result.brought.split("\n")
    assert first == f"[{memories[0].id}] 2026-01-05 09:30, episodic, from Ada: memory 1"
    assert RECALLED_LENGTH <= len(second) < RECALLED_LENGTH + 100
    assert heartbeat.effects.recalls == ({memories[0].id: 1.0, memories[1].id: 0.5},)


@pytest.mark.parametrize(
    ("params", "asked"),
    [
        ({}, (None, None, None)),
        ({"concept": "tree", "cluster": "garden, trees"}, ("tree", "garden, trees", None)),
        (
            {"concept": str(UUID(int=1)), "cluster": str(UUID(int=2)), "episode": str(UUID(int=3))},
            (UUID(int=1), UUID(int=2), UUID(int=3)),
        ),
    ],
)
def test_a_recall_may_name_a_concept_a_cluster_and_an_episode(
    params: dict[str, str], asked: tuple[Any, ...]
) -> None:
    answers = Answers({RecallRequest: []})
    run_actions(permitted("recall", query="ferries", **params), answers=answers)
    only = answers.needs[0].only
    assert (only.concept, only.cluster, only.episode) == asked


def test_the_cluster_of_a_decision_in_an_older_checkpoint_is_read() -> None:
    decision = permitted("recall", query="ferries", cluster="garden, trees")
    params = dict(decision.params)
    params["theme"] = params.pop("cluster")
    answers = Answers({RecallRequest: []})
    run_actions(decision.model_copy(update={"params": params}), answers=answers)
    assert answers.needs[0].only.cluster == "garden, trees"


def test_a_recalled_summary_names_its_episode() -> None:
    summary = recalled_memory(1, session=f"episode:{UUID(int=9)}")
    answers = Answers({RecallRequest: [summary], PartialRecalls: []})
    heartbeat = run_actions(permitted("recall", query="ferries"), answers=answers)
    assert f"summary of the episode {UUID(int=9)}: memory 1" in heartbeat.action_records[0].result.brought


def test_own_heartbeats_displace_no_other_memories() -> None:
    own = [recalled_memory(number, session=HEARTBEATS_SESSION) for number in range(1, 16)]
    fact = recalled_memory(99, content="The ferry leaves at noon.")
    answers = Answers(
        {RecallRequest: lambda need: [*own[: need.session_limit.most], fact], PartialRecalls: []}
    )
    heartbeat = run_actions(permitted("recall", query="ferries", limit=5), answers=answers)
    assert str(fact.id) in heartbeat.action_records[0].result.memory_ids
    assert answers.kinds == [RecallRequest, PartialRecalls]


def test_an_empty_recall_is_reported_and_not_counted() -> None:
    answers = Answers({RecallRequest: []})
    heartbeat = run_actions(permitted("recall", query="ferries"), answers=answers)
    assert answers.kinds == [RecallRequest]
    assert heartbeat.action_records[0].result.summary == "recalled nothing about “ferries”"
    assert heartbeat.effects.recalls == ()


def test_each_recall_of_a_heartbeat_counts_separately() -> None:
    answers = Answers({RecallRequest: lambda need: [recalled_memory(len(need.text))], PartialRecalls: []})
    heartbeat = run_actions(permitted("recall", query="a"), permitted("recall", query="bb"), answers=answers)
    assert [set(scores) for scores in heartbeat.effects.recalls] == [
        {recalled_memory(1).id},
        {recalled_memory(2).id},
    ]


# --- Making memories -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "type_", "importance", "retention", "verb"),
    [
        (permitted("remember", content="The reef is red."), "semantic", None, Retention.LASTING, "kept"),
        (
            permitted("remember", content="The reef is red.", type="episodic", importance=0.9),
            "episodic",
            0.9,
            Retention.LASTING,
            "kept",
        ),
        (
            permitted("remember", content="The upload failed.", type="episodic"),
            "episodic",
            None,
            Retention.ERROR,
            "kept",
        ),
        (permitted("reflect", insight="The reef is red.", focus="reefs"), "semantic", 0.7, None, "noticed"),
        (
            permitted("synthesize", topic="reefs", content="The reef is red."),
            "semantic",
            0.7,
            Retention.LASTING,
            "made a conclusion",
        ),
        (
            permitted("synthesize", topic="reefs", content="The reef is red.", kind="creative"),
            "episodic",
            0.7,
            Retention.LASTING,
            "made a creative work",
        ),
    ],
)
def test_a_created_memory_is_placed_with_its_vector(
    decision: Decision, type_: str, importance: float | None, retention: Retention | None, verb: str
) -> None:
    text = decision.params.get("content") or decision.params["insight"]
    answers = Answers()
    heartbeat = run_actions(decision, answers=answers, vectors={text: [0.5, 0.5]})

    (need,) = answers.needs
    (memory,) = need.memories
    assert (memory.content, memory.type.value, memory.importance) == (text, type_, importance)
    assert (memory.retention, memory.occurred_at, memory.source) == (retention, NOW, f"heartbeat:{HEARTBEAT}")
    np.testing.assert_array_equal(need.vectors, np.asarray([[0.5, 0.5]], dtype=np.float32))
    assert need.model == MODEL
    result = heartbeat.action_records[0].result
    assert (result.summary, result.memory_ids) == (f"{verb}: {text}", [str(PLACED)])


def test_a_memory_without_a_vector_is_left_to_maintenance() -> None:
    answers = Answers()
    run_actions(permitted("remember", content="The reef is red."), answers=answers)
    assert answers.needs[0].vectors is None


def test_a_known_memory_counts_as_partial_success() -> None:
    known = PlacedMemories(ids=(PLACED,), duplicates=frozenset({PLACED}))
    heartbeat = run_actions(permitted("remember", content="a"), answers=Answers({Placing: known}))
    result = heartbeat.action_records[0].result
    assert (result.outcome, result.summary) == (ActionOutcome.PARTIAL, "knew that already")
    assert result.memory_ids == [str(PLACED)]


@pytest.mark.parametrize(
    "make",
    [
        lambda ids: permitted("reflect", insight="a", rests_on=ids),
        lambda ids: permitted("synthesize", topic="b", content="c", materials=ids),
    ],
)
def test_a_derived_memory_is_linked_to_its_sources(make: Callable[[list[str]], Decision]) -> None:
    materials = [UUID(int=5), PLACED]
    answers = Answers({Materials: dict.fromkeys(materials, STRANGERS_WORD)})
    heartbeat = run_actions(make([str(memory_id) for memory_id in materials]), answers=answers)

    assert answers.kinds == [Materials, Placing]
    # The derived memory is trusted as far as its sources.
    assert answers.needs[1].memories[0].trust == pytest.approx(0.575)
    # The memory is never linked to itself, although its own id is among the materials.
    assert heartbeat.effects.derived == ((PLACED, (UUID(int=5),)),)


def test_a_memory_derived_from_foreign_memories_is_not_created() -> None:
    answers = Answers({Materials: NotFound("there is no memory x")})
    heartbeat = run_actions(permitted("reflect", insight="a", rests_on=[str(UUID(int=5))]), answers=answers)
    assert answers.kinds == [Materials]
    assert heartbeat.action_records[0].result.outcome is ActionOutcome.FAILURE


# --- Goals ---------------------------------------------------------------------------------------------


def test_brainstormed_goals_are_added_while_there_is_room() -> None:
    backlog = backlog_of(goal_row("reef"))
    wanted = [{"title": title, "rationale": "so"} for title in ("Count the lamps", "Chart the reef")]
    answers = Answers({OpenBacklog: backlog})
    heartbeat = run_actions(permitted("brainstorm_goals", goals=wanted), answers=answers)

    result = heartbeat.action_records[0].result
    assert answers.kinds == [OpenBacklog]
    assert result.outcome is ActionOutcome.PARTIAL
    assert result.summary.startswith("added “Count the lamps”, ")
    assert "could not add “Chart the reef”: " in result.summary
    assert heartbeat.effects.backlog is backlog
    (change,) = heartbeat.present.goal_changes
    assert (change.title, change.kind) == ("Count the lamps", GoalChangeKind.CREATED)
    assert backlog.goal(change.goal_id).description == "Why: so"


def test_a_goal_is_moved_and_a_missing_one_reported() -> None:
    goal = goal_row("reef")
    backlog = backlog_of(goal)
    moved = permitted("reprioritize", goal_id=str(goal.id), state="queued")
    missing = permitted("reprioritize", goal_id=str(UUID(int=9)), state="active")
    heartbeat = run_actions(moved, missing, answers=Answers({OpenBacklog: backlog}))

    assert [record.result.outcome.value for record in heartbeat.action_records] == ["success", "failure"]
    assert backlog.goal(goal.id).state is GoalState.QUEUED
    assert [change.kind for change in heartbeat.present.goal_changes] == [GoalChangeKind.MOVED]
    assert "there is no open goal" in heartbeat.action_records[1].result.summary
