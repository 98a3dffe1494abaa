"""A mind whose memories have been clustered."""

from __future__ import annotations

from uuid import UUID

import pytest

from apps.agents.models import Agent
from tests.integration.memories.subjects import recluster, store_all_subjects


@pytest.fixture
def clustered(mind: Agent) -> dict[str, list[UUID]]:
    """Return the memories of each subject (`store_all_subjects`), after a reclustering of the mind."""
    stored = store_all_subjects(mind)
    recluster(mind)
    return stored
