"""Questions to models survive storage unchanged."""

from __future__ import annotations

from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.questions import request_json, request_of, sections_of, stored_sections
from arbor.heartbeat.reply_schema import reply_schema
from arbor.models.ports import CallPurpose, ModelRequest, PromptMessage


def _request(user: str) -> ModelRequest:
    return ModelRequest(
        purpose=CallPurpose.THINK,
        system="Rules.\n\nWho you are.",
        messages=(PromptMessage(role="user", content=user),),
    )


def test_a_schema_is_made_again_and_not_stored() -> None:
    stored = request_json(_request("Hello"), allowed=["recall", "rest"], keys=["thinking", "actions"])
    assert stored["schema"] is None
    again = request_of(stored)
    assert again.schema == reply_schema(ACTIONS, ["recall", "rest"], ("thinking", "actions"))
    assert (again.system, again.messages) == (_request("Hello").system, _request("Hello").messages)


def test_sections_are_stored_by_place_and_read_with_their_texts() -> None:
    texts = ["Rules.", "Who you are.", "The same.", "The same.", "Not in it."]
    request = _request("The same.\n\nThe same.").to_json()
    sections = [{"name": str(number), "text": text, "tokens": 2} for number, text in enumerate(texts)]
    stored = stored_sections(sections, request)
    assert [section.get("text") for section in stored] == [None, None, None, None, "Not in it."]
    assert (stored[2]["from"], stored[3]["from"]) == (0, 11)
    assert sections_of(stored, request) == sections


def test_invalid_or_missing_sections_are_read_as_none() -> None:
    assert sections_of({"name": "x"}, {}) == []
    assert sections_of([], None) == []
