"""The JSON schema of replies: strict, complete, and consistent with the parser and the actions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from arbor.heartbeat.replies.parsing import parse_reply
from arbor.heartbeat.replies.reply import REPLY_KEYS
from arbor.heartbeat.replies.reply_schema import reply_schema
from tests.unit.heartbeat.replies.schema_check import KNOWN, REPLY_SCHEMA, fits

COMPLETE_REPLY: dict[str, Any] = {
    "thinking": "hm",
    "actions": [
        {
            "action": "remember",
            "params": {
                "content": "x",
                "type": None,
                "importance": 0.4,
                "steps": None,
                "context": None,
                "pattern": None,
            },
            "reasoning": "why",
            "goal_id": None,
            "intent_id": "i",
        },
        {"action": "rest", "params": {}, "reasoning": "", "goal_id": None, "intent_id": None},
    ],
    "memory_notes": [{"text": "n", "referenced_date": None}],
    "goal_updates": [
        {
            "goal_id": "g",
            "progress": None,
            "note": None,
            "state": "queued",
            "reason": None,
            "blocked_by": None,
            "met": [],
        }
    ],
    "new_goals": [
        {
            "title": "t",
            "description": "",
            "layer": "task",
            "source": "social",
            "parent_goal_id": None,
            "deadline": "2026-02-01",
            "expected_reward": None,
        }
    ],
    "concerns": [],
    "curiosity": ["c"],
    "decompositions": [
        {
            "goal_id": "g",
            "intentions": [
                {
                    "action": "recall",
                    "description": "d",
                    "precondition": None,
                    "postcondition": "it is known",
                    "estimated_ticks": 1,
                    "follows": "memory",
                }
            ],
            "estimated_ticks": 2,
            "estimated_cost": None,
            "risk": 0.5,
            "dependencies": [],
        }
    ],
    "proposal_decisions": [{"proposal_id": "p", "decision": "accept", "reason": ""}],
    "identity_insights": [{"kind": "agency", "content": "c", "confidence": None, "evidence": ["m"]}],
    "peer_notes": [
        {"peer": "p", "outcome": "success", "competence": 1, "reliability": None, "interests": []}
    ],
    "resolved": ["c"],
}


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the object schemas nested in a schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


def keywords(schema: dict[str, Any]) -> set[str]:
    """Return the JSON Schema keywords that a schema uses, without its property names."""
    used = set(schema)
    for part in schema.get("properties", {}).values():
        used |= keywords(part)
    for part in [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]:
        used |= keywords(part)
    return used


def test_every_object_is_closed_and_requires_all_its_keys() -> None:
    schemas = list(objects(REPLY_SCHEMA))

    assert len(schemas) > 10
    for schema_object in schemas:
        assert schema_object["additionalProperties"] is False
        assert schema_object["required"] == list(schema_object["properties"])


def test_only_keywords_of_strict_modes_and_grammars_are_used() -> None:
    assert keywords(REPLY_SCHEMA) <= KNOWN


def test_the_schema_has_every_reply_key_and_thinking_first() -> None:
    assert next(iter(REPLY_SCHEMA["properties"])) == "thinking"
    assert set(REPLY_SCHEMA["properties"]) == set(REPLY_KEYS)


def test_the_schema_is_small_enough_for_a_request() -> None:
    assert len(json.dumps(REPLY_SCHEMA)) < 30_000


def test_a_valid_reply_is_parsed_without_drops_or_repairs() -> None:
    assert fits(COMPLETE_REPLY, REPLY_SCHEMA)

    parsed = parse_reply(json.dumps(COMPLETE_REPLY))

    assert (parsed.dropped, parsed.repairs) == ((), ())


@pytest.mark.parametrize(
    "change",
    [
        {"thinking": None},
        {"actions": [{"action": "fly", "params": {}, "reasoning": "", "goal_id": None, "intent_id": None}]},
        {
            "actions": [
                {"action": "rest", "params": {"x": 1}, "reasoning": "", "goal_id": None, "intent_id": None}
            ]
        },
        {
            "actions": [
                {
                    "action": "recall",
                    "params": {"query": "x"},
                    "reasoning": "",
                    "goal_id": None,
                    "intent_id": None,
                }
            ]
        },
        {"new_goals": COMPLETE_REPLY["new_goals"] * 4},
        {"mood": "glad"},
    ],
)
def test_an_invalid_reply_does_not_match_the_schema(change: dict[str, Any]) -> None:
    assert not fits(COMPLETE_REPLY | change, REPLY_SCHEMA)


def test_the_schema_offers_only_the_allowed_actions() -> None:
    schema = reply_schema(("rest", "recall"))

    names = [
        option["properties"]["action"]["enum"] for option in schema["properties"]["actions"]["items"]["anyOf"]
    ]
    intention = schema["properties"]["decompositions"]["items"]["properties"]["intentions"]["items"]
    assert names == [["recall"], ["rest"]]
    assert intention["properties"]["action"]["enum"] == ["recall", "rest"]


def test_a_reply_without_actions_is_valid_if_none_is_allowed() -> None:
    schema = reply_schema(())

    assert fits(COMPLETE_REPLY | {"actions": [], "decompositions": []}, schema)
    assert not fits(COMPLETE_REPLY, schema)
