"""`arbor up` with a database and a broker that run elsewhere."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from config.servers import EmbeddedPostgres, EmbeddedValkey
from tests.acceptance.installation import Installation

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]


def test_external_servers_are_used_and_none_is_started() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="arbor-up-") as folder,
        EmbeddedPostgres.temporary() as postgres,
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
        assert postgres.password not in own.output
