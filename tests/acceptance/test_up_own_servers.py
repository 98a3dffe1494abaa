"""`arbor up` with a database and a broker that run elsewhere."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.servers import EmbeddedPostgres, EmbeddedValkey
from tests.acceptance.installation import Installation
from tests.support.cluster import PASSWORD, copy_cluster

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]


@pytest.fixture
def postgres(django_db_blocker: Any) -> Iterator[EmbeddedPostgres]:
    """Run a server on a copy of the migrated cluster; only its owner has a password of its own."""
    folder = Path(tempfile.mkdtemp(prefix="arbor-postgres-"))
    with django_db_blocker.unblock():
        copy_cluster(folder / "data")
    with EmbeddedPostgres(folder / "data", password=PASSWORD, durable=False, throwaway=True) as server:
        yield server


def test_external_servers_are_used_and_none_is_started(postgres: EmbeddedPostgres) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="arbor-up-") as folder,
        EmbeddedValkey.temporary() as valkey,
    ):
        own = Installation(Path(folder), DATABASE_URL=postgres.owner_url, CELERY_BROKER_URL=valkey.url)
        try:
            own.start("--no-demo", "--only", "worker,scheduler")
            names = {part["name"] for part in own.status()["parts"]}
            assert not names & {"postgres", "valkey", "web", "flower"}
            assert {"dispatcher", "heartbeat", "scheduler"} <= names
            assert own.status()["agents"]["active"] == 0
        finally:
            # Also after a failed start: the processes would outlive the servers, and disturb other tests.
            own.stop()
        assert not (Path(folder) / "postgres").exists()
        assert postgres.owner_password not in own.output
        assert valkey.password not in own.output
