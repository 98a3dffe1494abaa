"""Parsing of the items about the self and peers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.heartbeat.replies.reply_checks import assert_parsed


@pytest.mark.parametrize(
    ("key", "item", "expected", "dropped"),
    [
        (
            "proposal_decisions",
            {"proposal_id": "p", "decision": "Accept"},
            {"decision": "accept", "reason": ""},
            [],
        ),
        (
            "proposal_decisions",
            {"id": "p", "verdict": "rejected", "reasoning": "no"},
            {"proposal_id": "p", "decision": "reject", "reason": "no"},
            [],
        ),
        (
            "proposal_decisions",
            {"proposal_id": 7, "decision": "later"},
            {"proposal_id": "7", "decision": "defer"},
            [],
        ),
        (
            "proposal_decisions",
            {"proposal_id": "p", "decision": "perhaps"},
            None,
            ["proposal_decisions[0].decision", "proposal_decisions[0]"],
        ),
        ("proposal_decisions", {"decision": "accept"}, None, ["proposal_decisions[0]"]),
        ("proposal_decisions", "accept", None, ["proposal_decisions[0]"]),
        (
            "proposal_decisions",
            {"proposal_id": "p", "decision": "accept", "mood": 1},
            {"decision": "accept"},
            ["proposal_decisions[0].mood"],
        ),
        (
            "identity_insights",
            {"category": "Value", "insight": "I like maps", "confidence": "80%", "evidence": "m1"},
            {"kind": "value", "content": "I like maps", "confidence": 0.8, "evidence": ["m1"]},
            [],
        ),
        (
            "identity_insights",
            {"kind": "capability", "content": "I sail"},
            {"kind": "capability", "evidence": []},
            [],
        ),
        ("identity_insights", {"kind": "value"}, None, ["identity_insights[0]"]),
        (
            "identity_insights",
            {"kind": "hobby", "content": "x"},
            None,
            ["identity_insights[0].kind", "identity_insights[0]"],
        ),
        ("identity_insights", {"content": "I like maps"}, None, ["identity_insights[0]"]),
        ("identity_insights", "I like maps", None, ["identity_insights[0]"]),
        (
            "identity_insights",
            {"kind": "value", "content": "x" * 1_200, "confidence": 2_000},
            {"content": "x" * 1_000, "confidence": None},
            ["identity_insights[0].content", "identity_insights[0].confidence"],
        ),
        (
            "peer_notes",
            {"name": "Otto", "result": "Failed", "competence": 70, "interests": "knots"},
            {"peer": "Otto", "outcome": "failure", "competence": 0.7, "interests": ["knots"]},
            [],
        ),
        ("peer_notes", {"peer": "Otto"}, None, ["peer_notes[0]"]),
        ("peer_notes", {"outcome": "success"}, None, ["peer_notes[0]"]),
        (
            "peer_notes",
            {"peer": "Otto", "outcome": "so so"},
            None,
            ["peer_notes[0].outcome", "peer_notes[0]"],
        ),
        ("peer_notes", ["Otto"], None, ["peer_notes[0]"]),
        (
            "peer_notes",
            {"peer": "Otto", "outcome": "success", "reliability": "high"},
            {"reliability": None},
            ["peer_notes[0].reliability"],
        ),
    ],
)
def test_an_item_about_the_self_is_parsed_leniently(
    key: str, item: Any, expected: dict[str, Any] | None, dropped: list[str]
) -> None:
    assert_parsed(key, item, expected, dropped)
