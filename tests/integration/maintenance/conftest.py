"""Agents with empty minds or an episode to summarize, and a fleet whose messages wait for the test."""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.models import Agent
from tests.integration.heartbeats.conftest import fleet, scripted
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.maintenance.maintenance_setup import close_and_settle, remember_talk
from tests.integration.memories.conftest import foreign_mind, mind, other_mind, statements

__all__ = ["fleet", "foreign_mind", "mind", "other_mind", "scripted", "statements"]


@pytest.fixture
def agent(mind: Agent, fleet: Fleet, settings: Any) -> Agent:
    """Return an agent with an old episode that waits for its summary by the scripted model."""
    settings.ARBOR_MAINTENANCE_MODEL = "scripted/model"
    remember_talk(mind)
    close_and_settle(mind)
    assert fleet.messages == []
    return mind
