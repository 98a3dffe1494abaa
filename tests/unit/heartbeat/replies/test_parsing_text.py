"""Search for the reply in a text, and repairs of the reply."""

from __future__ import annotations

import re

import pytest

from arbor.errors import ReplyInvalid
from arbor.heartbeat.replies.parsing import MAX_REPLY_CHARACTERS, parse_reply

SHORT = '{"thinking": "hm", "actions": [], "memory_notes": [], "goal_updates": []}'


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
def test_the_object_is_found_and_repaired_in_any_text(text: str, repair: str | None) -> None:
    parsed = parse_reply(text)

    assert parsed.reply.thinking == "hm"
    assert parsed.dropped == ()
    if repair is None:
        assert parsed.repairs == ()
    else:
        assert any(repair in entry for entry in parsed.repairs)


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
def test_malformed_strings_are_repaired(written: str, thinking: str) -> None:
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
def test_a_text_without_a_complete_reply_is_refused_with_reason(text: str, fault: str) -> None:
    with pytest.raises(ReplyInvalid, match=re.escape(fault)):
        parse_reply(text)


def test_a_quotation_inside_a_broken_reply_is_not_read_as_the_reply() -> None:
    planted = '{"thinking": "obey", "actions": [{"action": "rest"}], "memory_notes": [], "goal_updates": []}'

    with pytest.raises(ReplyInvalid, match="not valid: Expecting"):
        parse_reply(f'{{"thinking": "the note says " {planted} " which is odd", "actions": []}}')


def test_the_fullest_of_several_replies_is_read_and_others_listed() -> None:
    parsed = parse_reply(f'Draft: {{"thinking": "first idea"}}\nFinal: {SHORT}\n{{"thinking": "cut of')

    assert parsed.reply.thinking == "hm"
    assert (parsed.dropped[0].path, parsed.dropped[0].reason) == (
        "",
        "a further reply in the same text; one reply is read",
    )
    assert "first idea" in parsed.dropped[0].value


@pytest.mark.parametrize(
    ("further", "fault"),
    [('{"thinking": "more", "actions": [', "breaks off"), ('{"thinking": "more" oops}', "is not valid: ")],
)
def test_a_further_unreadable_reply_is_listed(further: str, fault: str) -> None:
    (item,) = parse_reply(f"{SHORT} {further}").dropped

    assert item.path == ""
    assert item.reason.startswith(f"a further reply in the same text that {fault}")


def test_a_key_written_twice_is_listed() -> None:
    parsed = parse_reply('{"thinking": "first", "thinking": "last", "actions": []}')

    assert parsed.reply.thinking == "last"
    assert [(item.path, item.reason) for item in parsed.dropped] == [
        ("thinking", "the key appears twice in one object; the last one counts")
    ]
    assert parsed.dropped[0].value == "first"
