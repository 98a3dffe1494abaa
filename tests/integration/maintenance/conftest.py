"""Agents with empty minds, and a fleet whose messages wait for the test."""

from __future__ import annotations

from tests.integration.heartbeats.conftest import fleet, scripted
from tests.integration.memories.conftest import foreign_mind, mind, other_mind, statements

__all__ = ["fleet", "foreign_mind", "mind", "other_mind", "scripted", "statements"]
