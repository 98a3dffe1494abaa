"""Lenient parsing of a model's text into a reply.

A fault in one item does not affect the others: each dropped or cut item is listed with its path, its beginning and the
reason, and each repair is named. Raises ReplyInvalid, and nothing else, for a text without a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from arbor.errors import ReplyInvalid
from arbor.heartbeat.item_readers import (
    read_action,
    read_decomposition,
    read_goal_update,
    read_insight,
    read_line,
    read_new_goal,
    read_note,
    read_peer_note,
    read_proposal_decision,
)
from arbor.heartbeat.items import Dropped, Item, Sieve
from arbor.heartbeat.json_text import Broken, Found, find_objects
from arbor.heartbeat.reply import (
    MAX_ACTIONS,
    MAX_CONCERNS,
    MAX_CURIOSITY,
    MAX_DECOMPOSITIONS,
    MAX_GOAL_UPDATES,
    MAX_IDENTITY_INSIGHTS,
    MAX_MEMORY_NOTES,
    MAX_NEW_GOALS,
    MAX_PEER_NOTES,
    MAX_PROPOSAL_DECISIONS,
    MAX_RESOLVED,
    REPLY_KEYS,
    REQUIRED_KEYS,
    Reply,
)

# Ten times the text of 4,096 output tokens, the default limit.
MAX_REPLY_CHARACTERS = 160_000

THINKING_LENGTH = 8_000

_END_OF_THOUGHT = "</think>"


@dataclass(frozen=True, kw_only=True)
class ParsedReply:
    """A reply, the dropped items and the repairs."""

    reply: Reply
    dropped: tuple[Dropped, ...] = ()
    repairs: tuple[str, ...] = ()


def parse_reply(text: str) -> ParsedReply:
    """Parse a model's text as a reply.

    Raises ReplyInvalid for a text that is too long, without a JSON object, or with a truncated one or one without any
    required key.
    """
    if len(text) > MAX_REPLY_CHARACTERS:
        raise ReplyInvalid(
            f"the reply has {len(text):,} characters; at most {MAX_REPLY_CHARACTERS:,} are read"
        )
    sieve = Sieve()
    body = _find_reply(text, sieve)
    for key in REQUIRED_KEYS:
        if key not in body:
            sieve.mend(f"the key {key!r} is missing; taken as empty")
    for key in [key for key in body if key not in REPLY_KEYS]:
        sieve.drop(key, body[key], f"unknown key; a reply has {', '.join(REPLY_KEYS)}")
    reply = Reply(
        thinking=_read_thinking(body.get("thinking"), sieve),
        **{
            key: sieve.items(key, body.get(key), most, read)
            for key, (most, read) in _LISTS.items()
            if body.get(key) is not None
        },
    )
    return ParsedReply(reply=reply, dropped=sieve.dropped, repairs=tuple(sieve.repairs))


# By key, the most items, and the reader of one item.
_LISTS: Mapping[str, tuple[int, Callable[[Item], Any]]] = {
    "actions": (MAX_ACTIONS, read_action),
    "memory_notes": (MAX_MEMORY_NOTES, read_note),
    "goal_updates": (MAX_GOAL_UPDATES, read_goal_update),
    "new_goals": (MAX_NEW_GOALS, read_new_goal),
    "concerns": (MAX_CONCERNS, read_line),
    "curiosity": (MAX_CURIOSITY, read_line),
    "decompositions": (MAX_DECOMPOSITIONS, read_decomposition),
    "proposal_decisions": (MAX_PROPOSAL_DECISIONS, read_proposal_decision),
    "identity_insights": (MAX_IDENTITY_INSIGHTS, read_insight),
    "peer_notes": (MAX_PEER_NOTES, read_peer_note),
    "resolved": (MAX_RESOLVED, read_line),
}


def _find_reply(text: str, sieve: Sieve) -> dict[str, Any]:
    """Return the JSON object with the most known keys, the first of equals."""
    text = text.removeprefix("\ufeff")
    _, thought, rest = text.rpartition(_END_OF_THOUGHT)
    if thought:
        sieve.mend(f"the thoughts before {_END_OF_THOUGHT} were left out")
        text = rest
    objects = list(find_objects(text, keys=REPLY_KEYS))
    whole = [found for found in objects if isinstance(found, Found)]
    candidates = [(found, _unwrap(found.value)) for found in whole]
    usable = [(found, body) for found, body in candidates if any(key in body for key in REQUIRED_KEYS)]
    if not usable:
        raise ReplyInvalid(_explain(objects))
    chosen, body = max(usable, key=lambda candidate: sum(key in candidate[1] for key in REPLY_KEYS))
    if text[: chosen.start].strip() or text[chosen.end :].strip():
        sieve.mend("text around the JSON object was left out")
    if body is not chosen.value:
        sieve.mend("the reply was wrapped in another object")
    for repair in chosen.repairs:
        sieve.mend(repair)
    for key, value in chosen.repeated:
        sieve.drop(key, value, "the key appears twice in one object; the last one counts")
    for found, other in usable:
        if found is not chosen:
            sieve.drop("", other, "a further reply in the same text; one reply is read")
    for item in objects:
        if isinstance(item, Broken):
            sieve.drop("", text[item.start :], "a further reply in the same text that breaks off")
    return body


def _unwrap(value: dict[str, Any]) -> dict[str, Any]:
    """Return the object under an unknown sole key, such as {"reply": {...}}."""
    if len(value) == 1:
        (key, inner), *_ = value.items()
        if key not in REPLY_KEYS and isinstance(inner, dict):
            return inner
    return value


def _explain(objects: list[Found | Broken]) -> str:
    """Return why there is no reply, and the expected format."""
    wanted = f"answer with one JSON object with the keys {', '.join(REPLY_KEYS)}"
    for item in objects:
        if isinstance(item, Broken):
            if item.cut_off:
                return "the JSON object breaks off before its end; answer with a shorter, complete one"
            return f"the JSON object is not valid: {item.fault}; {wanted}"
    if objects:
        return f"the JSON object has none of the keys {', '.join(REQUIRED_KEYS)}; {wanted}"
    return f"there is no JSON object in the reply; {wanted}"


def _read_thinking(value: Any, sieve: Sieve) -> str:
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        sieve.mend("a list of thoughts was joined")
        value = "\n".join(value)
    return sieve.text("thinking", value, THINKING_LENGTH) or ""
