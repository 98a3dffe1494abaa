"""Parsing of the items of a reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from arbor.heartbeat.replies.parsing import parse_reply
from arbor.heartbeat.replies.reply import Reply
from tests.unit.heartbeat.replies.reply_checks import WHOLE, assert_parsed, dropped_items, parse


def test_a_valid_reply_is_read_completely() -> None:
    parsed = parse_reply(json.dumps(WHOLE))

    assert parsed.reply.model_dump(mode="json") == {**WHOLE, "item_paths": {}}
    assert (parsed.dropped, parsed.repairs) == ((), ())


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"action": "recall", "params": {"query": "x"}}, {"action": "recall", "params": {"query": "x"}}),
        ({"type": "recall", "params": {"query": "x"}}, {"action": "recall", "params": {"query": "x"}}),
        ({"action": " Reach-Out User ", "params": {}}, {"action": "reach_out_user", "params": {}}),
        (
            {"action": "recall", "query": "x", "limit": 3},
            {"action": "recall", "params": {"query": "x", "limit": 3}},
        ),
        (
            {"action": "remember", "type": "semantic", "content": "x"},
            {"action": "remember", "params": {"type": "semantic", "content": "x"}},
        ),
        ({"action": "recall", "params": '{"query": "x"}'}, {"action": "recall", "params": {"query": "x"}}),
        ({"action": "recall", "params": "{'query': 'x'}"}, {"action": "recall", "params": {"query": "x"}}),
        ({"action": "recall", "parameters": {"query": "x"}}, {"action": "recall", "params": {"query": "x"}}),
        ({"action": "recall", "args": {"query": "x"}}, {"action": "recall", "params": {"query": "x"}}),
        ({"action": "rest", "params": None}, {"action": "rest", "params": {}}),
        ({"action": "rest"}, {"action": "rest", "params": {}}),
        ("rest", {"action": "rest", "params": {}}),
        # The server of a tool spells the tool's name, which may be long.
        (
            {"action": "mcp.my-server.getThe_weather_of_a_harbour_and_its_tides"},
            {"action": "mcp.my-server.getThe_weather_of_a_harbour_and_its_tides", "params": {}},
        ),
        (
            {"action": "rest", "goal_id": 7, "intent_id": "null"},
            {"action": "rest", "goal_id": "7", "intent_id": None},
        ),
        (
            {"action": "rest", "goal_id": "  ", "reasoning": None},
            {"action": "rest", "goal_id": None, "reasoning": ""},
        ),
    ],
)
def test_an_action_is_read_in_several_spellings(item: Any, expected: dict[str, Any]) -> None:
    parsed = parse({"actions": [item]})

    read = parsed.reply.actions[0].model_dump()
    assert {key: read[key] for key in expected} == expected
    assert parsed.dropped == ()


@pytest.mark.parametrize(
    ("item", "path", "reason"),
    [
        (7, "actions[0]", "an action is an object with the keys action and params"),
        (None, "actions[0]", "an action is an object"),
        ([], "actions[0]", "an action is an object"),
        ({}, "actions[0]", "an action names itself under the key action"),
        ({"params": {}}, "actions[0]", "an action names itself"),
        ({"action": None}, "actions[0]", "an action names itself"),
        ({"action": ""}, "actions[0]", "an action names itself"),
        ({"action": {"name": "rest"}}, "actions[0].action", "expected a text"),
        ({"action": "rest", "params": [1]}, "actions[0].params", "params are an object"),
        ({"action": "rest", "params": "soon"}, "actions[0].params", "params are an object"),
        (
            {"action": "rest", "params": {}, "mood": 1},
            "actions[0].mood",
            "unknown key; parameters belong under params",
        ),
        ({"action": "rest", "params": {}, "args": {}}, "actions[0].args", "unknown key"),
        ({"action": "rest", "reasoning": ["x"]}, "actions[0].reasoning", "expected a text"),
        ({"action": "rest", "goal_id": {"id": 1}}, "actions[0].goal_id", "expected a text"),
        (
            {"action": "rest", "reasoning": "x" * 1_200},
            "actions[0].reasoning",
            "cut to 1,000 characters, it had 1,200",
        ),
    ],
)
def test_errors_in_an_action_are_listed(item: Any, path: str, reason: str) -> None:
    parsed = parse({"actions": [item, {"action": "rest"}]})

    assert parsed.reply.actions[-1].action == "rest"
    assert (path, reason) in [(item[0], item[1][: len(reason)]) for item in dropped_items(parsed)]


@pytest.mark.parametrize(
    ("written", "progress", "reason"),
    [
        (0, 0.0, None),
        (0.4, 0.4, None),
        (1, 1.0, None),
        (1.0, 1.0, None),
        (2, 0.02, None),
        (40, 0.4, None),
        (62.5, 0.625, None),
        (100, 1.0, None),
        ("40%", 0.4, None),
        ("0.4", 0.4, None),
        ("1 %", 0.01, None),
        (None, None, None),
        (101, None, "expected a number from 0 to 1"),
        (-1, None, "expected a number"),
        (-0.1, None, "expected a number"),
        (True, None, "expected a number"),
        ("most", None, "expected a number"),
        ("nan", None, "expected a number"),
        ("1e999", None, "expected a number"),
        ([0.5], None, "expected a number"),
    ],
)
def test_progress_is_read_as_a_fraction_or_not_at_all(
    written: Any, progress: float | None, reason: str | None
) -> None:
    parsed = parse({"goal_updates": [{"goal_id": "g", "progress": written, "note": "n"}]})

    assert parsed.reply.goal_updates[0].progress == pytest.approx(progress)
    assert parsed.reply.goal_updates[0].note == "n"
    if reason is None:
        assert parsed.dropped == ()
    else:
        assert dropped_items(parsed)[0][0] == "goal_updates[0].progress"
        assert dropped_items(parsed)[0][1].startswith(reason)


@pytest.mark.parametrize(
    ("item", "expected", "dropped"),
    [
        ("noted", {"text": "noted"}, []),
        ({"text": "noted"}, {"text": "noted", "referenced_date": None}, []),
        ({"text": 7}, {"text": "7"}, []),
        (
            {"text": "n", "referenced_date": "2025-05-01T10:00:00Z"},
            {"referenced_date": "2025-05-01"},
            [],
        ),
        ({"text": "n", "referenced_date": ""}, {"referenced_date": None}, []),
        (
            {"text": "n", "referenced_date": "May 1"},
            {"referenced_date": None},
            ["memory_notes[0].referenced_date"],
        ),
        (
            {"text": "n", "referenced_date": 2025},
            {"referenced_date": None},
            ["memory_notes[0].referenced_date"],
        ),
        ({"text": "n", "mood": "glad"}, {"text": "n"}, ["memory_notes[0].mood"]),
        ({"text": " "}, None, ["memory_notes[0]"]),
        ([1], None, ["memory_notes[0]"]),
    ],
)
def test_a_memory_note_is_parsed_leniently(
    item: Any, expected: dict[str, Any] | None, dropped: list[str]
) -> None:
    assert_parsed("memory_notes", item, expected, dropped)


@pytest.mark.parametrize(
    ("value", "expected", "dropped"),
    [
        (["wind", "rain"], ["wind", "rain"], []),
        ([{"text": "wind"}], ["wind"], []),
        ("wind", ["wind"], []),
        ([1, "wind"], ["1", "wind"], []),
        (["", "wind"], ["wind"], ["concerns[0]"]),
        ([None, ["x"], "wind"], ["wind"], ["concerns[0]", "concerns[1].text", "concerns[1]"]),
        (None, [], []),
        (["a", "b", "c", "d", "e", "f", "g"], ["a", "b", "c", "d", "e"], ["concerns[5]"]),
    ],
)
def test_a_list_of_lines_is_read_line_by_line(value: Any, expected: list[str], dropped: list[str]) -> None:
    parsed = parse({"concerns": value})

    assert parsed.reply.concerns == expected
    assert [path for path, _ in dropped_items(parsed)] == dropped


@pytest.mark.parametrize(
    ("key", "item", "most"),
    [
        ("proposal_decisions", {"proposal_id": "p", "decision": "accept"}, 20),
        ("identity_insights", {"kind": "value", "content": "x"}, 5),
        ("peer_notes", {"peer": "Otto", "outcome": "success"}, 5),
        ("resolved", "wind", 10),
        ("decompositions", {"goal_id": "g", "intentions": [{"action": "rest", "description": "x"}]}, 3),
    ],
)
def test_each_list_is_truncated_to_its_limit(key: str, item: Any, most: int) -> None:
    parsed = parse({key: [item] * (most + 2)})

    assert len(getattr(parsed.reply, key)) == most
    assert dropped_items(parsed) == [(f"{key}[{most}]", f"at most {most} are taken; 2 are left over")]


def test_resolved_items_are_read_line_by_line() -> None:
    parsed = parse({"resolved": ["wind", {"text": "rain"}, None, " "]})

    assert parsed.reply.resolved == ["wind", "rain"]
    assert [path for path, _ in dropped_items(parsed)] == ["resolved[2]", "resolved[3]"]


def test_goals_and_intentions_beyond_three_are_dropped_and_counted() -> None:
    steps = [{"action": "recall", "description": str(n)} for n in range(5)]
    parsed = parse(
        {"new_goals": ["a", "b", "c", "d", "e"], "decompositions": [{"goal_id": "g", "intentions": steps}]}
    )

    assert [new.title for new in parsed.reply.new_goals] == ["a", "b", "c"]
    assert len(parsed.reply.decompositions[0].intentions) == 3
    assert dropped_items(parsed) == [
        ("new_goals[3]", "at most 3 are taken; 2 are left over"),
        ("decompositions[0].intentions[3]", "at most 3 are taken; 2 are left over"),
    ]


def test_an_invalid_item_does_not_count_against_the_limit() -> None:
    parsed = parse({"new_goals": [1, "a", {}, "b", None, "c"]})

    assert [new.title for new in parsed.reply.new_goals] == ["a", "b", "c"]
    assert len(parsed.dropped) == 3


def test_a_missing_key_is_read_as_empty_and_reported() -> None:
    parsed = parse_reply('{"thinking": "hm"}')

    assert parsed.reply == Reply(thinking="hm")
    assert parsed.repairs == tuple(
        f"the key '{key}' is missing; taken as empty" for key in ("actions", "memory_notes", "goal_updates")
    )


def test_an_unknown_key_is_listed() -> None:
    parsed = parse({"dreams": [{"id": 1}]})

    assert parsed.dropped[0].path == "dreams"
    assert parsed.dropped[0].reason.startswith("unknown key")
    assert parsed.dropped[0].value == '[{"id": 1}]'


def test_a_long_list_of_invalid_items_is_counted_by_reason() -> None:
    parsed = parse({"actions": [0] * 10_000})

    assert len(parsed.dropped) == 51
    reason = parsed.dropped[0].reason
    assert parsed.dropped[-1].reason == f"9,950 further items were dropped: {reason} (9,950)"
    assert [item.counts_others for item in parsed.dropped] == [False] * 50 + [True]


@pytest.mark.parametrize("number", [51, 52])
def test_only_the_count_of_further_items_counts_others(number: int) -> None:
    required = {"thinking": "hm", "actions": [0] * (number - 1)}
    *listed, last = parse_reply(f'{json.dumps(required)}\n{{"actions": []}}').dropped
    assert listed[0].path == ""
    assert not any(item.counts_others for item in listed)
    assert last.counts_others


def test_items_keep_their_paths_however_much_is_dropped() -> None:
    action = {"action": "rest", "params": {}} | {f"key{number}": 1 for number in range(60)}
    parsed = parse({"actions": [7, action], "new_goals": [7, "Sail"], "concerns": ["wind", 7, {}]})

    assert "new_goals[0]" not in [item.path for item in parsed.dropped]
    assert parsed.reply.item_paths == {"actions": ["actions[1]"], "new_goals": ["new_goals[1]"]}


def test_lists_of_dropped_items_have_no_paths() -> None:
    met = [{}, "a boat"]
    updates = [{"met": met}, {"goal_id": "g", "progress": 1, "met": met}, {"goal_id": "g", "met": met}]
    reply = parse({"goal_updates": updates}).reply
    completed, waiting = reply.goal_updates

    assert reply.paths_of("goal_updates", reply.goal_updates) == ["goal_updates[1]", "goal_updates[2]"]
    assert "goal_updates[0].met" not in reply.item_paths
    # The goal is completed, so that nothing is left of the list.
    assert reply.paths_of("goal_updates[1].met", completed.met) == []
    assert reply.paths_of("goal_updates[2].met", waiting.met) == ["goal_updates[2].met[1]"]


def test_a_single_item_over_a_limit_is_counted_in_the_singular() -> None:
    (dropped,) = parse({"concerns": ["wind"] * 6}).dropped
    assert dropped.reason == "at most 5 are taken; 1 is left over"


def test_a_dropped_value_is_truncated() -> None:
    parsed = parse({"mystery": "x" * 5_000})

    assert len(parsed.dropped[0].value) == 200
