"""Properties of the parser: any text is parsed or refused, quickly."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arbor.errors import ReplyInvalid
from arbor.heartbeat.replies.parsing import parse_reply
from arbor.heartbeat.replies.reply import REPLY_KEYS, Reply
from tests.unit.heartbeat.replies.reply_checks import WHOLE

#: A NUL, plain or escaped in JSON.
_NUL = re.compile(r"\x00|(?<!\\)(?:\\\\)*\\u0000")
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


def assert_read_or_refused(text: str) -> None:
    """Fail unless the parser refuses the text, or reads a reply that can be stored."""
    try:
        parsed = parse_reply(text)
    except ReplyInvalid:
        return
    assert Reply.model_validate(parsed.reply.model_dump(mode="json")) == parsed.reply
    stored = [item.model_dump_json() for item in parsed.dropped] + list(parsed.repairs)
    # PostgreSQL stores no NUL; a backslash and "u0000" that were written out are text like any other.
    assert not any(_NUL.search(text) for text in stored)
    assert all(item.reason for item in parsed.dropped)


@settings(max_examples=120)
@given(reply_like)
def test_any_object_is_read_or_refused(value: dict[str, Any]) -> None:
    assert_read_or_refused(json.dumps(value))


@settings(max_examples=120)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    assert_read_or_refused(text)


@settings(max_examples=120)
@given(reply_like, st.data())
def test_a_mutilated_reply_is_read_or_refused(value: dict[str, Any], data: st.DataObject) -> None:
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
    assert_read_or_refused(text)


@pytest.mark.bar
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
def test_an_enormous_text_is_parsed_quickly(text: str) -> None:
    started = time.perf_counter()

    assert_read_or_refused(text)

    # About 0.3 s at worst on a slow machine; without bounds, minutes.
    assert time.perf_counter() - started < 5
