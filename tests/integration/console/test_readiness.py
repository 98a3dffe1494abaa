"""`/readyz` of console and API, which reports within a bounded time whether database and broker answer."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import connections
from django.test import Client, override_settings

from apps import readiness
from apps.readiness import BoundedCheck, check_readiness
from apps.tenants.scope import APP
from tests.support.api import API_SETTINGS

#: An address at which no server listens.
NO_BROKER = "redis://127.0.0.1:1/0"


@pytest.fixture(params=["console", "api"], autouse=True)
def _process(request: Any, database: None, settings: Any) -> Any:
    """Serve the addresses of either process, with a broker in memory."""
    settings.CELERY_BROKER_URL = "memory://"
    with override_settings(**(API_SETTINGS if request.param == "api" else {})):
        yield


def ready() -> tuple[int, Any]:
    response = Client().get("/readyz")
    return response.status_code, response.json()


def test_a_process_with_its_servers_is_ready() -> None:
    assert ready() == (200, {"database": True, "broker": True})


def test_probes_may_name_any_host_and_need_no_tls(settings: Any) -> None:
    settings.ALLOWED_HOSTS, settings.SECURE_SSL_REDIRECT = ["arbor.example.org"], True
    probe = Client(headers={"host": "10.0.0.7:8000"})
    assert [probe.get(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]


def test_a_process_without_its_broker_is_not_ready(settings: Any) -> None:
    settings.CELERY_BROKER_URL = NO_BROKER
    assert ready() == (503, {"database": True, "broker": False})


def test_a_process_without_its_database_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections.settings[APP], "PORT", "1")
    assert ready() == (503, {"database": False, "broker": True})
    assert Client().get("/healthz").status_code == 200


def test_a_server_that_hangs_does_not_hang_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    released, runs = threading.Event(), []

    def hang() -> None:
        runs.append(1)
        released.wait(60)

    monkeypatch.setattr(readiness, "_BROKER", BoundedCheck("broker", hang))
    started = time.monotonic()
    try:
        found = [check_readiness(within_s=2) for _ in range(2)]
    finally:
        released.set()
    assert time.monotonic() - started < 60
    assert [answer.broker for answer in found] == [False, False]
    # The second request waits for the check of the first.
    assert len(runs) == 1


def test_a_check_runs_again_after_its_thread_could_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    check = BoundedCheck("broker", lambda: None)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            check.start()
    assert check.start().result(10) is True
