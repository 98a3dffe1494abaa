"""Recalling only some of what is remembered, at a real beat."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.memories.services.store.remember import remember
from arbor.memory.values import MemoryType, NewMemory
from tests.integration.heartbeats.actions.conftest import Beat, act, outcome_of, reply

QUERY = "What is known about the reef?"
OLD, NEW = datetime(2025, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def reef(agent: Agent) -> None:
    """Let the agent remember the reef: two facts of two years, and what it saw."""
    told = [
        ("The reef was ten fathoms deep.", MemoryType.SEMANTIC, OLD),
        ("The reef is eleven fathoms deep.", MemoryType.SEMANTIC, NEW),
        ("I saw the reef from the ferry.", MemoryType.EPISODIC, NEW),
    ]
    memories = [NewMemory(content=text, type=kind, occurred_at=at) for text, kind, at in told]
    remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories)


@pytest.mark.parametrize(
    ("filters", "found"),
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
def test_what_is_recalled_is_of_the_types_and_the_time_that_were_asked_for(
    beat: Beat, agent: Agent, filters: dict[str, Any], found: set[str]
) -> None:
    beat(reply(act("recall", query=QUERY, **filters)))
    done = outcome_of(agent)
    assert done["outcome"] == ("success" if found else "partial"), done["summary"]
    assert {word for word in ("ten", "eleven", "ferry") if f" {word}" in done["brought"]} == found


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
def test_what_nothing_can_be_is_refused_and_costs_nothing(
    beat: Beat, agent: Agent, filters: dict[str, Any], reason: str
) -> None:
    prompt = beat(reply(act("recall", query=QUERY, **filters))).requests[0].system
    done = outcome_of(agent)
    assert (done["verdict"], done["cost"]) == ("invalid", 0)
    assert reason in done["reason"]
    assert "types: of these types; since: from YYYY-MM-DD on; until: before that day" in prompt
    assert "concept: its name; theme: its name; episode: its id" in prompt
