"""A mind with a stored talk that two processes have cached."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.memories.services.recall.mind_cache import MindCache
from tests.integration.memories.conftest import turns
from tests.integration.memories.recall.cache_and_scan import Checker
from tests.support.memories import TALK, store_memories


@pytest.fixture
def other_cache() -> MindCache:
    """Return the mind cache of another process."""
    return MindCache()


@pytest.fixture
def checker(mind: Agent, cache: MindCache, other_cache: MindCache) -> Checker:
    """Return a checker of an agent with a stored talk, whose mind is cached in both processes."""
    store_memories(mind, *turns(*TALK))
    new_checker = Checker(mind, cache, other_cache)
    new_checker.recall()
    return new_checker
