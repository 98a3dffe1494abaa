"""Steps on the backlog: goals of rules, plans, intents, and the reply's changes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from arbor.goals.backlog import Backlog
from arbor.goals.intents import IntentStatus
from arbor.goals.values import GoalState
from arbor.heartbeat.decision import Decision, DecisionVerdict
from arbor.heartbeat.needs import OpenBacklog, OwnMemories
from arbor.heartbeat.replies.reply import (
    Decomposition,
    GoalUpdate,
    Intention,
    ProposedAction,
    ProposedGoal,
    Reply,
)
from arbor.heartbeat.replies.round_trips import merge_replies
from arbor.heartbeat.results import ActionOutcome, GoalChange, GoalChangeKind, RoundTripRecord
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.backlog import goals, store_decompositions
from arbor.values import replace
from tests.unit.heartbeat.state_builders import (
    HEARTBEAT,
    Answers,
    action_record_of,
    backlog_of,
    changes_of,
    goal_row,
    heartbeat_of,
    intent_row,
    run_with_backlog,
)

REEF = goal_row("reef")
MISSING_ID = str(UUID(int=99))


# --- Before the actions: plans and locks ---------------------------------------------------------------


def decision_on(
    intent_id: UUID | str, action: str = "recall", verdict: DecisionVerdict = DecisionVerdict.RUN
) -> Decision:
    return Decision(index=0, action=action, params={}, verdict=verdict, intent_id=str(intent_id))


def test_a_heartbeat_without_plans_or_intents_loads_no_backlog() -> None:
    refused = decision_on(UUID(int=300), verdict=DecisionVerdict.TOO_SOON)
    heartbeat, answers = run_with_backlog(
        store_decompositions, heartbeat_of(decisions=[refused], counted=["x"], reply=Reply()), None
    )
    assert answers.needs == []
    # This round trip counts no intent, although an earlier round trip counted one.
    assert heartbeat.counted == []


@pytest.mark.parametrize(
    ("is_served", "status", "locked", "ticks", "counted"),
    [
        (False, IntentStatus.PENDING, True, 1, True),
        # An earlier round trip of the heartbeat counted the intent.
        (True, IntentStatus.PENDING, True, 0, False),
        (False, IntentStatus.COMPLETED, False, 0, True),
    ],
)
def test_an_intent_is_locked_and_counts_its_heartbeat_once(
    is_served: bool, status: IntentStatus, locked: bool, ticks: int, counted: bool
) -> None:
    intent = intent_row(REEF, status=status)
    key = str(intent.id)
    backlog = backlog_of(goal_row("reef"), intents=[intent])
    before = [key] if is_served else []
    heartbeat, _ = run_with_backlog(
        store_decompositions, heartbeat_of(decisions=[decision_on(intent.id)], served=before), backlog
    )

    assert (intent.locked_by == HEARTBEAT, intent.ticks_used) == (locked, ticks)
    assert heartbeat.served == [key]
    assert heartbeat.counted == ([key] if counted else [])


def test_a_reply_plans_goals_and_lists_invalid_plans() -> None:
    backlog = backlog_of(goal_row("reef"), goal_row("harbours", state=GoalState.QUEUED))
    step = Intention(action="recall", description="look it up", estimated_ticks=2)
    reply = Reply(
        decompositions=[
            Decomposition(goal_id=str(REEF.id), intentions=[step], dependencies=["a boat"], risk=0.3),
            Decomposition(goal_id=MISSING_ID, intentions=[step]),
            Decomposition(goal_id=str(goal_row("harbours").id), intentions=[step]),
        ],
        item_paths={"decompositions": ["decompositions[1]", "decompositions[2]", "decompositions[3]"]},
    )
    heartbeat, _ = run_with_backlog(store_decompositions, heartbeat_of(reply=reply), backlog)

    assert changes_of(heartbeat) == [
        ("Chart the reef", "planned"),
        (MISSING_ID, "refused"),
        ("Chart the harbours", "refused"),
    ]
    assert heartbeat.present.goal_changes[0].change == "recall: look it up"
    # The paths are those of the reply as the model gave it.
    assert [item.path for item in heartbeat.present.dropped] == ["decompositions[2]", "decompositions[3]"]
    assert heartbeat.effects.backlog is backlog
    assert backlog.goal(REEF.id).effort == 1


def test_a_dropped_procedure_of_a_plan_is_named_by_its_path() -> None:
    step = Intention(action="recall", description="look it up", follows=MISSING_ID)
    reply = Reply(
        decompositions=[Decomposition(goal_id=str(REEF.id), intentions=[step])],
        item_paths={
            "decompositions": ["decompositions[1]"],
            "decompositions[1].intentions": ["decompositions[1].intentions[2]"],
        },
    )
    answers = Answers({OpenBacklog: backlog_of(goal_row("reef")), OwnMemories: frozenset()})
    heartbeat = answers.run(store_decompositions(heartbeat_of(reply=reply))).state

    (dropped,) = heartbeat.present.dropped
    assert (dropped.path, dropped.value) == ("decompositions[1].intentions[2].follows", MISSING_ID)


def test_a_refused_plan_counts_no_heartbeat() -> None:
    backlog = backlog_of(goal_row("reef"))
    plan = Decomposition(
        goal_id=str(REEF.id), intentions=[Intention(action="recall", description="look it up")]
    )
    heartbeat, _ = run_with_backlog(
        store_decompositions, heartbeat_of(reply=Reply(decompositions=[plan])), backlog
    )
    later = heartbeat_of(reply=Reply(decompositions=[plan]))
    heartbeat, _ = run_with_backlog(store_decompositions, later, backlog)

    assert [kind for _, kind in changes_of(heartbeat)] == ["refused"]
    assert backlog.goal(REEF.id).effort == 1


# --- After the actions ---------------------------------------------------------------------------------


def actions_of(*records: Any) -> list[ProposedAction]:
    """Return the proposed actions of these records."""
    decisions = [record.decision for record in records]
    return [ProposedAction(action=decision.action) for decision in decisions if not decision.by_approval]


def run_goals(*records: Any, intents: Any = (), **changes: Any) -> tuple[HeartbeatState, Backlog]:
    """Run `goals` after these actions, with intents locked where their actions ran."""
    ran = {record.decision.intent_id for record in records if record.decision.runs}
    keys = [str(intent.id) for intent in intents if str(intent.id) in ran]
    for intent in intents:
        if str(intent.id) in ran:
            intent.status, intent.locked_by, intent.ticks_used = IntentStatus.LOCKED, HEARTBEAT, 1
    backlog = backlog_of(goal_row("reef"), intents=intents)
    values: dict[str, Any] = {
        "present": RoundTripRecord(action_records=list(records)),
        "served": keys,
        "counted": keys,
        "reply": Reply(actions=actions_of(*records)),
    }
    heartbeat, _ = run_with_backlog(goals, heartbeat_of(**(values | changes)), backlog)
    return heartbeat, backlog


def record_on_intent(action: str = "recall", **changes: Any) -> Any:
    return action_record_of(action, intent_id=str(UUID(int=300)), cost=1, **changes)


@pytest.mark.parametrize(
    ("record", "status", "attempts", "ticks", "kinds"),
    [
        (record_on_intent(), IntentStatus.COMPLETED, 1, 1, ["progressed"]),
        (record_on_intent(outcome=ActionOutcome.FAILURE), IntentStatus.PENDING, 1, 1, ["progressed"]),
        (record_on_intent(outcome=ActionOutcome.PARTIAL), IntentStatus.COMPLETED, 1, 1, ["progressed"]),
        # Whether the action ran is not known, so the step is not done.
        (record_on_intent(outcome=ActionOutcome.UNKNOWN), IntentStatus.PENDING, 1, 1, ["progressed"]),
        # A blocked action was not tried: neither the attempt nor the heartbeat counts.
        (record_on_intent(outcome=ActionOutcome.BLOCKED), IntentStatus.PENDING, 0, 0, []),
        (
            record_on_intent(verdict=DecisionVerdict.TOO_LITTLE_ENERGY, outcome=ActionOutcome.BLOCKED),
            IntentStatus.PENDING,
            0,
            0,
            [],
        ),
        # Another action than the intent's: the intent is released untried.
        (record_on_intent("reflect"), IntentStatus.PENDING, 0, 0, ["refused"]),
        (record_on_intent("rest"), IntentStatus.PENDING, 0, 0, ["refused"]),
    ],
)
def test_an_intent_ends_as_its_action_did(
    record: Any, status: IntentStatus, attempts: int, ticks: int, kinds: list[str]
) -> None:
    intent = intent_row(REEF)
    heartbeat, _ = run_goals(record, intents=[intent])

    assert (intent.status, intent.attempts, intent.ticks_used) == (status, attempts, ticks)
    assert [kind for _, kind in changes_of(heartbeat)] == kinds
    # A later round trip may count an intent that was released untried.
    assert heartbeat.served == ([] if ticks == 0 else [str(intent.id)])


def test_an_intent_whose_action_is_put_off_after_its_lock_is_released() -> None:
    intent = replace(intent_row(REEF), status=IntentStatus.LOCKED, locked_by=HEARTBEAT, ticks_used=1)
    postponed = record_on_intent(verdict=DecisionVerdict.AWAITS_APPROVAL, outcome=ActionOutcome.BLOCKED)
    keys = [str(intent.id)]
    heartbeat, _ = run_goals(postponed, intents=[intent], served=keys, counted=keys)

    assert (intent.status, intent.locked_by, intent.attempts, intent.ticks_used) == (
        IntentStatus.PENDING,
        None,
        0,
        0,
    )
    assert heartbeat.served == []


@pytest.mark.parametrize(
    ("outcome", "practised"),
    [
        (ActionOutcome.SUCCESS, True),
        (ActionOutcome.FAILURE, False),
        (ActionOutcome.PARTIAL, None),
        (ActionOutcome.UNKNOWN, None),
    ],
)
def test_only_a_known_outcome_counts_for_a_procedure(outcome: ActionOutcome, practised: bool | None) -> None:
    procedure = UUID(int=7)
    heartbeat, _ = run_goals(
        record_on_intent(outcome=outcome), intents=[replace(intent_row(REEF), procedure_id=procedure)]
    )
    assert heartbeat.effects.practised == (() if practised is None else ((procedure, practised),))


def test_an_intent_of_an_action_that_does_not_exist_fails_for_good() -> None:
    intent = intent_row(REEF, "fly")
    refused = record_on_intent("fly", verdict=DecisionVerdict.UNKNOWN, outcome=ActionOutcome.BLOCKED)
    run_goals(refused, intents=[intent])
    assert intent.status is IntentStatus.FAILED


def test_actions_for_one_goal_count_as_one_progress() -> None:
    records = [
        action_record_of("recall", goal_id=str(REEF.id)),
        action_record_of("recall", index=1, goal_id=str(REEF.id)),
        action_record_of("reflect", index=2, goal_id=str(REEF.id)),
        action_record_of("rest", index=3, goal_id=str(REEF.id)),
        action_record_of("recall", index=4, goal_id=MISSING_ID),
        action_record_of("recall", index=5, goal_id=str(REEF.id), outcome=ActionOutcome.FAILURE),
    ]
    heartbeat, backlog = run_goals(*records)

    assert changes_of(heartbeat) == [("Chart the reef", "progressed")]
    assert heartbeat.present.goal_changes[0].change == "by recall, reflect"
    assert [item.path for item in heartbeat.present.dropped] == ["actions[4].goal_id"]
    assert backlog.goal(REEF.id).effort == 1


def test_the_paths_of_actions_are_those_of_their_own_reply() -> None:
    intent = intent_row(REEF, "reflect")
    approved, *proposed = [
        action_record_of("recall", index=2, goal_id=MISSING_ID),
        action_record_of("recall", index=3, goal_id=MISSING_ID),
        action_record_of("recall", index=4, intent_id=str(intent.id)),
    ]
    approved = replace(approved, decision=approved.decision.model_copy(update={"by_approval": True}))
    earlier = RoundTripRecord(action_records=[action_record_of("rest"), action_record_of("rest", index=1)])
    reply = Reply(actions=actions_of(*proposed), item_paths={"actions": ["actions[1]", "actions[2]"]})
    heartbeat, _ = run_goals(approved, *proposed, intents=[intent], earlier=earlier, reply=reply)

    assert [item.path for item in heartbeat.present.dropped] == [
        "actions[2].intent_id",
        "approved recall.goal_id",
        "actions[1].goal_id",
    ]


def test_the_paths_of_actions_are_those_of_the_last_of_merged_replies() -> None:
    earlier = [action_record_of("rest"), action_record_of("rest", index=1)]
    last = [action_record_of("recall", index=number, goal_id=MISSING_ID) for number in (2, 3)]
    reply = merge_replies(
        Reply(actions=actions_of(*earlier), item_paths={"actions": ["actions[3]", "actions[4]"]}),
        Reply(actions=actions_of(*last)),
    )
    heartbeat, _ = run_goals(*last, earlier=RoundTripRecord(action_records=earlier), reply=reply)

    assert [item.path for item in heartbeat.present.dropped] == ["actions[0].goal_id", "actions[1].goal_id"]


def test_actions_that_the_reply_lacks_are_named_by_their_places() -> None:
    records = [action_record_of("recall", index=number, goal_id=MISSING_ID) for number in (0, 1)]
    heartbeat, _ = run_goals(*records, reply=Reply(actions=actions_of(records[0])))

    assert [item.path for item in heartbeat.present.dropped] == ["actions[0].goal_id", "actions[1].goal_id"]


def test_a_goal_of_an_earlier_round_trip_is_not_counted_again() -> None:
    before = GoalChange(goal_id=str(REEF.id), title=REEF.title, kind=GoalChangeKind.PROGRESSED, change="x")
    heartbeat, backlog = run_goals(
        action_record_of("recall", goal_id=str(REEF.id)),
        earlier=RoundTripRecord(goal_changes=[before]),
        round_trip=2,
    )
    assert (changes_of(heartbeat), backlog.goal(REEF.id).effort) == ([], 0)


@pytest.mark.parametrize(
    ("update", "kinds", "state"),
    [
        ({"progress": 0.5, "note": "half"}, ["progressed"], GoalState.ACTIVE),
        ({"progress": 1}, ["progressed", "completed"], GoalState.COMPLETED),
        ({"state": "queued"}, ["moved"], GoalState.QUEUED),
        ({"state": "abandoned", "reason": "no boat"}, ["abandoned"], GoalState.ABANDONED),
        ({"state": "abandoned"}, ["refused"], GoalState.ACTIVE),
        ({"blocked_by": "fog"}, ["blocked"], GoalState.ACTIVE),
        ({"blocked_by": ""}, [], GoalState.ACTIVE),
        ({"state": "active"}, [], GoalState.ACTIVE),
        # In this order: a goal that is closed may have progressed before.
        ({"note": "the end", "state": "completed"}, ["progressed", "completed"], GoalState.COMPLETED),
    ],
)
def test_a_reply_updates_goals(update: dict[str, Any], kinds: list[str], state: GoalState) -> None:
    row = goal_row("reef")
    backlog = backlog_of(row)
    reply = Reply(goal_updates=[GoalUpdate.model_validate({"goal_id": str(row.id), **update})])
    heartbeat, _ = run_with_backlog(goals, heartbeat_of(reply=reply), backlog)

    assert [kind for _, kind in changes_of(heartbeat)] == kinds
    assert row.state is state


@pytest.mark.parametrize(
    ("update", "kinds", "paths"),
    [
        (
            {"progress": 0.5, "met": ["a boat"], "state": "queued"},
            ["progressed", "refused", "moved"],
            ["goal_updates[0].met[0]"],
        ),
        ({"note": "half", "state": "abandoned"}, ["progressed", "refused"], ["goal_updates[0].state"]),
        (
            {"note": "half", "blocked_by": str(REEF.id)},
            ["progressed", "refused"],
            ["goal_updates[0].blocked_by"],
        ),
        ({"met": ["a boat"], "state": "queued"}, ["refused", "moved"], ["goal_updates[0].met[0]"]),
    ],
)
def test_the_refused_parts_of_an_update_are_dropped(
    update: dict[str, Any], kinds: list[str], paths: list[str]
) -> None:
    reply = Reply(goal_updates=[GoalUpdate.model_validate({"goal_id": str(REEF.id), **update})])
    heartbeat, _ = run_with_backlog(goals, heartbeat_of(reply=reply), backlog_of(goal_row("reef")))

    assert [kind for _, kind in changes_of(heartbeat)] == kinds
    assert [item.path for item in heartbeat.present.dropped] == paths


def test_the_reason_for_a_completion_is_recorded() -> None:
    row = goal_row("reef")
    update = GoalUpdate(goal_id=str(row.id), progress=1, note="sounded", reason="the chart is drawn")
    heartbeat, _ = run_with_backlog(goals, heartbeat_of(reply=Reply(goal_updates=[update])), backlog_of(row))
    changes = [change.change for change in heartbeat.present.goal_changes]
    assert changes == ["100% done: sounded", "the chart is drawn"]


def test_a_reply_adds_goals_and_lists_refused_ones() -> None:
    backlog = backlog_of(goal_row("reef"))
    reply = Reply(
        new_goals=[ProposedGoal(title="Count the lamps"), ProposedGoal(title="Chart the reef")],
        goal_updates=[GoalUpdate(goal_id=MISSING_ID, progress=0.5)],
        item_paths={"new_goals": ["new_goals[1]", "new_goals[2]"]},
    )
    heartbeat, _ = run_with_backlog(goals, heartbeat_of(reply=reply), backlog)

    assert changes_of(heartbeat) == [
        ("Count the lamps", "created"),
        ("Chart the reef", "refused"),
        (MISSING_ID, "refused"),
    ]
    assert [item.path for item in heartbeat.present.dropped] == ["new_goals[2]", "goal_updates[0]"]


def test_a_heartbeat_that_changes_no_goal_loads_no_backlog() -> None:
    heartbeat = heartbeat_of(
        present=RoundTripRecord(action_records=[action_record_of("recall")]), reply=Reply()
    )
    same, answers = run_with_backlog(goals, heartbeat, None)
    assert (same is heartbeat, answers.needs) == (True, [])


def test_a_goal_is_reached_with_all_its_parts() -> None:
    coast = goal_row("coast", id=UUID(int=250))
    reef = goal_row("reef", parent_id=coast.id)
    reply = Reply(goal_updates=[GoalUpdate(goal_id=str(reef.id), progress=1)])
    heartbeat, _ = run_with_backlog(goals, heartbeat_of(reply=reply), backlog_of(coast, reef))
    assert changes_of(heartbeat) == [
        ("Chart the reef", "progressed"),
        ("Chart the reef", "completed"),
        ("Chart the coast", "completed"),
    ]
