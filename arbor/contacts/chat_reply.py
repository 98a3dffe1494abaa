"""An agent's answer in a conversation: parsed from a model's text, or made by rule where no model is in use."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arbor.clock import format_time
from arbor.contacts.chat import ANSWER_LENGTH
from arbor.contacts.chat_view import ChatView
from arbor.contacts.values import Speaker
from arbor.errors import ReplyInvalid
from arbor.models.json_text import UnreadableObject, find_objects, storable
from arbor.quotations import shorten

_KEYS = ("reply", "thinking")
#: The beginning of a JSON object, complete or not; a brace before other words belongs to a text.
_OBJECT = re.compile(r"""\{\s*(?:["'}]|[\w$-]+\s*:|\Z)""")
#: Memories that the rule quotes, and the characters of each.
_MAX_QUOTED = 3
_QUOTED_LENGTH = 300

REFLEX_OPENING = "No language model is in use here, so I answer by rule, from what I remember."


@dataclass(frozen=True, kw_only=True)
class ChatReply:
    """The agent's answer and its thinking."""

    reply: str
    thinking: str = ""
    #: Parts of the model's text that are not in the answer.
    left_out: tuple[str, ...] = ()


def read_chat_reply(text: str) -> ChatReply:
    """Parse the answer in a model's text; a text that is no JSON object is the answer itself.

    Raises ReplyInvalid for a text without an answer.
    """
    for json_object in find_objects(text, keys=_KEYS):
        if isinstance(json_object, UnreadableObject):
            raise ReplyInvalid(f"the answer's JSON cannot be read: {json_object.fault}")
        if "reply" in json_object.value:
            return _from_object(json_object.value)
    plain = text.strip()
    if not plain:
        raise ReplyInvalid("the model said nothing")
    if _OBJECT.match(plain) or plain.startswith("```json") or (plain.startswith("[") and _is_json(plain)):
        raise ReplyInvalid('the answer is JSON without a "reply"')
    return ChatReply(reply=shorten(storable(plain), ANSWER_LENGTH), left_out=_describe_cut(plain))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _from_object(value: Mapping[str, Any]) -> ChatReply:
    reply, thinking = value["reply"], value.get("thinking", "")
    if not isinstance(reply, str) or not reply.strip():
        raise ReplyInvalid('"reply" must be a text that says something')
    return ChatReply(
        reply=shorten(storable(reply.strip()), ANSWER_LENGTH),
        left_out=_describe_cut(reply.strip()),
        thinking=storable(thinking.strip()) if isinstance(thinking, str) else "",
    )


def _describe_cut(text: str) -> tuple[str, ...]:
    if len(text) <= ANSWER_LENGTH:
        return ()
    return (f"the answer is cut: it had {len(text):,} characters, of which {ANSWER_LENGTH:,} are kept",)


def reflex_answer(context: Mapping[str, Any]) -> dict[str, str]:
    """Return the answer of the reflex policy: that no language model is in use, and the recalled memories or a boundary's refusal."""
    view = ChatView.model_validate(context)
    refused = [match for match in view.boundary_matches if match.response == "refuse"]
    if refused:
        why = "; ".join(f"{match.name.replace('_', ' ')}: {match.description}" for match in refused)
        return {"thinking": "", "reply": f"{REFLEX_OPENING} That I do not do ({why})"}
    # The agent's own answers may quote memories already, so they are not quoted again.
    quotable = [memory for memory in view.relevant if memory.role != Speaker.AGENT]
    if not quotable:
        return {"thinking": "", "reply": f"{REFLEX_OPENING} About this I remember nothing."}
    lines = [
        f"- {format_time(memory.at)}{f', {memory.role}' if memory.role else ''}: {shorten(' '.join(memory.content.split()), _QUOTED_LENGTH)}"
        for memory in quotable[:_MAX_QUOTED]
    ]
    return {"thinking": "", "reply": "\n".join([f"{REFLEX_OPENING} I remember:", *lines])}
