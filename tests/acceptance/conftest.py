"""Fixtures that start real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.local_model import local_model_server
from tests.integration.conftest import cleaner, database, django_db_setup, emptier, postgres, tenant

__all__ = ["cleaner", "database", "django_db_setup", "emptier", "local_model_server", "postgres", "tenant"]

#: Whole files are shared out in this order: the longest first, so that all workers end together.
LONGEST_FIRST = (
    "test_worker_kills.py",
    "test_up.py",
    "test_accessibility.py",
    "test_outages.py",
    "test_real_heartbeat.py",
    "test_newcomer.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; other tests are not touched by a stable order."""
    ranks = {name: rank - len(LONGEST_FIRST) for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(Path(item.path).name, 0))
