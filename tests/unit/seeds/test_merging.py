"""Plans of merges: what is new, known and in conflict."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from arbor.seeds.merging import MAX_PROPOSALS, MergePlan, OwnKnowledge, plan_merge
from arbor.seeds.reading import SeedRow

NOW = datetime(2026, 10, 1, tzinfo=UTC)
OWN = OwnKnowledge(
    memories=frozenset({("semantic", "aa")}),
    beliefs={"bb": (0.8, "held")},
    preferences={"tone": "dry"},
)


def plan(section: str, *values: dict[str, Any]) -> MergePlan:
    return plan_merge([SeedRow(section=section, values=row, vectors={}) for row in values], OWN, now=NOW)


def memory(
    kind: str = "semantic", digest: str = "cc", status: str = "active", expires_at: str | None = None
) -> dict[str, Any]:
    return {
        "type": kind,
        "content_hash": rf"\x{digest}",
        "status": status,
        "expires_at": expires_at,
    }


def belief(digest: str, status: str = "held", confidence: float = 0.5) -> dict[str, Any]:
    return {
        "statement": f"statement {digest}",
        "statement_hash": rf"\x{digest}",
        "status": status,
        "confidence": confidence,
    }


@pytest.mark.parametrize("kind", ["semantic", "procedural", "strategic"])
def test_knowledge_that_the_agent_lacks_is_merged(kind: str) -> None:
    assert len(plan("memories", memory(kind)).memories) == 1


@pytest.mark.parametrize("row", [memory("episodic"), memory(status="archived")])
def test_events_and_archived_memories_are_not_merged(row: dict[str, Any]) -> None:
    assert plan("memories", row) == MergePlan()


def test_known_memories_are_counted() -> None:
    assert plan("memories", memory(digest="aa")) == MergePlan(known={"memories": 1})


def test_knowledge_that_has_expired_is_counted() -> None:
    ended, past = "2026-09-30T00:00:00+00:00", memory("episodic", expires_at="2026-09-30T00:00:00+00:00")

    planned = plan("memories", memory(expires_at=ended), memory(digest="aa", expires_at=ended), past)

    assert planned == MergePlan(known={"memories": 1}, expired=1)


def test_a_belief_of_another_status_is_a_conflict() -> None:
    planned = plan("beliefs", belief("bb", "questioned"), belief("dd"), belief("ee", "dropped"))

    assert [row["statement"] for row in planned.beliefs] == ["statement dd"]
    assert [(conflict.subject, conflict.own) for conflict in planned.conflicts] == [
        ("statement bb", "held, confidence 0.80")
    ]


def test_another_value_of_a_preference_is_a_conflict() -> None:
    planned = plan("preferences", {"key": "tone", "value": "warm"}, {"key": "length", "value": "short"})

    assert [row["key"] for row in planned.preferences] == ["length"]
    assert [(conflict.own, conflict.other) for conflict in planned.conflicts] == [("dry", "warm")]


def test_a_merge_proposes_the_surest_beliefs() -> None:
    planned = plan("beliefs", *(belief(f"{number:02x}", confidence=number / 100) for number in range(30)))

    assert [row["confidence"] for row in planned.beliefs] == [number / 100 for number in range(29, 9, -1)]
    assert planned.postponed == 30 - MAX_PROPOSALS


def test_no_part_of_an_identity_is_merged() -> None:
    assert plan("aspects", {"kind": "self_concept", "content": "I am another."}) == MergePlan()
    assert plan("boundaries", {"name": "none"}) == MergePlan()
