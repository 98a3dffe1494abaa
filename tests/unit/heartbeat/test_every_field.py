"""Fields of replies and parameters of actions: each one has an effect, or the agent is notified that it has none."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import UUID

import pytest

from arbor.authority.modes import TrustPreset, TrustProfile
from arbor.goals.backlog import Backlog
from arbor.goals.plans import PlanDraft, StepDraft
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.needs import (
    DecideProposal,
    Embedding,
    Materials,
    Meetings,
    OpenBacklog,
    OwnMemories,
    Placing,
    ProposalOutcome,
    Propose,
    Service,
    SourceSearch,
)
from arbor.heartbeat.replies.reply import REPLY_KEYS, Intention, ProposedAction, Reply
from arbor.heartbeat.replies.round_trips import follow_up_text
from arbor.heartbeat.results import ActionOutcome, action_result
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.actions import act
from arbor.heartbeat.steps.backlog import goals, store_decompositions
from arbor.heartbeat.steps.decisions import decide
from arbor.heartbeat.steps.inner_state import feel
from arbor.heartbeat.steps.records import record
from arbor.heartbeat.steps.round_trips import parse
from arbor.heartbeat.steps.selfhood import identity_insights, process_proposals
from arbor.knowledge.merging import MemorySearch
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.trust import Evidence, Source
from arbor.memory.values import HEARTBEATS_SESSION
from tests.support.authority import authority_of, grant_of
from tests.unit.heartbeat.builders import NONCE
from tests.unit.heartbeat.field_cases import (
    ACTION_CASES,
    GOAL,
    INTENTION,
    INTENTION_FIELDS,
    MEMORY,
    OTHER,
    PART_CASES,
    REEF,
    UNTRIED,
    UNTRIED_FIELDS,
)
from tests.unit.heartbeat.state_builders import Answers, backlog_of, goal_row, heartbeat_of, moment_of

SPEAKER = Source(kind="memory", reference="Bo", trust=1.0)
STEPS = (decide, store_decompositions, act, goals, process_proposals, identity_insights, feel, record)


def backlog_with_plan() -> Backlog:
    """Return a backlog of two goals; the plan of the first depends on a boat."""
    backlog = backlog_of(goal_row("reef"), goal_row("harbour"))
    step = StepDraft(action="recall", description="Look up the reef.")
    backlog.plan(REEF.id, PlanDraft(steps=[step], dependencies=["a boat"]))
    return backlog


def run_reply(body: dict[str, Any]) -> tuple[HeartbeatState, str]:
    """Run the steps after a reply; return the state, and in words what the heartbeat asked for and changed."""
    backlog = backlog_with_plan()
    answers = Answers(
        {
            OpenBacklog: backlog,
            OwnMemories: frozenset({MEMORY}),
            Materials: {MEMORY: Evidence(trust=0.5, speaker=SPEAKER)},
            DecideProposal: "accepted",
            Propose: ProposalOutcome(),
            Meetings: [],
            RecallRequest: [],
            SourceSearch: MemorySearch(results=[], term=""),
            Service: lambda need: action_result(need.decision, ActionOutcome.SUCCESS, "done"),
        }
    )
    grants = [grant_of(f"arbor://{kind}/execute/*") for kind in ("actions", "workflows")]
    moment = moment_of(authority=authority_of(*grants, modes=TrustProfile(preset=TrustPreset.FULL_TRUST)))
    heartbeat = heartbeat_of(moment=moment, reply_text=json.dumps({"thinking": "", **body}))
    for step in (parse, *STEPS):
        result = step(heartbeat)
        heartbeat = answers.run(result).state
    asked = [
        [memory for memory in need.memories if memory.session != HEARTBEATS_SESSION]
        if isinstance(need, Placing)
        else need.decision.params
        if isinstance(need, Service)
        else need
        for need in answers.needs
        # The texts to embed have the narrative, which tells of every action.
        if not isinstance(need, Embedding)
    ]
    # Ids of new rows differ between two runs; those of this module begin with eight zeros.
    words = re.sub(r"UUID\('(?!00000000)[^']*'\)", "UUID()", f"{asked} {backlog.changes()} {heartbeat.work}")
    return heartbeat, words


def effect_of(key: str, item: dict[str, Any], *actions: dict[str, Any]) -> str:
    body = {key: [item], "actions": [*actions]} if key != "actions" else {"actions": [item]}
    heartbeat, words = run_reply(body)
    assert heartbeat.present.dropped == []
    assert all(done.decision.runs for done in heartbeat.action_records)
    return words


def test_the_tables_name_every_action_and_field() -> None:
    assert set(ACTION_CASES) == set(ACTIONS)
    for name, case in ACTION_CASES.items():
        untried = {param for action, param in UNTRIED if action == name}
        assert {*case.changed} | untried == {*ACTIONS[name].params.model_fields}, name
    lists = {*REPLY_KEYS} - {"thinking", "concerns", "curiosity", "resolved"}
    assert set(PART_CASES) == lists
    for key, part in PART_CASES.items():
        untried = UNTRIED_FIELDS.get(key, set())
        assert {*part.required, *part.further} | untried == {*part.part.model_fields}, key
    assert {*INTENTION, *INTENTION_FIELDS} == {*Intention.model_fields}


@pytest.mark.parametrize("action", ACTION_CASES)
def test_another_value_of_a_parameter_has_another_effect(action: str) -> None:
    case = ACTION_CASES[action]
    usual = effect_of("actions", {"action": action, "params": case.required})
    unknown = {**case.required, "mood": "calm"}
    assert effect_of("actions", {"action": action, "params": unknown}) == usual
    for name, value in case.changed.items():
        params = {**case.required, name: value}
        if (action, name) == ("maintain", "verdict"):
            params.pop("content")
        changed = effect_of("actions", {"action": action, "params": params})
        assert changed != usual, name


@pytest.mark.parametrize("key", PART_CASES)
def test_each_field_of_an_item_has_an_effect(key: str) -> None:
    case = PART_CASES[key]
    usual = effect_of(key, case.required)
    for name, value in case.further.items():
        assert effect_of(key, {**case.required, name: value}) != usual, name


def test_each_field_of_a_planned_step_has_an_effect() -> None:
    usual = effect_of("decompositions", {"goal_id": OTHER, "intentions": [INTENTION]})
    for name, value in INTENTION_FIELDS.items():
        steps = [{**INTENTION, name: value}]
        assert effect_of("decompositions", {"goal_id": OTHER, "intentions": steps}) != usual, name


@pytest.mark.parametrize(
    ("action", "params", "ignored"),
    [
        *((name, {**case.required, "mood": "calm"}, "mood") for name, case in ACTION_CASES.items()),
        ("remember", {"content": "Dive.", "type": "episodic", "steps": ["Dive."]}, "type"),
        ("remember", {"content": "Dive.", "type": "semantic", "pattern": "red, then dead"}, "type"),
        ("maintain", {"target": "memory", "id": "a", "importance": 0.9}, "importance"),
        (
            "maintain",
            {"target": "belief", "id": "a", "verdict": "keep", "reason": "b", "content": "c"},
            "content",
        ),
        (
            "brainstorm_goals",
            {"goals": [{"title": "Sail", "layer": "task"}, {"title": "Row", "parent_id": GOAL}]},
            "goals[0].layer, goals[1].parent_id",
        ),
    ],
)
def test_a_parameter_without_an_effect_is_named_in_the_result(
    action: str, params: dict[str, Any], ignored: str
) -> None:
    heartbeat, _ = run_reply({"actions": [{"action": action, "params": params}]})
    (done,) = heartbeat.action_records
    assert done.decision.runs, done.decision.reason
    assert done.result.summary.endswith(f"; without effect: {ignored}")


@pytest.mark.parametrize(
    ("action", "params"),
    [
        # The type of the steps, none, and values that say nothing.
        ("remember", {"content": "Dive.", "type": "procedural", "steps": ["Dive."]}),
        ("remember", {"content": "Dive.", "steps": ["Dive."]}),
        ("remember", {"content": "Dive.", "mood": "", "tags": []}),
        ("maintain", {"target": "memory", "id": "a", "reason": ""}),
    ],
)
def test_other_parameters_are_not_named(action: str, params: dict[str, Any]) -> None:
    heartbeat, _ = run_reply({"actions": [{"action": action, "params": params}]})
    (done,) = heartbeat.action_records
    assert (done.decision.runs, "without effect" in done.result.summary) == (True, False)


GONE = str(UUID(int=99))


@pytest.mark.parametrize(
    ("update", "refused", "reason", "note"),
    [
        ({"state": "active", "reason": "It matters."}, "state", "the goal is active already", ""),
        ({"state": "active"}, "state", "the goal is active already", ""),
        ({"note": "Half.", "state": "active"}, "", "", "Half."),
        ({"note": "Half.", "state": "abandoned"}, "state", "giving a goal up needs a reason", "Half."),
        ({"note": "Half.", "blocked_by": GONE}, "blocked_by", "", "Half."),
        ({"note": "Half.", "met": ["a ship", "a boat"]}, "met[0]", "a ship", "Half."),
        ({"note": "Half.", "reason": "Dry."}, "reason", "a reason belongs to a new state", "Half."),
        ({"state": "completed", "blocked_by": "rain"}, "blocked_by", "waits for nothing", ""),
        ({"state": "abandoned", "reason": "Dry.", "met": ["a boat"]}, "met", "waits for nothing", ""),
        ({"state": "completed", "progress": 0.5}, "progress", "has full progress", ""),
        ({"progress": 1, "state": "queued"}, "state", "stays completed", ""),
    ],
)
def test_a_refused_part_of_an_update_leaves_the_others(
    update: dict[str, Any], refused: str, reason: str, note: str
) -> None:
    heartbeat, words = run_reply({"goal_updates": [{"goal_id": GOAL, **update}]})
    dropped = heartbeat.present.dropped
    assert [item.path for item in dropped] == ([f"goal_updates[0].{refused}"] if refused else [])
    assert all(reason in item.reason for item in dropped)
    assert ("text='Half.'" in words) == bool(note)
    if "met" in update and note:
        assert "met=['a boat']" in words


def test_a_dropped_item_is_named_by_its_place_in_the_reply() -> None:
    update = {"goal_id": GOAL, "note": "Half.", "met": [[], "a ship"]}
    goals = [{"title": ""}, *({"title": f"Chart bay {number}"} for number in range(4))]
    decisions = [7, {"proposal_id": "elsewhere", "decision": "defer", "reason": "Later."}]
    heartbeat, _ = run_reply(
        {"goal_updates": ["none", update], "new_goals": goals, "proposal_decisions": decisions}
    )
    assert {item.path for item in heartbeat.present.dropped} == {
        "goal_updates[0]",
        "goal_updates[1].met[0].text",
        "goal_updates[1].met[0]",
        "goal_updates[1].met[1]",
        "new_goals[0]",
        "new_goals[4]",
        "proposal_decisions[0]",
        "proposal_decisions[1]",
    }


def test_an_update_of_a_missing_goal_is_refused_once() -> None:
    update = {"goal_id": GONE, "note": "Half.", "state": "queued", "blocked_by": "rain"}
    heartbeat, _ = run_reply({"goal_updates": [update]})
    assert [item.path for item in heartbeat.present.dropped] == ["goal_updates[0]"]


def test_a_step_counts_for_its_own_goal_only() -> None:
    backlog = backlog_of(goal_row("reef"), goal_row("harbour"))
    backlog.plan(REEF.id, PlanDraft(steps=[StepDraft(action="recall", description="Look it up.")]))
    (intent,) = backlog.changes().new_intents
    heartbeat = heartbeat_of(
        reply=Reply(
            actions=[
                ProposedAction(
                    action="recall", params={"query": "reef"}, goal_id=OTHER, intent_id=str(intent.id)
                )
            ]
        )
    )
    answers = Answers({OpenBacklog: backlog, RecallRequest: []})
    for step in (decide, store_decompositions, act, goals):
        heartbeat = answers.run(step(heartbeat)).state
    (dropped,) = heartbeat.present.dropped
    assert (dropped.path, dropped.value) == ("actions[0].goal_id", OTHER)
    assert f"a step of the goal {REEF.id}" in dropped.reason
    assert {change.goal_id for change in heartbeat.present.goal_changes} == {GOAL}


def test_the_agent_reads_what_was_dropped() -> None:
    updates = [{"goal_id": GOAL, "note": "Half.", "reason": "Dry."}]
    heartbeat, _ = run_reply({"goal_updates": updates})
    line = "goal_updates[0].reason: a reason belongs to a new state, or to progress 1; write a note"
    assert f"Not taken of what I said: {line}." in heartbeat.narrative
    message = follow_up_text(
        heartbeat.situation, [], round_trip=2, most=3, nonce=NONCE, dropped=heartbeat.present.dropped
    )
    assert "## What was not taken of your last answer" in message
    assert line in message


def test_a_refused_change_of_a_goal_is_narrated_once() -> None:
    heartbeat, _ = run_reply({"goal_updates": [{"goal_id": GOAL, "state": "abandoned"}]})
    assert heartbeat.narrative.count("giving a goal up needs a reason") == 1
