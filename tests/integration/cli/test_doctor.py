"""Checks of `arbor doctor`: embedders, the web, history and the API."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from apps import web
from apps.default_model import credentials
from apps.memories.models import EmbedderFault, Mind
from apps.memories.services.embedding import embedding
from apps.providers import model_for
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from arbor.embedding.ports import HashEmbedder
from arbor.history import Record
from config.cli.checks import database
from config.cli.checks.database import check_role, check_vectors
from config.cli.checks.finding import CheckVerdict
from config.cli.checks.models import check_backlog, check_embedder, check_minds, check_model
from config.cli.checks.processes import check_api, check_history, check_web
from tests.integration.cli.conftest import Arbor


@pytest.fixture
def arbor_with_memory(arbor: Arbor, vega: str) -> Arbor:
    """Return the command line of an installation whose agent has a memory."""
    assert arbor("remember", vega, "The harbour is full.").code == 0
    return arbor


def test_a_database_of_one_model_passes_the_checks(arbor_with_memory: Arbor) -> None:
    for check in (check_vectors, check_embedder, check_minds, check_backlog):
        assert check().verdict is CheckVerdict.OK, check()
    assert "wordllama/l2_supercat_256, 256 dimensions, answered in" in check_embedder().detail


def test_doctor_suggests_reembedding_after_a_change_of_settings(
    arbor_with_memory: Arbor, settings: Any
) -> None:
    settings.ARBOR_EMBEDDING_DIMENSION = 128
    assert check_vectors().verdict is CheckVerdict.OK
    check = check_minds()
    assert (check.verdict, check.remedy) == (CheckVerdict.WARN, "run `arbor memory reembed`")
    assert check.detail == "1 agent uses another embedding model: wordllama of 256 dimensions"
    assert "harbour" in arbor_with_memory("recall", "Vega", "a port without room").out
    assert arbor_with_memory("memory", "reembed").code == 0
    assert check_minds().verdict is CheckVerdict.OK
    assert "harbour" in arbor_with_memory("recall", "Vega", "a port without room").out


def test_doctor_names_the_first_unprotected_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "find_role_faults", list)
    monkeypatch.setattr(
        database, "find_table_faults", lambda: [f"table_{number} has no policy" for number in range(200)]
    )
    check = check_role()
    assert check.verdict is CheckVerdict.FAIL
    assert check.detail.endswith("table_2 has no policy and 197 more")


def test_doctor_names_an_unreachable_model_and_its_remedy(arbor_with_memory: Arbor, one_tenant: str) -> None:
    with tenant_transaction(tenant_by_slug(one_tenant).id):
        Mind.objects.update(embedding_model="openai/gone", embedding_dimension=512)
    check = check_minds()
    assert check.verdict is CheckVerdict.FAIL
    assert "1 agent has openai/gone of 512 dimensions, and recall works by words alone" in check.detail
    assert "needs OPENAI_API_KEY" in check.detail
    assert "arbor memory reembed" in check.remedy
    ran = arbor_with_memory("recall", "Vega", "the harbour")
    assert ran.code == 0
    assert "harbour" in ran.out
    assert arbor_with_memory("remember", "Vega", "The cook sleeps.").code == 0
    assert arbor_with_memory("memory", "reembed").code == 0
    assert check_minds().verdict is CheckVerdict.OK


def test_a_failing_embedder_is_reported_with_the_reason(
    arbor_with_memory: Arbor, monkeypatch: pytest.MonkeyPatch
) -> None:
    EmbedderFault.objects.create(
        embedding_model="tei/bge 384",
        failures=3,
        since="2024-03-01T12:00Z",
        retry_at="2024-03-01T12:10Z",
        error="it does not answer",
    )
    backlog = check_backlog()
    assert backlog.verdict is CheckVerdict.WARN
    assert "tei/bge 384 failed 3 times since 2024-03-01 12:00 UTC: it does not answer" in backlog.detail
    monkeypatch.setattr(embedding, "connect_embedder", lambda *_, **__: HashEmbedder(64))
    embedding.embedder_for.cache_clear()
    try:
        assert "makes vectors of 64 numbers, and 256 are configured" in check_embedder().detail
    finally:
        embedding.embedder_for.cache_clear()


def test_settings_of_an_invalid_model_fail_the_checks(arbor_with_memory: Arbor, settings: Any) -> None:
    settings.ARBOR_EMBEDDING_DIMENSION = 4096
    for check in (check_embedder, check_minds):
        result = check()
        assert result.verdict is CheckVerdict.FAIL
        assert "must be at most 1024, got 4096" in result.detail


def test_an_invalid_setting_is_reported_with_the_valid_values(
    arbor_with_memory: Arbor, settings: Any
) -> None:
    settings.ARBOR_EMBED_AT_STORAGE = "sometimes"
    check = check_embedder()
    assert "is auto, always, never, got 'sometimes'" in check.detail
    assert check.remedy == "correct ARBOR_EMBED_AT_STORAGE"


@pytest.fixture
def _new_credentials() -> Iterator[None]:
    """Read the keys of models from the settings of the test, and discard them afterwards."""
    for cached in (credentials, model_for):
        cached.cache_clear()
    yield
    for cached in (credentials, model_for):
        cached.cache_clear()


@pytest.mark.usefixtures("_new_credentials", "database")
def test_a_server_without_a_named_model_is_warned_of(settings: Any) -> None:
    settings.ARBOR_DEFAULT_MODEL = ""
    settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "sk-own", "http://127.0.0.1:8000/v1"
    check = check_model()
    assert (check.verdict, check.detail[:15]) == (CheckVerdict.WARN, "openai/default:")
    assert "ARBOR_DEFAULT_MODEL=openai/NAME" in check.remedy
    settings.ARBOR_DEFAULT_MODEL = "openai/default"
    assert check_model().verdict is CheckVerdict.OK


@pytest.fixture
def _new_web_clients() -> Iterator[None]:
    """Build the clients of the web by the settings of the test, and discard them afterwards."""
    for client in (web.search, web.fetch):
        client.cache_clear()
    yield
    for client in (web.search, web.fetch):
        client.cache_clear()


@pytest.mark.usefixtures("_new_web_clients")
def test_a_closed_web_passes_and_an_open_web_is_described(settings: Any) -> None:
    check = check_web()
    assert (check.verdict, "ARBOR_SEARCH_URL" in check.detail, "ARBOR_WEB_ALLOW" in check.detail) == (
        CheckVerdict.OK,
        True,
        True,
    )
    settings.ARBOR_SEARCH_URL, settings.ARBOR_WEB_ALLOW = "http://search.example:8888/", ["example.org"]
    web.search.cache_clear()
    web.fetch.cache_clear()
    assert check_web().detail == "searched by search.example; agents may read example.org"
    settings.ARBOR_WEB_ALLOW = ["https://example.org/"]
    web.fetch.cache_clear()
    assert check_web().verdict is CheckVerdict.FAIL


def test_doctor_shows_the_ages_and_sizes_of_history(arbor_with_memory: Arbor, settings: Any) -> None:
    settings.ARBOR_HISTORY_AGES = {**settings.ARBOR_HISTORY_AGES, Record.CALLS: None}
    check = check_history()
    assert check.verdict is CheckVerdict.OK
    assert re.match(r"heartbeats 90 d \(\d+ MB\), calls for ever \(\d+ MB\), ", check.detail)


class ReadyHandler(BaseHTTPRequestHandler):
    """A handler that answers `/readyz` like the API."""

    reached = {"database": True, "broker": True}

    def do_GET(self) -> None:
        self.send_response(200 if all(self.reached.values()) else 503)
        self.end_headers()
        if self.path == "/readyz":
            self.wfile.write(json.dumps(self.reached).encode())

    def log_message(self, *_arguments: Any) -> None:
        """Print nothing."""


@pytest.fixture
def api_port(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[int]:
    """Return the port of a server that answers like the API, for an installation without `arbor up`."""
    server = HTTPServer(("127.0.0.1", 0), ReadyHandler)
    thread = threading.Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    monkeypatch.setenv("ARBOR_API_PORT", str(server.server_port))
    monkeypatch.setenv("ARBOR_DATA_DIR", str(tmp_path))
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_ready_api_passes_the_check(api_port: int) -> None:
    assert (check_api().verdict, check_api().detail) == (CheckVerdict.OK, f"http://127.0.0.1:{api_port}/")


def test_the_api_is_asked_directly_in_an_environment_with_a_proxy(
    api_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert check_api().verdict is CheckVerdict.OK


def test_a_server_that_the_api_does_not_reach_is_named(
    api_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadyHandler, "reached", {"database": True, "broker": False})
    check = check_api()
    assert check.verdict is CheckVerdict.FAIL
    assert "is not ready: it does not reach broker" in check.detail


@pytest.mark.parametrize(
    ("parts", "verdict"), [([], CheckVerdict.WARN), ([{"name": "api"}], CheckVerdict.FAIL)]
)
def test_only_a_supervised_api_must_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, parts: list[dict[str, str]], verdict: CheckVerdict
) -> None:
    monkeypatch.setenv("ARBOR_API_PORT", "1")
    monkeypatch.setenv("ARBOR_DATA_DIR", str(tmp_path))
    (tmp_path / "run").mkdir()
    (tmp_path / "run/up.json").write_text(json.dumps({"parts": parts}))
    check = check_api()
    assert check.verdict is verdict
    assert "http://127.0.0.1:1/ does not answer" in check.detail
    assert "arbor api" in check.remedy


@pytest.mark.parametrize(
    ("host", "url"), [("::1", "http://[::1]:1/"), ("a:b", "http://[a:b]:1/"), (".", "http://.:1/")]
)
def test_an_api_at_another_address_is_named_by_its_url(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, url: str
) -> None:
    for name, value in (("DATA_DIR", str(tmp_path)), ("API_HOST", host), ("API_PORT", "1")):
        monkeypatch.setenv(f"ARBOR_{name}", value)
    check = check_api()
    assert (check.verdict, f"{url} does not answer" in check.detail) == (CheckVerdict.WARN, True)
