"""Liveness rows of processes, written on their own connections."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest
from django.db import connections

from apps.heartbeats.services.processes import LivenessReport, living_processes, write_liveness
from apps.tenants.scope import APP


def _say() -> None:
    write_liveness(
        LivenessReport(
            name="host:1",
            kind="worker",
            queues="llm",
            pool="threads",
            concurrency=2,
            started_at=datetime.now(UTC),
        )
    )


def test_a_process_that_said_so_lives(database: None) -> None:
    _say()
    _say()
    assert [process.name for process in living_processes()] == ["host:1"]


def test_its_connection_has_every_option_of_the_settings(
    database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As good as `sslmode`, which a server without TLS could not show.
    monkeypatch.setitem(
        connections[APP].settings_dict["OPTIONS"], "options", "-c default_transaction_read_only=on"
    )
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        _say()
