"""Compact stored form of model requests: schemas by their inputs, sections by their offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from arbor.heartbeat.replies.reply_schema import CACHED_SCHEMAS, reply_schema
from arbor.models.ports import ModelRequest

#: The key of the inputs of the schema: {"allowed": [actions], "keys": [of the reply], "tools": {action: schema}}.
_SCHEMA_OF = "schema_of"


def request_json(
    request: ModelRequest,
    *,
    allowed: Sequence[str],
    keys: Sequence[str],
    tools: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a request as JSON, with the inputs of its schema instead of the schema; `tools` are schemas by action."""
    inputs = {"allowed": list(allowed), "keys": list(keys)} | ({"tools": dict(tools)} if tools else {})
    return request.to_json() | {"schema": None, _SCHEMA_OF: inputs}


def request_of(stored: Mapping[str, Any]) -> ModelRequest:
    request = dict(stored)
    schema_inputs = request.pop(_SCHEMA_OF, None)
    if schema_inputs is not None:
        allowed, keys = tuple(schema_inputs["allowed"]), tuple(schema_inputs["keys"])
        tools = schema_inputs.get("tools")
        request["schema"] = reply_schema(allowed, keys, tools) if tools else _schema(allowed, keys)
    return ModelRequest.from_json(request)


# Equal inputs give the same object: an adapter remembers by identity which schemas it has checked.
@lru_cache(maxsize=CACHED_SCHEMAS)
def _schema(allowed: tuple[str, ...], keys: tuple[str, ...]) -> dict[str, Any]:
    return reply_schema(allowed, keys)


def stored_sections(sections: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> list[list[Any]]:
    """Return sections, {name, text, tokens, cut} each, as [name, tokens, length]: their texts are in the request, one after another.

    A fourth item has what differs: the text number `part` and the offset `from` of a section in another place, the text of one that the
    request does not have, and a cut.
    """
    texts = _texts(request)
    stored: list[list[Any]] = []
    part, start = 0, 0
    for section in sections:
        text, further = section["text"], {}
        if not texts[part].startswith(text, start):
            place = _find(texts, text, part, start)
            if place is None:
                further["text"] = text
            else:
                part, start = further["part"], further["from"] = place
        if section.get("cut"):
            further["cut"] = section["cut"]
        stored.append([section["name"], section["tokens"], len(text), *([further] if further else [])])
        if "text" not in further:
            start += len(text) + len(_BETWEEN)
    return stored


#: Sections of a text are joined by an empty line.
_BETWEEN = "\n\n"


def _texts(request: Mapping[str, Any]) -> list[str]:
    """Return the texts of a request in which sections are looked for: the system prompt, then the messages."""
    return [
        str(request.get("system", "")),
        *(str(message.get("content", "")) for message in request.get("messages") or ()),
    ]


def _find(texts: Sequence[str], text: str, part: int, start: int) -> tuple[int, int] | None:
    """Return the number of the first text that has this one, from a place on, and the offset; None if no text has."""
    for number in range(part, len(texts)):
        offset = texts[number].find(text, start if number == part else 0)
        if offset >= 0:
            return number, offset
    return None


#: Sections of calls that older versions stored, with their names today.
_RENAMED: Mapping[str, str] = {"last_beat": "last_heartbeat"}


def sections_of(sections: Any, request: Any) -> list[dict[str, Any]]:
    """Return the sections of a call with their texts, {name, text, tokens, cut} each."""
    if not isinstance(sections, list) or not isinstance(request, Mapping):
        return []
    texts = _texts(request)
    restored: list[dict[str, Any]] = []
    part, start = 0, 0
    for section in sections:
        if isinstance(section, Mapping):
            restored.append(_section_of_earlier_version(section, texts))
        elif isinstance(section, list):
            name, tokens, length, *rest = section
            further = rest[0] if rest else {}
            part, start = further.get("part", part), further.get("from", start)
            # Without its texts, as after their deletion by age, a request has no part of this number.
            text = further.get("text", texts[part][start : start + length] if part < len(texts) else "")
            name = _RENAMED.get(name, name)
            restored.append({"name": name, "tokens": tokens, "cut": further.get("cut", 0), "text": text})
            if "text" not in further:
                start += length + len(_BETWEEN)
    return restored


def _section_of_earlier_version(section: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """Return a section that is stored with the part and offsets of its text, or with the text."""
    entry = {**section, "name": _RENAMED.get(section["name"], section["name"])}
    if "part" in entry:
        number = 0 if entry.pop("part") == "system" else 1
        first, last = entry.pop("from"), entry.pop("to")
        entry["text"] = texts[number][first:last] if number < len(texts) else ""
    return entry
