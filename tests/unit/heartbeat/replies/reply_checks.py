"""Checks of parsed replies and their dropped items."""

from __future__ import annotations

import json
from typing import Any

from arbor.heartbeat.replies.parsing import ParsedReply, parse_reply


def parse(value: Any) -> ParsedReply:
    """Parse an object that has the required keys besides those given."""
    required: dict[str, Any] = {"thinking": "hm", "actions": [], "memory_notes": [], "goal_updates": []}
    return parse_reply(json.dumps(required | value))


def dropped_items(parsed: ParsedReply) -> list[tuple[str, str]]:
    """Return the path and the reason of each dropped item."""
    return [(item.path, item.reason) for item in parsed.dropped]


def assert_parsed(key: str, item: Any, expected: dict[str, Any] | None, dropped: list[str]) -> None:
    """Fail unless the item is parsed as expected (None: dropped), with these dropped paths."""
    parsed = parse({key: [item]})

    read = parsed.reply.model_dump(mode="json")[key]
    if expected is None:
        assert read == []
    else:
        assert {name: read[0][name] for name in expected} == expected
    assert [path for path, _ in dropped_items(parsed)] == dropped
