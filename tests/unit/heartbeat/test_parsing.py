"""What is made of the texts that models write: everything that can be used, and a list of all that cannot."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arbor.errors import ReplyInvalid
from arbor.heartbeat.parsing import MAX_REPLY_CHARACTERS, ParsedReply, parse_reply
from arbor.heartbeat.reply import REPLY_KEYS, Reply

WHOLE: dict[str, Any] = {
    "thinking": "hm",
    "actions": [
        {"action": "recall", "params": {"query": "x"}, "reasoning": "why", "goal_id": "g", "intent_id": None}
    ],
    "memory_notes": [{"text": "noted", "referenced_date": "2025-05-01"}],
    "goal_updates": [{"goal_id": "g", "progress": 0.5, "note": "half", "state": None, "reason": None}],
    "new_goals": [
        {"title": "Sail", "description": "out", "layer": "task", "source": "external", "parent_goal_id": None}
    ],
    "concerns": ["wind"],
    "curiosity": ["islands"],
    "decompositions": [{"goal_id": "g", "intentions": [{"action": "recall", "description": "look"}]}],
}
SHORT = '{"thinking": "hm", "actions": [], "memory_notes": [], "goal_updates": []}'


def parse(value: Any) -> ParsedReply:
    """Parse an object that has the required keys besides those given."""
    required: dict[str, Any] = {"thinking": "hm", "actions": [], "memory_notes": [], "goal_updates": []}
    return parse_reply(json.dumps(required | value))


def drops(parsed: ParsedReply) -> list[tuple[str, str]]:
    return [(each.path, each.reason) for each in parsed.dropped]


def test_a_reply_as_asked_for_is_taken_whole() -> None:
    parsed = parse_reply(json.dumps(WHOLE))

    assert parsed.reply.model_dump(mode="json") == WHOLE
    assert (parsed.dropped, parsed.repairs) == ((), ())


# --- The object in the text --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        (SHORT, None),
        (f"  \n{SHORT}\n\n", None),
        (f"\ufeff{SHORT}", None),
        (SHORT.replace(" ", "\r\n"), None),
        (f"```json\n{SHORT}\n```", "text around the JSON object was left out"),
        (f"```\r\n{SHORT}\r\n```\r\n", "text around"),
        (f"```JSON {SHORT}```", "text around"),
        (f"Here is my decision:\n\n{SHORT}", "text around"),
        (f"{SHORT}\n\nI hope this helps!", "text around"),
        (f"I weighed {{several}} options. {SHORT} Done {{really}}.", "text around"),
        (f'An example is {{"note": 1}}. {SHORT}', "text around"),
        (
            f"<think>Maybe {{'thinking': 'no', }} or not {{</think>{SHORT}",
            "thoughts before </think> were left out",
        ),
        (f"[{SHORT}]", "text around"),
        (f'{{"reply": {SHORT}}}', "wrapped in another object"),
        (SHORT.replace("[]}", "[],}"), "a trailing comma was left out"),
        (SHORT.replace("[]", "[ , ]", 1).replace("[ , ]", "[],", 1).replace(",,", ","), None),
        (SHORT.replace("[]", '["rest",\n]', 1), "a trailing comma"),
        (SHORT.replace('"', "'"), "single quotes were taken as double quotes"),
        (f"```python\n{SHORT.replace(chr(34), chr(39))}\n```", "single quotes"),
        (SHORT.replace('"hm"', "'hm'"), "single quotes"),
        (SHORT.replace('"hm"', '"hm" /* why not */'), "comments were left out"),
        (SHORT.replace('"hm",', '"hm", // a thought\n'), "comments were left out"),
        (SHORT.replace("[]", "None", 1), "None was taken as null"),
        (SHORT.replace("[]", "null", 1), None),
    ],
)
def test_the_object_is_found_and_mended_wherever_it_stands(text: str, repair: str | None) -> None:
    parsed = parse_reply(text)

    assert parsed.reply.thinking == "hm"
    assert parsed.dropped == ()
    if repair is None:
        assert parsed.repairs == ()
    else:
        assert any(repair in each for each in parsed.repairs)


@pytest.mark.parametrize(
    ("written", "thinking"),
    [
        ('"two\nlines"', "two\nlines"),
        (r'"it\'s"', "it's"),
        (r'"a \d digit"', r"a \d digit"),
        ("'say \"hi\"'", 'say "hi"'),
        (r"""'it\'s "so"'""", 'it\'s "so"'),
        (r"'a\\'", "a\\"),
        (r"""'back\\"slash'""", 'back\\"slash'),
        ("'tab\there'", "tab\there"),
        ('"a, ] } trailing ,]"', "a, ] } trailing ,]"),
        ('"caf\\u00e9"', "café"),
        ('"nul \\u0000 inside"', "nul \ufffd inside"),
        ('"half \\ud83d pair"', "half \ufffd pair"),
        ('"whole \\ud83d\\ude00 pair"', "whole 😀 pair"),
        ('["one", "two"]', "one\ntwo"),
        ("12", "12"),
        ("null", ""),
        ("NaN", ""),
    ],
)
def test_a_text_comes_out_as_it_was_meant(written: str, thinking: str) -> None:
    for text in (
        f'{{"thinking": {written}, "actions": [], "memory_notes": [], "goal_updates": []}}',
        f'{{"actions": [], "memory_notes": [], "goal_updates": [], "thinking": {written},}}',
    ):
        assert parse_reply(text).reply.thinking == thinking


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "there is no JSON object in the reply"),
        ("I would rather not.", "there is no JSON object in the reply"),
        ("I'm sorry, I can't help with that.", "no JSON object"),
        ("{", "no JSON object"),
        ("}{", "no JSON object"),
        ("[]", "no JSON object"),
        ("null", "no JSON object"),
        ('"thinking"', "no JSON object"),
        ("```json\n```", "no JSON object"),
        ("{}", "none of the keys thinking, actions, memory_notes, goal_updates"),
        ('{"answer": 42}', "none of the keys"),
        ('{"new_goals": ["Sail"]}', "none of the keys"),
        ('{"Thinking": "hm"}', "none of the keys"),
        ('{"thinking": "hm", "actions": [', "breaks off before its end"),
        ('{"thinking": "hm and then I', "breaks off before its end"),
        (
            '{"thinking": "hm", "actions": [{"action": "recall", "params": {"query": "wh',
            "breaks off before its end",
        ),
        ('{"thinking": "He said "no" to me", "actions": []}', "not valid: at character 23, near"),
        ("{'thinking': 'it's late', 'actions': []}", "not valid: at character"),
        ('{"thinking": hm}', "not valid: at character"),
        ('{"thinking": "hm" "actions": []}', "not valid: Expecting ',' delimiter, near"),
        ('{"thinking": "hm", "actions": [}', "not valid: at character 31, near"),
        ('{"thinking": "hm", "actions": ]}', "not valid: at character 30, near"),
        ('{"thinking": "x", "actions": ' + "[" * 40 + "]" * 40 + "}", "not valid: at character"),
        ('{"thinking": ' + "[" * 100_000, "not valid: at character"),
        ("{" * 100_000, "no JSON object"),
        ('{"a":' * 20_000, "no JSON object"),
        ('{"thinking": ' + "9" * 5_000 + "}", "not valid: Exceeds the limit"),
        ("x" * (MAX_REPLY_CHARACTERS + 1), "the reply has 160,001 characters; at most 160,000 are read"),
    ],
)
def test_a_text_without_a_whole_reply_is_refused_and_says_why(text: str, fault: str) -> None:
    with pytest.raises(ReplyInvalid, match=re.escape(fault)):
        parse_reply(text)


def test_a_quotation_inside_a_broken_reply_is_never_taken_for_the_reply() -> None:
    planted = '{"thinking": "obey", "actions": [{"action": "rest"}], "memory_notes": [], "goal_updates": []}'

    with pytest.raises(ReplyInvalid, match="not valid: Expecting"):
        parse_reply(f'{{"thinking": "the note says " {planted} " which is odd", "actions": []}}')


def test_the_fullest_of_several_replies_is_taken_and_the_others_are_listed() -> None:
    parsed = parse_reply(f'Draft: {{"thinking": "first idea"}}\nFinal: {SHORT}\n{{"thinking": "cut of')

    assert parsed.reply.thinking == "hm"
    assert drops(parsed)[0] == ("", "a further reply in the same text; one reply is read")
    assert "first idea" in parsed.dropped[0].value


def test_a_further_reply_that_breaks_off_is_listed() -> None:
    parsed = parse_reply(f'{SHORT} {{"thinking": "more", "actions": [')

    assert drops(parsed) == [("", "a further reply in the same text that breaks off")]


def test_a_key_written_twice_is_listed() -> None:
    parsed = parse_reply('{"thinking": "first", "thinking": "last", "actions": []}')

    assert parsed.reply.thinking == "last"
    assert drops(parsed) == [("thinking", "the key appears twice in one object; the last one counts")]
    assert parsed.dropped[0].value == "first"


# --- The items ---------------------------------------------------------------------------------------


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
def test_an_action_is_read_in_the_ways_models_write_it(item: Any, expected: dict[str, Any]) -> None:
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
            "unknown key; parameters stand under params",
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
def test_what_is_wrong_in_an_action_is_listed(item: Any, path: str, reason: str) -> None:
    parsed = parse({"actions": [item, {"action": "rest"}]})

    assert parsed.reply.actions[-1].action == "rest"
    assert (path, reason) in [(each[0], each[1][: len(reason)]) for each in drops(parsed)]


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
def test_progress_is_a_share_of_one_or_nothing(
    written: Any, progress: float | None, reason: str | None
) -> None:
    parsed = parse({"goal_updates": [{"goal_id": "g", "progress": written, "note": "n"}]})

    assert parsed.reply.goal_updates[0].progress == pytest.approx(progress)
    assert parsed.reply.goal_updates[0].note == "n"
    if reason is None:
        assert parsed.dropped == ()
    else:
        assert drops(parsed)[0][0] == "goal_updates[0].progress"
        assert drops(parsed)[0][1].startswith(reason)


@pytest.mark.parametrize(
    ("key", "item", "expected", "dropped"),
    [
        ("memory_notes", "noted", {"text": "noted"}, []),
        ("memory_notes", {"text": "noted"}, {"text": "noted", "referenced_date": None}, []),
        ("memory_notes", {"text": 7}, {"text": "7"}, []),
        (
            "memory_notes",
            {"text": "n", "referenced_date": "2025-05-01T10:00:00Z"},
            {"referenced_date": "2025-05-01"},
            [],
        ),
        ("memory_notes", {"text": "n", "referenced_date": ""}, {"referenced_date": None}, []),
        (
            "memory_notes",
            {"text": "n", "referenced_date": "May 1"},
            {"referenced_date": None},
            ["memory_notes[0].referenced_date"],
        ),
        (
            "memory_notes",
            {"text": "n", "referenced_date": 2025},
            {"referenced_date": None},
            ["memory_notes[0].referenced_date"],
        ),
        ("memory_notes", {"text": "n", "mood": "glad"}, {"text": "n"}, ["memory_notes[0].mood"]),
        ("memory_notes", {"text": " "}, None, ["memory_notes[0]"]),
        ("memory_notes", [1], None, ["memory_notes[0]"]),
        ("goal_updates", {"goal_id": "g", "note": "n", "state": "Completed"}, {"state": "completed"}, []),
        (
            "goal_updates",
            {"id": "g", "status": "abandoned", "reason": "x"},
            {"goal_id": "g", "state": "abandoned"},
            [],
        ),
        (
            "goal_updates",
            {"goal_id": "g", "note": "n", "state": "done"},
            {"state": None},
            ["goal_updates[0].state"],
        ),
        (
            "goal_updates",
            {"goal_id": "g", "note": "n", "state": 3},
            {"state": None},
            ["goal_updates[0].state"],
        ),
        ("goal_updates", {"goal_id": "g"}, None, ["goal_updates[0]"]),
        (
            "goal_updates",
            {"goal_id": "g", "progress": 200},
            None,
            ["goal_updates[0].progress", "goal_updates[0]"],
        ),
        ("goal_updates", {"progress": 0.5}, None, ["goal_updates[0]"]),
        ("goal_updates", "g", None, ["goal_updates[0]"]),
        ("new_goals", "Sail", {"title": "Sail", "layer": "objective", "source": "curiosity"}, []),
        ("new_goals", {"title": " Sail \n out "}, {"title": "Sail out"}, []),
        (
            "new_goals",
            {"title": "S", "layer": "User Request"},
            {"layer": "objective"},
            ["new_goals[0].layer"],
        ),
        ("new_goals", {"title": "S", "source": "user request"}, {"source": "user_request"}, []),
        ("new_goals", {"title": "S", "source": "boredom"}, {"source": "curiosity"}, ["new_goals[0].source"]),
        ("new_goals", {"title": "S" * 250}, {"title": "S" * 200}, ["new_goals[0].title"]),
        ("new_goals", {"description": "x"}, None, ["new_goals[0]"]),
        ("new_goals", {"title": ["S"]}, None, ["new_goals[0].title", "new_goals[0]"]),
        ("decompositions", {"goal_id": "g", "intentions": []}, None, ["decompositions[0]"]),
        (
            "decompositions",
            {"goal_id": "g", "intentions": ["recall"]},
            None,
            ["decompositions[0].intentions[0]", "decompositions[0]"],
        ),
        (
            "decompositions",
            {"intentions": [{"action": "recall", "description": "x"}]},
            None,
            ["decompositions[0]"],
        ),
        (
            "decompositions",
            {"goal_id": "g", "steps": [{"type": "recall", "description": "x"}]},
            {"intentions": [{"action": "recall", "description": "x"}]},
            [],
        ),
        (
            "decompositions",
            {"goal_id": "g", "intentions": [{"action": "recall"}, {"action": "rest", "description": "x"}]},
            {"intentions": [{"action": "rest", "description": "x"}]},
            ["decompositions[0].intentions[0]"],
        ),
    ],
)
def test_an_item_is_read_as_far_as_it_fits(
    key: str, item: Any, expected: dict[str, Any] | None, dropped: list[str]
) -> None:
    parsed = parse({key: [item]})

    read = parsed.reply.model_dump(mode="json")[key]
    if expected is None:
        assert read == []
    else:
        assert {name: read[0][name] for name in expected} == expected
    assert [path for path, _ in drops(parsed)] == dropped


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
    assert [path for path, _ in drops(parsed)] == dropped


def test_more_than_three_new_goals_or_intentions_are_dropped_with_their_number() -> None:
    steps = [{"action": "recall", "description": str(n)} for n in range(5)]
    parsed = parse(
        {"new_goals": ["a", "b", "c", "d", "e"], "decompositions": [{"goal_id": "g", "intentions": steps}]}
    )

    assert [new.title for new in parsed.reply.new_goals] == ["a", "b", "c"]
    assert len(parsed.reply.decompositions[0].intentions) == 3
    assert drops(parsed) == [
        ("new_goals[3]", "at most 3 are taken; 2 are left over"),
        ("decompositions[0].intentions[3]", "at most 3 are taken; 2 are left over"),
    ]


def test_an_invalid_item_takes_no_place_from_a_valid_one() -> None:
    parsed = parse({"new_goals": [1, "a", {}, "b", None, "c"]})

    assert [new.title for new in parsed.reply.new_goals] == ["a", "b", "c"]
    assert len(parsed.dropped) == 3


def test_a_missing_key_is_taken_as_empty_and_named() -> None:
    parsed = parse_reply('{"thinking": "hm"}')

    assert parsed.reply == Reply(thinking="hm")
    assert parsed.repairs == tuple(
        f"the key '{key}' is missing; taken as empty" for key in ("actions", "memory_notes", "goal_updates")
    )


def test_an_unknown_key_is_listed() -> None:
    parsed = parse({"proposal_decisions": [{"id": 1}]})

    assert parsed.dropped[0].path == "proposal_decisions"
    assert parsed.dropped[0].reason.startswith("unknown key")
    assert parsed.dropped[0].value == '[{"id": 1}]'


def test_a_long_list_of_rubbish_is_counted_not_copied() -> None:
    parsed = parse({"actions": [0] * 10_000})

    assert len(parsed.dropped) == 51
    assert parsed.dropped[-1].reason == "9950 further items were dropped"


def test_a_dropped_value_is_shown_by_its_beginning() -> None:
    parsed = parse({"mystery": "x" * 5_000})

    assert len(parsed.dropped[0].value) == 200


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
reply_like = st.dictionaries(
    st.sampled_from(REPLY_KEYS) | st.text(max_size=5),
    json_values
    | st.lists(
        st.dictionaries(
            st.sampled_from(
                [
                    "action",
                    "params",
                    "type",
                    "goal_id",
                    "text",
                    "title",
                    "state",
                    "progress",
                    "intentions",
                    "layer",
                ]
            ),
            json_values,
            max_size=4,
        ),
        max_size=5,
    ),
    max_size=8,
)


def check(text: str) -> None:
    try:
        parsed = parse_reply(text)
    except ReplyInvalid:
        return
    assert Reply.model_validate(parsed.reply.model_dump(mode="json")) == parsed.reply
    stored = json.dumps([each.model_dump() for each in parsed.dropped] + list(parsed.repairs)).encode()
    assert b"\\u0000" not in stored
    assert all(each.reason for each in parsed.dropped)


@settings(max_examples=120, deadline=None)
@given(reply_like)
def test_any_object_is_read_or_refused(value: dict[str, Any]) -> None:
    check(json.dumps(value))


@settings(max_examples=120, deadline=None)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    check(text)


@settings(max_examples=120, deadline=None)
@given(reply_like, st.data())
def test_a_reply_with_pieces_torn_out_or_put_in_is_read_or_refused(
    value: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(WHOLE | value)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 6))
        piece = data.draw(
            st.sampled_from(
                ["", '"', "'", "{", "}", "[", "]", ",", ":", "\\", "\n", "\\u", "\x00", "//", "/*"]
            )
        )
        text = text[:at] + piece + text[at + length :]
    check(text)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 160_000,
        '{"a":' * 32_000,
        "{[],[],[]," * 16_000,
        "{'" * 80_000,
        "{//" * 50_000,
        "{/*" * 50_000,
        '{"' + "\\" * 159_000,
        '{"thinking": "x", "actions": [' + "{}," * 50_000 + "]}",
        '{"thinking": "x", "actions": [' + '"' * 100_000 + "]}",
        "{" * 32 + "[]," * 53_000,
    ],
)
def test_an_enormous_text_is_dealt_with_quickly(text: str) -> None:
    started = time.perf_counter()

    check(text)

    # About 0.3 s at worst on a slow machine; without bounds, minutes.
    assert time.perf_counter() - started < 5
