"""Following up: further round trips, and the merged heartbeat."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.replies.reply import MemoryNote, Reply
from arbor.heartbeat.results import RoundTripRecord
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.round_trips import follow_up, with_percepts_received
from arbor.models.token_estimates import estimate_tokens
from tests.unit.heartbeat.builders import NONCE, percept, situation
from tests.unit.heartbeat.state_builders import (
    CALL,
    Answers,
    action_record_of,
    heartbeat_of,
    moment_of,
    rules_of,
)

RECALLED = action_record_of("recall", brought="[m] Ines keeps it.", cost=1)
PERCEPTS = [percept(id=str(UUID(int=50)))]
SMALL_WINDOW = moment_of(rules=rules_of(model_context=8_192, reply_tokens=4_096))


def heartbeat_after_actions(**changes: Any) -> HeartbeatState:
    """Return a heartbeat whose first round trip ran actions with results to read."""
    values: dict[str, Any] = {
        "situation": situation(percepts=PERCEPTS, energy=10.0),
        "present": RoundTripRecord(action_records=[RECALLED], reasoning="Who?"),
        "reply": Reply(thinking="Who?", memory_notes=[MemoryNote(text="a note")]),
        "energy_end": 9.0,
        "round_trip": 1,
        "round_trips": 1,
        "round_trips_allowed": 3,
        "mark": NONCE,
        "call_id": CALL,
        "reply_text": "{}",
        "asked_tokens": 100,
        "vectors": {"a note": [1.0], "ferries": [2.0]},
        "decisions": [RECALLED.decision],
    }
    return heartbeat_of(**(values | changes))


def run_follow_up(heartbeat: HeartbeatState) -> tuple[HeartbeatState, tuple[str, ...]]:
    result = Answers().run(follow_up(heartbeat))
    return result.state, result.changed


def test_a_heartbeat_goes_on_with_the_results_of_its_actions() -> None:
    heartbeat, changed = run_follow_up(heartbeat_after_actions())

    assert changed == ("goes on to round trip 2",)
    assert (heartbeat.goes_on, heartbeat.round_trip, heartbeat.answered) == (True, 2, CALL)
    assert "Ines keeps it." in heartbeat.follow_up
    assert "9 energy left." in heartbeat.follow_up
    assert heartbeat.conversation_tokens > 100
    # The decisions of the round trip are cleared; its actions are recorded.
    assert (heartbeat.reply, heartbeat.decisions, heartbeat.action_records) == (None, [], [])
    assert heartbeat.earlier.action_records == [RECALLED]
    assert heartbeat.earlier_reply is not None
    assert heartbeat.earlier_reply.thinking == "Who?"
    assert (heartbeat.energy, heartbeat.situation_now.energy) == (9.0, 9.0)
    # The situation is stored already, and is not written again.
    assert heartbeat.situation.energy == 10.0
    assert (heartbeat.effects.received_percepts, heartbeat.percepts_received) == ((UUID(int=50),), True)


def test_a_further_round_trip_is_asked_with_the_dropped_items() -> None:
    dropped = [
        Dropped(path=f"goal_updates[{number}]", value="", reason="no such goal") for number in range(10)
    ]
    present = RoundTripRecord(action_records=[RECALLED], dropped=dropped)
    text = run_follow_up(heartbeat_after_actions(present=present))[0].follow_up
    assert "goal_updates[7]: no such goal" in text
    assert "and 2 more: goal_updates[8], goal_updates[9]" in text
    assert "not taken" not in run_follow_up(heartbeat_after_actions())[0].follow_up


@pytest.mark.parametrize(("embeds_here", "vectors"), [(False, {"a note": [1.0]}), (True, {})])
def test_vectors_of_notes_are_stored_unless_this_process_embeds(
    embeds_here: bool, vectors: dict[str, list[float]]
) -> None:
    heartbeat, _ = run_follow_up(heartbeat_after_actions(moment=moment_of(embeds_here=embeds_here)))
    assert heartbeat.vectors == vectors


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"round_trips_allowed": 1}, ()),
        ({"present": RoundTripRecord(action_records=[action_record_of("rest")])}, ()),
        ({"energy_end": 0.0}, ()),
        ({"asked_tokens": 31_900}, ("the model has no room for a further round trip",)),
        (
            {"moment": moment_of(rules=rules_of(model_context=200))},
            ("the model has no room for a further round trip",),
        ),
    ],
)
def test_a_heartbeat_ends_without_results_energy_or_room(
    changes: dict[str, Any], why: tuple[str, ...]
) -> None:
    heartbeat, changed = run_follow_up(heartbeat_after_actions(**changes))

    assert changed == why
    assert not heartbeat.goes_on
    assert heartbeat.reply_or_empty.thinking == "Who?"


def test_results_that_the_window_clips_are_audited() -> None:
    long = action_record_of("recall", brought="[m] Ines keeps it. " * 400, cost=1)
    present = RoundTripRecord(action_records=[long], reasoning="Who?")
    whole, _ = run_follow_up(heartbeat_after_actions(present=present))
    assert whole.effects.audit == ()

    # 8,192 tokens less a quarter for the reply and 5,000 for the prompt leave about 1,000.
    clipped, changed = run_follow_up(
        heartbeat_after_actions(present=present, moment=SMALL_WINDOW, asked_tokens=5_000)
    )

    assert changed == ("goes on to round trip 2",)
    (note,) = clipped.effects.audit
    before, after = estimate_tokens(whole.follow_up), estimate_tokens(clipped.follow_up)
    assert note.action == "truncated"
    assert note.detail["sources"] == {
        "results": {"tokens": before - after, "before": before, "after": after, "entries": 0}
    }


def test_results_without_room_for_a_round_trip_are_audited() -> None:
    whole, _ = run_follow_up(heartbeat_after_actions())
    ended, _ = run_follow_up(heartbeat_after_actions(asked_tokens=31_900))

    (note,) = ended.effects.audit
    tokens = estimate_tokens(whole.follow_up)
    lost = {"tokens": tokens, "before": tokens, "after": 0, "entries": 1}
    assert (note.action, note.detail["sources"]) == ("truncated", {"results": lost})


def test_results_beyond_the_limit_of_any_window_are_audited() -> None:
    long = [action_record_of(f"tool_{n}", index=n, brought="ferry " * 3_000, cost=1) for n in range(2)]
    large = moment_of(rules=rules_of(model_context=200_000))
    heartbeat, _ = run_follow_up(
        heartbeat_after_actions(present=RoundTripRecord(action_records=long), moment=large)
    )

    assert heartbeat.follow_up.count("(cut; 17999 characters in all)") == 2
    (note,) = heartbeat.effects.audit
    # 18,000 characters less 12,000, twice, at four characters a token.
    assert 2_900 < note.detail["tokens"] < 3_000


def test_results_of_many_lines_that_fit_are_not_audited() -> None:
    lines = action_record_of("recall", brought="\n".join(f"memory {n}" for n in range(5)), cost=1)
    heartbeat, _ = run_follow_up(heartbeat_after_actions(present=RoundTripRecord(action_records=[lines])))

    assert "memory 4" in heartbeat.follow_up
    assert not heartbeat.effects.audit


def test_passages_are_truncated_until_other_results_fit() -> None:
    figures = action_record_of("recall", brought="7" * 1_500, cost=1)
    found = action_record_of("search_knowledge", index=1, brought="lamps at dusk " * 1_500, cost=1)

    heartbeat, changed = run_follow_up(
        heartbeat_after_actions(
            present=RoundTripRecord(action_records=[figures, found]), moment=SMALL_WINDOW, asked_tokens=4_000
        )
    )

    assert changed == ("goes on to round trip 2",)
    assert "7" * 1_500 in heartbeat.follow_up
    assert 500 <= len(heartbeat.follow_up.partition("lamps at dusk")[2]) < 3_000


def test_the_round_trips_of_a_heartbeat_end_as_one_record() -> None:
    earlier = RoundTripRecord(action_records=[RECALLED], reasoning="Who?")
    present = RoundTripRecord(action_records=[action_record_of("rest", index=1)], reasoning="Ines.")
    heartbeat, _ = run_follow_up(
        heartbeat_after_actions(
            round_trip=2,
            round_trips=2,
            earlier=earlier,
            earlier_reply=Reply(thinking="Who?"),
            present=present,
            reply=Reply(thinking="Ines."),
        )
    )

    assert (heartbeat.goes_on, heartbeat.reply_or_empty.thinking) == (False, "Who?\n\nInes.")
    assert [record.result.action for record in heartbeat.whole.action_records] == ["recall", "rest"]
    # The energy at the beginning: the results contain the spending.
    assert heartbeat.situation.energy == 10.0


def test_a_round_trip_without_a_result_preserves_earlier_ones() -> None:
    heartbeat, changed = run_follow_up(
        heartbeat_after_actions(
            round_trip=2,
            failure="ModelTimeout: no answer",
            unreadable="x",
            earlier=RoundTripRecord(action_records=[RECALLED]),
            earlier_reply=Reply(thinking="Who?"),
            present=RoundTripRecord(reasoning="half a thought"),
            reply=None,
            goes_on=True,
        )
    )

    assert changed == ("round trip 2 came to nothing",)
    assert (heartbeat.goes_on, heartbeat.failure, heartbeat.unreadable) == (False, "", "")
    assert heartbeat.reply_or_empty.thinking == "Who?"
    assert heartbeat.whole.action_records == [RECALLED]
    assert heartbeat.whole.reasoning == ""
    (lost,) = heartbeat.present.dropped
    assert (lost.path, lost.reason) == ("round trip 2", "ModelTimeout: no answer")


def test_percepts_are_consumed_once() -> None:
    heartbeat = with_percepts_received(heartbeat_of(situation=situation(percepts=PERCEPTS)))
    assert (heartbeat.effects.received_percepts, heartbeat.percepts_received) == ((UUID(int=50),), True)
    assert with_percepts_received(heartbeat) is heartbeat
    without_percepts = heartbeat_of()
    assert with_percepts_received(without_percepts) is without_percepts
