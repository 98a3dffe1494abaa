"""The stored form of a model request and its sections."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.heartbeat.prompts.questions import request_json, request_of, sections_of, stored_sections
from arbor.heartbeat.replies.reply_schema import reply_schema
from arbor.models.ports import CallPurpose, ModelRequest, PromptMessage


def _request(*messages: str) -> ModelRequest:
    return ModelRequest(
        purpose=CallPurpose.THINK,
        system="Rules.\n\nWho you are.",
        messages=tuple(PromptMessage(role="user", content=content) for content in messages),
    )


def _section(name: str, text: str, *, cut: int = 0) -> dict[str, Any]:
    return {"name": name, "text": text, "tokens": 2, "cut": cut}


def test_a_schema_is_made_again_and_not_stored() -> None:
    stored = request_json(_request("Hello"), allowed=["recall", "rest"], keys=["thinking", "actions"])
    assert stored["schema"] is None
    again = request_of(stored)
    assert again.schema == reply_schema(["recall", "rest"], ("thinking", "actions"))
    assert (again.system, again.messages) == (_request("Hello").system, _request("Hello").messages)


@pytest.mark.parametrize(
    ("sections", "messages", "stored"),
    [
        (
            [
                _section("rules", "Rules."),
                _section("self", "Who you are."),
                _section("goals", "None.", cut=7),
            ],
            ["None."],
            [["rules", 2, 6], ["self", 2, 12], ["goals", 2, 5, {"part": 1, "from": 0, "cut": 7}]],
        ),
        # Equal texts have places of their own.
        (
            [_section("a", "The same."), _section("b", "The same.")],
            ["The same.\n\nThe same."],
            [["a", 2, 9, {"part": 1, "from": 0}], ["b", 2, 9]],
        ),
        # A section of a further round trip is in its message.
        (
            [_section("conversation", ""), _section("follow_up", "It worked.")],
            ["Hello", "{}", "It worked."],
            [["conversation", 2, 0], ["follow_up", 2, 10, {"part": 3, "from": 0}]],
        ),
        # Text that the request does not have, and the sections around it.
        (
            [_section("rules", "Rules."), _section("gone", "Not in it."), _section("self", "Who you are.")],
            [],
            [["rules", 2, 6], ["gone", 2, 10, {"text": "Not in it."}], ["self", 2, 12]],
        ),
        ([], ["Hello"], []),
    ],
)
def test_sections_are_stored_by_place_and_read_with_their_texts(
    sections: list[dict[str, Any]], messages: list[str], stored: list[Any]
) -> None:
    request = _request(*messages).to_json()
    assert stored_sections(sections, request) == stored
    assert sections_of(stored, request) == sections


def test_sections_of_an_earlier_version_are_read() -> None:
    request = _request("Hello").to_json()
    stored = [
        {"name": "self", "tokens": 2, "cut": 0, "part": "system", "from": 8, "to": 20},
        {"name": "user", "tokens": 2, "cut": 0, "part": "user", "from": 0, "to": 5},
        _section("gone", "Not in it."),
    ]
    assert sections_of(stored, request) == [
        _section("self", "Who you are."),
        _section("user", "Hello"),
        _section("gone", "Not in it."),
    ]


def test_sections_with_former_names_are_read() -> None:
    request = _request("Hello").to_json()
    sections = sections_of([["last_beat", 2, 12], _section("last_beat", "I rested.")], request)
    assert [section["name"] for section in sections] == ["last_heartbeat", "last_heartbeat"]


def test_sections_of_a_deleted_request_are_read_without_texts() -> None:
    stored = stored_sections([_section("user", "Hello")], _request("Hello").to_json())
    assert sections_of(stored, {}) == [_section("user", "")]


def test_invalid_or_missing_sections_are_read_as_none() -> None:
    assert sections_of({"name": "x"}, {}) == []
    assert sections_of([], None) == []
