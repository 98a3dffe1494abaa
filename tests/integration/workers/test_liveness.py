"""Liveness rows of processes, written on their own connections."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest
from django.db import connections

from apps.heartbeats.services.processes import LivenessReport, living_processes, write_liveness
from apps.tenants.scope import APP


def _write_liveness() -> None:
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


def test_a_process_with_a_liveness_row_is_alive(database: None) -> None:
    _write_liveness()
    _write_liveness()
    assert [process.name for process in living_processes()] == ["host:1"]


def test_the_liveness_connection_has_all_options_of_the_settings(
    database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A substitute for `sslmode`, which a server without TLS cannot show.
    monkeypatch.setitem(
        connections[APP].settings_dict["OPTIONS"], "options", "-c default_transaction_read_only=on"
    )
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        _write_liveness()
