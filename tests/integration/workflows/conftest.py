"""An active agent, and a fleet whose messages wait for the test."""

from __future__ import annotations

from tests.integration.heartbeats.conftest import agent, fleet, heartbeats, new_agent, scripted
from tests.integration.memories.conftest import statements

__all__ = ["agent", "fleet", "heartbeats", "new_agent", "scripted", "statements"]
