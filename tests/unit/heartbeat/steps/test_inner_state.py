"""Feeling: effects on mood, drives, experiences and peers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.guards import ItemBoundaryMatch
from arbor.heartbeat.inputs import Selfhood
from arbor.heartbeat.needs import Meetings
from arbor.heartbeat.replies.reply import PeerNote, PeerOutcome, Reply
from arbor.heartbeat.results import ActionOutcome, GoalChange, GoalChangeKind, RoundTripRecord
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.inner_state import feel
from arbor.heartbeat.views import ActionTallyView, MatchedBoundary
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.drives import Drive, Drives, DriveState, read_drives
from arbor.selves.emotions import USUAL, Event, Mood
from tests.unit.heartbeat.builders import NOW, goal, percept, situation
from tests.unit.heartbeat.state_builders import (
    HEARTBEAT,
    HOUR,
    Answers,
    action_record_of,
    heartbeat_of,
    run_step,
)

#: Experience with every action: no action is new.
KNOWN = [
    ActionTallyView(action=name, attempts=4, successes=4)
    for name in ("recall", "reflect", "rest", "connect", "reach_out_user")
]


def run_feel(
    *records: Any, refused_notes: Any = (), view: dict[str, Any] | None = None, **changes: Any
) -> HeartbeatState:
    values: dict[str, Any] = {
        "situation": situation(**{"capabilities": KNOWN, **(view or {})}),
        "present": RoundTripRecord(action_records=list(records)),
        "reply": Reply(),
    }
    return run_step(feel(heartbeat_of(**(values | changes))), {Meetings: [*refused_notes]}).state


def boundary_match(
    response: BoundaryResponse = BoundaryResponse.REFUSE, name: str = "no_harm"
) -> MatchedBoundary:
    return MatchedBoundary(boundary=name, response=response, description="I do not hurt", why="it says hurt")


def goal_change(kind: GoalChangeKind, *, by_rule: bool = False) -> GoalChange:
    return GoalChange(kind=kind, title="x", change="y", by_rule=by_rule)


def refused_record(*matches: MatchedBoundary) -> Any:
    record = action_record_of("recall", verdict=DecisionVerdict.BOUNDARY, outcome=ActionOutcome.BLOCKED)
    decision = record.decision.model_copy(update={"boundary_matches": [*matches]})
    return type(record)(decision=decision, result=record.result)


@pytest.mark.parametrize(
    ("records", "changes", "view", "reply", "events"),
    [
        ([], [], {}, {}, []),
        ([action_record_of("rest")], [], {}, {}, [Event.REST]),
        ([action_record_of("recall", cost=1)], [], {}, {}, [Event.SUCCESS]),
        ([action_record_of("recall", outcome=ActionOutcome.FAILURE)], [], {}, {}, [Event.FAILURE]),
        ([action_record_of("recall", outcome=ActionOutcome.PARTIAL)], [], {}, {}, []),
        ([action_record_of("reach_out_user", cost=5)], [], {}, {}, [Event.REACH_OUT]),
        ([], [goal_change(GoalChangeKind.COMPLETED)], {}, {}, [Event.GOAL_DONE]),
        # A goal change by rule is no action of the agent.
        ([], [goal_change(GoalChangeKind.COMPLETED, by_rule=True)], {}, {}, []),
        ([], [], {"percepts": [percept()]}, {}, [Event.CONTACT]),
        ([], [], {"percepts": [percept(kind="environment")]}, {}, []),
        ([], [], {}, {"concerns": ["wind"]}, [Event.CONCERN]),
        # A boundary matched twice counts once; a flag has no effect.
        (
            [refused_record(boundary_match())],
            [],
            {"boundary_matches": [boundary_match()]},
            {},
            [Event.BLOCKED, Event.BOUNDARY],
        ),
        ([], [], {"boundary_matches": [boundary_match(BoundaryResponse.FLAG)]}, {}, []),
        (
            [refused_record(boundary_match(), boundary_match(BoundaryResponse.FLAG, "resource_limit"))],
            [],
            {},
            {},
            [Event.BLOCKED, Event.BOUNDARY],
        ),
    ],
)
def test_events_of_a_heartbeat_move_the_mood(
    records: list[Any],
    changes: list[GoalChange],
    view: dict[str, Any],
    reply: dict[str, Any],
    events: list[Event],
) -> None:
    heartbeat = run_feel(
        present=RoundTripRecord(action_records=records, goal_changes=changes), view=view, reply=Reply(**reply)
    )

    calm = Mood(valence=USUAL.valence, arousal=USUAL.arousal, at=NOW)
    mood = calm.moved(events)
    assert (heartbeat.emotional_valence, heartbeat.arousal) == pytest.approx((mood.valence, mood.arousal))
    # The heartbeat's own share, for the commit: a conversation may move the mood meanwhile.
    assert heartbeat.moved is not None
    assert (heartbeat.moved.valence, heartbeat.moved.arousal) == pytest.approx(
        (mood.valence - calm.valence, mood.arousal - calm.arousal)
    )
    assert heartbeat.state.mood is not None
    assert heartbeat.state.mood["valence"] == heartbeat.emotional_valence


def test_a_mood_fades_to_the_usual_mood_before_it_moves() -> None:
    mood = {"valence": -1.0, "arousal": 0.9, "at": (NOW - 100 * HOUR).isoformat()}
    heartbeat = run_feel(selfhood=Selfhood(mood=mood, tone="warm"))
    assert (heartbeat.emotional_valence, heartbeat.arousal) == pytest.approx((0.25, 0.3), abs=1e-3)


@pytest.mark.parametrize(
    ("record", "drive", "by"),
    [
        (action_record_of("recall", cost=1), Drive.CURIOSITY, 0.2),
        (action_record_of("reflect", cost=2), Drive.COHERENCE, 0.2),
        (action_record_of("rest"), Drive.REST, 0.4),
        (action_record_of("recall", cost=1, outcome=ActionOutcome.FAILURE), Drive.CURIOSITY, 0.0),
    ],
)
def test_an_action_that_worked_satisfies_a_drive(record: Any, drive: Drive, by: float) -> None:
    states = {drive: DriveState(level=1.0, at=NOW) for drive in Drive}
    heartbeat = run_feel(record, selfhood=Selfhood(drives=Drives(states=states).model_dump(mode="json")))
    drives = read_drives(heartbeat.state.drives or {}, NOW)
    assert drives.level(drive, NOW) == pytest.approx(1.0 - by)


@pytest.mark.parametrize(
    ("records", "view", "stale"),
    [
        ([], {"stale_heartbeats": 3}, 4),
        ([action_record_of("recall", cost=1)], {"stale_heartbeats": 3}, 4),
        ([action_record_of("recall", cost=1)], {"stale_heartbeats": 3, "capabilities": []}, 0),
        ([], {"stale_heartbeats": 3, "percepts": [percept()]}, 0),
        ([], {"stale_heartbeats": 3, "percepts": [percept(kind="action_result")]}, 4),
    ],
)
def test_heartbeats_without_anything_new_are_counted(
    records: list[Any], view: dict[str, Any], stale: int
) -> None:
    assert run_feel(*records, view=view).state.stale_heartbeats == stale


@pytest.mark.parametrize(
    ("rule", "kind", "stale"),
    [
        ("curiosity", GoalChangeKind.COMPLETED, 0),
        ("curiosity", GoalChangeKind.ABANDONED, 0),
        ("curiosity", GoalChangeKind.PROGRESSED, 31),
        ("", GoalChangeKind.COMPLETED, 31),
    ],
)
def test_the_end_of_the_goal_to_explore_begins_the_count_anew(
    rule: str, kind: GoalChangeKind, stale: int
) -> None:
    change = GoalChange(kind=kind, goal_id="goal-reef", title="x", change="y")
    heartbeat = run_feel(
        view={"stale_heartbeats": 30, "goals": [goal("reef", rule=rule)]},
        present=RoundTripRecord(goal_changes=[change]),
    )
    assert heartbeat.state.stale_heartbeats == stale


def test_success_counts_and_lessons_of_actions_are_recorded() -> None:
    records = [
        action_record_of("recall", cost=1, outcome=ActionOutcome.FAILURE, params={"query": "ferries"}),
        action_record_of("recall", cost=1, index=1),
        action_record_of("rest", index=2),
        action_record_of("fly", index=3, outcome=ActionOutcome.BLOCKED),
    ]
    heartbeat = run_feel(*records, selfhood=Selfhood(learned={"recall": [4, 4]}))

    assert heartbeat.state.learned == {"recall": [6, 5], "rest": [1, 1]}
    taught = [
        (item.action, item.about, item.outcome.value, item.lesson) for item in heartbeat.effects.experiences
    ]
    # Free actions teach no lesson.
    assert taught == [
        ("recall", "ferries", "failure", "Avoid doing recall (ferries) the same way again: recall worked"),
        ("recall", "", "success", ""),
    ]


@pytest.mark.parametrize(
    ("params", "about"),
    [
        ({"goal_id": "goal-reef", "state": "active"}, "Chart the reef"),
        ({"goal_id": str(HEARTBEAT), "state": "active"}, ""),
        ({"target": "cluster", "id": "the tides at night", "verdict": "keep"}, "the tides at night"),
    ],
)
def test_a_lesson_is_about_a_subject_not_a_choice(params: dict[str, Any], about: str) -> None:
    record = action_record_of("maintain", cost=1, outcome=ActionOutcome.FAILURE, params=params)
    heartbeat = run_feel(record, view={"goals": [goal("reef", title="Chart the reef")]})

    assert [experience.about for experience in heartbeat.effects.experiences] == [about]


def test_boundary_matches_of_all_sources_are_audited() -> None:
    refused = ItemBoundaryMatch(
        path="memory_notes[0]", value="{}", boundary_match=boundary_match(), reason="no"
    )
    accepted = ItemBoundaryMatch(
        path="memory_notes[1]",
        value="{}",
        boundary_match=boundary_match(BoundaryResponse.FLAG, "resource_limit"),
    )
    heartbeat = run_feel(
        refused_record(boundary_match()),
        view={"boundary_matches": [boundary_match()]},
        boundary_matches=[refused, accepted],
    )

    messages = [note.message for note in heartbeat.effects.audit]
    assert messages == [
        "what reached it touches no_harm (refuse): it says hurt",
        "recall refused at no_harm (refuse): it says hurt",
        "memory_notes[0] not taken at no_harm (refuse): it says hurt",
        "memory_notes[1] taken at resource_limit (flag): it says hurt",
    ]
    assert {note.action for note in heartbeat.effects.audit} == {"boundary"}
    assert all(note.detail["heartbeat_id"] == str(HEARTBEAT) for note in heartbeat.effects.audit)
    assert heartbeat.effects.audit[1].detail["verdict"] == "boundary"


# --- Meetings ------------------------------------------------------------------------------------------

TOM = percept(kind="peer_message", peer="Old Tom", peer_id=str(UUID(int=5)))


def note(peer: str, outcome: PeerOutcome = PeerOutcome.SUCCESS) -> PeerNote:
    return PeerNote(peer=peer, outcome=outcome)


@pytest.mark.parametrize(
    ("percepts", "notes", "contact", "met", "others"),
    [
        ([], [], None, None, None),
        ([TOM], [], None, [("Old Tom", None)], []),
        ([TOM], [note("old tom")], None, [("Old Tom", note("old tom"))], []),
        ([TOM], [note(str(UUID(int=5)))], None, [("Old Tom", note(str(UUID(int=5))))], []),
        ([percept()], [], None, [("user", None)], []),
        # A user who was in touch in another way.
        ([], [note("user")], NOW, [], [note("user")]),
        # A person before an agent of the same name.
        (
            [percept(kind="peer_message", peer="user", peer_id=str(UUID(int=5))), percept()],
            [note("user")],
            NOW,
            [("user", note("user")), ("user", None)],
            [],
        ),
        ([], [note("user")], None, [], [note("user")]),
        (
            [TOM],
            [note("Bo"), note("bo"), note("Old Tom")],
            None,
            [("Old Tom", note("Old Tom"))],
            [note("Bo"), note("bo")],
        ),
        ([], [note(" ")], None, None, None),
    ],
)
def test_senders_are_recorded_as_met_with_notes_about_others(
    percepts: list[Any], notes: list[PeerNote], contact: Any, met: Any, others: Any
) -> None:
    answers = Answers({Meetings: []})
    view = situation(percepts=percepts, capabilities=KNOWN)
    heartbeat = heartbeat_of(
        situation=view, reply=Reply(peer_notes=notes), selfhood=Selfhood(contact=contact)
    )
    answers.run(feel(heartbeat))

    if met is None:
        assert answers.needs == []
        return
    (need,) = answers.needs
    assert (need.heartbeat_number, need.contact) == (3, contact)
    assert [(meeting.name, meeting.note) for meeting in need.met] == met
    # Of several notes about one peer, the first counts; the others are refused.
    assert list(need.others) == others


def test_an_unusable_peer_note_is_dropped_with_its_reason() -> None:
    stranger = note("Bo")
    heartbeat = run_feel(
        refused_notes=[(stranger, "Bo never wrote to you")], reply=Reply(peer_notes=[note("user"), stranger])
    )
    (dropped,) = heartbeat.present.dropped
    assert (dropped.path, dropped.reason) == ("peer_notes[1]", "Bo never wrote to you")


def test_equal_peer_notes_are_named_by_their_own_paths() -> None:
    first, second = note("Bo"), note("Bo")
    heartbeat = run_feel(
        refused_notes=[(second, "another note counts")],
        reply=Reply(
            peer_notes=[first, second], item_paths={"peer_notes": ["peer_notes[1]", "peer_notes[3]"]}
        ),
    )
    assert [item.path for item in heartbeat.present.dropped] == ["peer_notes[3]"]
