"""Entries of a heartbeat's actions: stored without usual values, read with all keys."""

from __future__ import annotations

from arbor.heartbeat.decision import Decision, DecisionVerdict
from arbor.heartbeat.results import ActionOutcome, ActionRecord, action_result, complete_entry


def _record(**values: object) -> ActionRecord:
    decision = Decision(index=0, action="rest", params={}, verdict=DecisionVerdict.RUN, **values)
    return ActionRecord(decision=decision, result=action_result(decision, ActionOutcome.SUCCESS, "rested"))


def test_usual_values_are_not_stored() -> None:
    assert _record().to_json() == {
        "index": 0,
        "action": "rest",
        "params": {},
        "verdict": "run",
        "cost": 0,
        "outcome": "success",
        "summary": "rested",
    }


def test_a_summary_is_one_line() -> None:
    decision = _record(ignored=["no\nmood"]).decision
    result = action_result(decision, ActionOutcome.SUCCESS, "recalled nothing about “the\n\nferry”")
    assert result.summary == "recalled nothing about “the ferry”; without effect: no mood"


def test_other_values_are_stored_and_read_unchanged() -> None:
    entry = _record(goal_id="g", by_approval=True, ignored=["x"]).to_json()
    assert (entry["goal_id"], entry["by_approval"], entry["ignored"]) == ("g", True, ["x"])
    assert complete_entry(entry)["ignored"] == ["x"]


def test_read_entries_are_whole_and_in_the_order_of_jsonb() -> None:
    record = _record(reason="tired")
    whole = {**record.decision.model_dump(mode="json"), **record.result.model_dump(mode="json")}
    entry = complete_entry(record.to_json())
    assert entry == whole
    assert list(entry) == sorted(whole, key=lambda name: (len(name), name))


def test_entries_of_older_versions_have_the_names_of_today() -> None:
    match = {"boundary": "no_harm", "response": "flag", "why": "it says hurt"}
    entry = complete_entry({"action": "rest", "crossed": [match], "turn": 2})
    assert (entry["boundary_matches"], entry["round_trip"]) == ([match], 2)
    assert entry.keys() == complete_entry({"action": "rest", "round_trip": 2}).keys()


def test_entries_share_no_lists() -> None:
    complete_entry({})["ignored"].append("x")
    assert complete_entry({})["ignored"] == []
