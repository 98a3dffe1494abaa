"""Fixtures that start real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.wsgi import get_wsgi_application

from tests.acceptance.console_server import served
from tests.acceptance.local_model import local_model_server
from tests.support.database import prepare_statements

__all__ = ["local_model_server"]

#: Whole files are distributed to the workers in this order: the longest first, so that all workers end together.
LONGEST_FIRST = (
    "test_worker_kills.py",
    "test_up.py",
    "test_accessibility.py",
    "test_outages.py",
    "test_real_heartbeat.py",
    "test_newcomer.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """Load the fixtures of the server, once for all folders."""
    config.pluginmanager.import_plugin("tests.support.server_fixtures")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the longest files first; the order of other tests stays."""
    ranks = {name: rank - len(LONGEST_FIRST) for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(Path(item.path).name, 0))


@pytest.fixture(autouse=True, scope="module")
def _statements_are_not_prepared() -> None:
    """Prepare no statements, like the process of the console, also after tests that do."""
    prepare_statements(prepared=False)


@pytest.fixture(scope="module")
def address(django_db_setup: None) -> Iterator[str]:
    """Serve the console on a port of its own."""
    with served(get_wsgi_application()) as url:
        yield url
