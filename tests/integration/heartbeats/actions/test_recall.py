"""Recalls with filters by a real heartbeat."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.memories.services.store.remember import remember
from arbor.memory.values import MemoryType, NewMemory
from tests.integration.heartbeats.actions.conftest import RunReplies
from tests.integration.heartbeats.conftest import first_action
from tests.integration.heartbeats.heartbeat_runner import action_of, reply_of

QUERY = "What is known about the reef?"
OLD, NEW = datetime(2025, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def reef(agent: Agent) -> None:
    """Store two facts of two years about the reef, and one episodic memory."""
    new_memories = [
        ("The reef was ten fathoms deep.", MemoryType.SEMANTIC, OLD),
        ("The reef is eleven fathoms deep.", MemoryType.SEMANTIC, NEW),
        ("I saw the reef from the ferry.", MemoryType.EPISODIC, NEW),
    ]
    memories = [NewMemory(content=text, type=kind, occurred_at=at) for text, kind, at in new_memories]
    remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, {"ten", "eleven", "ferry"}),
        ({"types": None, "since": None, "until": None}, {"ten", "eleven", "ferry"}),
        ({"types": ["semantic"]}, {"ten", "eleven"}),
        ({"types": "Episodic"}, {"ferry"}),
        ({"since": "2026-01-01"}, {"eleven", "ferry"}),
        ({"until": "2026-01-01"}, {"ten"}),
        ({"types": ["semantic"], "since": "2025-03-01T13:00", "until": "2026-03-01T12:00:01Z"}, {"eleven"}),
        ({"since": "2027-01-01"}, set()),
    ],
)
def test_a_recall_is_filtered_by_type_and_time(
    run_replies: RunReplies, agent: Agent, filters: dict[str, Any], expected: set[str]
) -> None:
    run_replies(reply_of(action_of("recall", query=QUERY, **filters)))
    action = first_action(agent)
    assert action["outcome"] == ("success" if expected else "partial"), action["summary"]
    assert {word for word in ("ten", "eleven", "ferry") if f" {word}" in action["brought"]} == expected


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ({"types": ["dreams"]}, "'episodic', 'semantic', 'procedural' or 'strategic'"),
        ({"types": 7}, "types: Input should be a valid tuple"),
        ({"since": "last spring"}, "since: Value error, expected a day such as 2026-01-31"),
        ({"until": 1_700_000_000}, "until: Value error, expected a day such as 2026-01-31"),
        ({"since": "0001-01-01T00:00+14:00"}, "since: Value error, expected a day"),
        (
            {"since": "2026-02-01", "until": "2026-01-01"},
            "since must be before until, got 2026-02-01 and 2026-01-01",
        ),
    ],
)
def test_an_impossible_filter_is_refused_without_cost(
    run_replies: RunReplies, agent: Agent, filters: dict[str, Any], reason: str
) -> None:
    prompt = run_replies(reply_of(action_of("recall", query=QUERY, **filters))).requests[0].system
    action = first_action(agent)
    assert (action["verdict"], action["cost"]) == ("invalid", 0)
    assert reason in action["reason"]
    assert "types: of these types; since: from YYYY-MM-DD on; until: before that day" in prompt
    assert "concept: its name; cluster: its name; episode: its id" in prompt
