"""Liveness rows of processes, written on their own connections."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connections

from apps.heartbeats.services import processes
from apps.heartbeats.services.processes import (
    LivenessReport,
    fleet_model,
    living_processes,
    write_liveness,
)
from apps.heartbeats.services.reports.status import fleet_status
from apps.tenants.scope import APP
from arbor.errors import ConfigurationInvalid
from arbor.models.handles import Provider
from arbor.models.slots import ProviderSlots
from config.cli.checks.models import check_model
from workers import liveness


def _report(name: str = "host:1", queues: str = "llm") -> LivenessReport:
    return LivenessReport(
        name=name,
        kind="worker",
        queues=queues,
        pool="threads",
        concurrency=2,
        started_at=datetime.now(UTC),
    )


def _write_liveness(name: str = "host:1", queues: str = "llm", **others: Any) -> None:
    write_liveness(replace(_report(name, queues), **others))


def test_a_process_with_a_liveness_row_is_alive(database: None) -> None:
    _write_liveness()
    _write_liveness()
    assert [process.name for process in living_processes()] == ["host:1"]


def test_a_process_that_follows_under_a_name_replaces_the_row(database: None) -> None:
    # A container has the same host name and process id after it was killed.
    _write_liveness()
    started_at = datetime.now(UTC) + timedelta(minutes=1)
    _write_liveness(pool="prefork", concurrency=4, started_at=started_at)
    (process,) = living_processes()
    assert (process.pool, process.concurrency, process.started_at) == ("prefork", 4, started_at)


def test_the_liveness_connection_has_all_options_of_the_settings(
    database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A substitute for `sslmode`, which a server without TLS cannot show.
    monkeypatch.setitem(
        connections[APP].settings_dict["OPTIONS"], "options", "-c default_transaction_read_only=on"
    )
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        _write_liveness()


def test_a_process_reports_again_after_a_failover(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping = threading.Event()
    errors: list[Exception] = [psycopg.errors.ReadOnlySqlTransaction("read-only"), ConfigurationInvalid()]

    def write(_report: LivenessReport) -> None:
        if errors:
            raise errors.pop()
        stopping.set()

    monkeypatch.setattr(liveness, "write_liveness", write)
    liveness.report_until(_report(), stopping, period_s=0)
    assert stopping.is_set()


def test_the_fleet_model_is_that_of_the_running_workers(database: None, settings: Any) -> None:
    settings.ARBOR_DEFAULT_MODEL = "ollama/llama3.2"
    assert fleet_model() == "ollama/llama3.2"
    _write_liveness()
    _write_liveness("host:2", "heartbeat")
    settings.ARBOR_DEFAULT_MODEL = "reflex/policy"
    assert fleet_model() == fleet_status().model == "ollama/llama3.2"
    assert check_model().detail.startswith("the running workers use ollama/llama3.2;")
    _write_liveness("host:2", "heartbeat")
    assert fleet_model() == "reflex/policy"


def test_processes_report_calls_that_wait_for_a_provider(
    database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots = ProviderSlots(lambda _provider: 2)
    monkeypatch.setattr(processes, "provider_slots", slots)
    with slots.of(Provider.OLLAMA).slot(may_wait=lambda: True, every_s=1):
        _write_liveness()
        _write_liveness("host:2")
    assert fleet_status().provider_calls == {"ollama": {"limit": 4, "sent": 2, "waiting": 0}}
