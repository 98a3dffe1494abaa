"""The JSON schema of replies: strict, complete, consistent with parser and actions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.parsing import parse_reply
from arbor.heartbeat.reply import REPLY_KEYS
from arbor.heartbeat.reply_schema import REPLY_SCHEMA, reply_schema
from tests.unit.heartbeat.schema_check import KNOWN, fits

WHOLE: dict[str, Any] = {
    "thinking": "hm",
    "actions": [
        {
            "action": "remember",
            "params": {"content": "x", "type": None, "importance": 0.4},
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
    """Yield every object schema within."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


def words(schema: dict[str, Any]) -> set[str]:
    """Return the words of JSON Schema that are used, property names excepted."""
    found = set(schema)
    for part in schema.get("properties", {}).values():
        found |= words(part)
    for part in [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]:
        found |= words(part)
    return found


def test_every_object_is_closed_and_requires_all_its_keys() -> None:
    found = list(objects(REPLY_SCHEMA))

    assert len(found) > 10
    for schema_object in found:
        assert schema_object["additionalProperties"] is False
        assert schema_object["required"] == list(schema_object["properties"])


def test_only_words_are_used_that_strict_modes_and_grammars_take() -> None:
    assert words(REPLY_SCHEMA) <= KNOWN


def test_the_reply_thinks_before_it_acts() -> None:
    assert next(iter(REPLY_SCHEMA["properties"])) == "thinking"
    assert set(REPLY_SCHEMA["properties"]) == set(REPLY_KEYS)


def test_the_schema_fits_a_request() -> None:
    assert len(json.dumps(REPLY_SCHEMA)) < 30_000


def test_a_reply_in_the_schema_is_read_without_a_word() -> None:
    assert fits(WHOLE, REPLY_SCHEMA)

    parsed = parse_reply(json.dumps(WHOLE))

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
        {"new_goals": WHOLE["new_goals"] * 4},
        {"mood": "glad"},
    ],
)
def test_what_is_outside_the_schema_does_not_fit(change: dict[str, Any]) -> None:
    assert not fits(WHOLE | change, REPLY_SCHEMA)


def test_an_agent_is_shown_only_the_actions_it_may_use() -> None:
    schema = reply_schema(ACTIONS, ("rest", "recall"))

    names = [
        option["properties"]["action"]["enum"] for option in schema["properties"]["actions"]["items"]["anyOf"]
    ]
    intention = schema["properties"]["decompositions"]["items"]["properties"]["intentions"]["items"]
    assert names == [["recall"], ["rest"]]
    assert intention["properties"]["action"]["enum"] == ["recall", "rest"]


def test_an_agent_that_may_do_nothing_can_still_answer() -> None:
    schema = reply_schema(ACTIONS, ())

    assert fits(WHOLE | {"actions": [], "decompositions": []}, schema)
    assert not fits(WHOLE, schema)
