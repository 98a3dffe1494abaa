"""A reply with all keys, and checks of parsed replies and their dropped items."""

from __future__ import annotations

import json
from typing import Any

from arbor.heartbeat.replies.parsing import ParsedReply, parse_reply

#: A valid reply with all its keys, as the parser writes it.
WHOLE: dict[str, Any] = {
    "thinking": "hm",
    "actions": [
        {"action": "recall", "params": {"query": "x"}, "reasoning": "why", "goal_id": "g", "intent_id": None}
    ],
    "memory_notes": [{"text": "noted", "referenced_date": "2025-05-01"}],
    "goal_updates": [
        {
            "goal_id": "g",
            "progress": 0.5,
            "note": "half",
            "state": None,
            "reason": None,
            "blocked_by": "no wind",
            "met": [],
        }
    ],
    "new_goals": [
        {
            "title": "Sail",
            "description": "out",
            "layer": "task",
            "source": "external",
            "parent_goal_id": None,
            "deadline": "2026-02-01T18:00:00Z",
            "expected_reward": 0.3,
        }
    ],
    "concerns": ["wind"],
    "curiosity": ["islands"],
    "decompositions": [
        {
            "goal_id": "g",
            "intentions": [
                {
                    "action": "recall",
                    "description": "look",
                    "precondition": "it is day",
                    "postcondition": "I have seen it",
                    "estimated_ticks": 2,
                    "follows": "memory",
                }
            ],
            "estimated_ticks": 3,
            "estimated_cost": 4.5,
            "risk": 0.2,
            "dependencies": ["a boat"],
        }
    ],
    "proposal_decisions": [{"proposal_id": "p", "decision": "defer", "reason": "later"}],
    "identity_insights": [
        {"kind": "value", "content": "I like maps", "confidence": 0.8, "evidence": ["m1", "m2"]}
    ],
    "peer_notes": [
        {"peer": "otto", "outcome": "partial", "competence": 0.5, "reliability": None, "interests": ["knots"]}
    ],
    "resolved": ["wind"],
}


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
