"""Settings as a process reads them from its environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from arbor.errors import ConfigurationInvalid
from arbor.heartbeat.failure_modes import HEARTBEATS_WATCHED
from config.environment import env, secret, with_user
from config.mail import mailers
from config.secrets import SecretFolder, SecretName
from tests.support.settings import read_settings

ROOT = Path(__file__).parents[3]


def databases(**environment: str) -> dict[str, Any]:
    values: dict[str, Any] = read_settings(**environment)["DATABASES"]
    return values


def run_in(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and a data folder of its own."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "ARBOR_DATA_DIR": str(data_dir)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("ARBOR_WEB_PORT", "http", "a whole number, got 'http'"),
        ("ARBOR_MODEL_DEADLINE_S", "soon", "a number below 999,999,999, got 'soon'"),
        # The values of a dictionary may be secret.
        ("ARBOR_KNOWLEDGE_QUOTAS", "many", "NAME=VALUE, separated by commas"),
    ],
)
def test_a_setting_that_cannot_be_read_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, wanted: str
) -> None:
    monkeypatch.setenv(name, value)
    read: Any = {"ARBOR_WEB_PORT": env.int, "ARBOR_MODEL_DEADLINE_S": env.float}.get(name, env.dict)
    with pytest.raises(ConfigurationInvalid, match=f"{name} must be {wanted}$"):
        read(name)


def test_a_secret_may_begin_with_a_dollar_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARBOR_EMAIL_PASSWORD", "$ecret")
    assert secret("ARBOR_EMAIL_PASSWORD") == "$ecret"
    assert read_settings(ARBOR_METRICS_TOKEN="$token")["ARBOR_METRICS_TOKEN"] == "$token"


def test_settings_without_servers_name_no_foreign_server(tmp_path: Path) -> None:
    settings = read_settings(ARBOR_DATA_DIR=str(tmp_path))
    for database in settings["DATABASES"].values():
        assert database["HOST"] == str(tmp_path / "run" / "not-running")
    assert settings["CELERY_BROKER_URL"].startswith(f"redis+socket://{tmp_path}/")
    assert settings["ARBOR_HAS_DATABASE"] is False


def test_settings_name_the_servers_of_a_running_installation(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    urls = {
        "database_url": "postgres://127.0.0.1:7001/arbor",
        "broker_url": "redis://127.0.0.1:7002/0",
    }
    (tmp_path / "run" / "servers.json").write_text(json.dumps(urls))
    folder = SecretFolder(path=tmp_path / "secrets")
    owner = folder.ensure(SecretName.POSTGRES_OWNER_PASSWORD)
    broker = folder.ensure(SecretName.VALKEY_PASSWORD)
    settings = read_settings(ARBOR_DATA_DIR=str(tmp_path))
    addresses = {(database["HOST"], database["PORT"]) for database in settings["DATABASES"].values()}
    assert addresses == {("127.0.0.1", 7001)}
    assert settings["CELERY_BROKER_URL"] == f"redis://:{broker}@127.0.0.1:7002/0"
    assert settings["DATABASES"]["owner"]["USER"] == "arbor_owner"
    assert settings["DATABASES"]["owner"]["PASSWORD"] == owner


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, 90.0),
        ({"ARBOR_DEFAULT_MODEL": "llamacpp/gemma"}, 300.0),
        ({"ARBOR_TIER_MODELS": "standard=anthropic/claude|ollama/llama"}, 300.0),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}, 300.0),
        ({"OPENAI_BASE_URL": "https://models.example/v1"}, 90.0),
        ({"OLLAMA_HOST": "127.0.0.1", "ARBOR_MODEL_DEADLINE_S": "45"}, 45.0),
    ],
)
def test_the_deadline_of_calls_depends_on_the_models(environment: dict[str, str], seconds: float) -> None:
    assert read_settings(**environment)["ARBOR_MODEL_DEADLINE_S"] == seconds


def test_a_database_at_the_socket_of_this_machine_can_be_named() -> None:
    database = databases(DATABASE_URL="postgres:///arbor?host=/run/postgresql")["default"]
    assert (database["HOST"], database["OPTIONS"]["host"]) == ("", "/run/postgresql")


@pytest.mark.parametrize("command", [("tenant", "list"), ("inbox", "list")])
def test_a_command_reports_that_arbor_is_not_running(command: tuple[str, ...], tmp_path: Path) -> None:
    ran = run_in(tmp_path, "-m", "config.cli", *command)
    assert ran.returncode == 1
    assert ran.stderr.startswith("arbor: Arbor is not running here: start it with `arbor up`")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("embedded", [False, True])
def test_an_unnamed_external_database_is_reported(embedded: bool, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "servers.json").write_text(json.dumps({"web_url": "http://127.0.0.1:7003/"}))
    program = "from config.runtime import open_runtime; open_runtime(tenant='acme')"
    ran = run_in(tmp_path, *(["-c", program] if embedded else ["-m", "config.cli", "tenant", "list"]))
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].endswith(
        "Arbor runs here with an external database, whose address is not set: set DATABASE_URL here too"
    )


@pytest.mark.parametrize(("alias", "at_most"), [("default", 20), ("ops", 2)])
def test_the_threads_of_one_process_share_its_connections(alias: str, at_most: int) -> None:
    database = databases(ARBOR_DB_POOL_SIZE="20")[alias]
    assert database["OPTIONS"]["pool"]["max_size"] == at_most
    assert database["OPTIONS"]["pool"].get("min_size", 4) <= at_most
    assert database["CONN_MAX_AGE"] == 0


def test_an_unreadable_address_of_a_database_is_not_shown() -> None:
    for address in ("arbor:s3/cret@db.example", "arbor:s3[cret@db.example"):
        with pytest.raises(ConfigurationInvalid, match=r"as / by %2F") as refused:
            databases(DATABASE_URL=f"postgres://{address}/arbor")
        assert "s3" not in f"{refused.value}{refused.value.__cause__}"


def test_settings_in_another_encoding_are_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = tmp_path / "settings"
    settings.write_bytes("ARBOR_LOG_LEVEL=INFO".encode("utf-16"))
    monkeypatch.setenv("ARBOR_ENV_FILE", str(settings))
    refused = run_in(tmp_path, "-m", "config.cli", "status").stderr
    assert refused == f"arbor: {settings} must be a text in UTF-8: invalid start byte\n"


def test_the_roles_sign_in_at_an_address_that_names_no_user() -> None:
    by_alias = databases(DATABASE_URL="postgres://db.example:5432/arbor")
    assert {alias: by_alias[alias]["USER"] for alias in ("default", "ops", "accounts")} == {
        "default": "arbor_app",
        "ops": "arbor_ops",
        "accounts": "arbor_accounts",
    }
    for database in by_alias.values():
        assert (database["HOST"], database["PORT"], database["NAME"]) == ("db.example", 5432, "arbor")
    assert len({by_alias[alias]["PASSWORD"] for alias in ("default", "ops", "accounts")} - {""}) == 3
    assert (by_alias["owner"]["USER"], by_alias["owner"]["PASSWORD"]) == ("", "")


@pytest.mark.parametrize("alias", ["default", "ops"])
def test_a_process_without_threads_has_a_persistent_connection(alias: str) -> None:
    database = databases(ARBOR_DB_POOL_SIZE="0")[alias]
    assert "pool" not in database["OPTIONS"]
    assert database["CONN_MAX_AGE"] is None


def test_the_doctor_reports_that_arbor_is_not_running(tmp_path: Path) -> None:
    ran = run_in(tmp_path, "-m", "config.cli", "doctor", "--json")
    details = {check["check"]: check["detail"] for check in json.loads(ran.stdout)["checks"]}
    assert details["database"].startswith("Arbor is not running here")
    assert "not-running does not answer" in details["broker"]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ARBOR_MAINTENANCE_SHARE", "0", "above 0 and at most 1, got 0"),
        ("ARBOR_MAINTENANCE_SHARE", "1.5", "above 0 and at most 1, got 1.5"),
        ("ARBOR_MEMORY_QUOTA", "0", "must be 1 to 999,999,999, got 0"),
        ("ARBOR_MEMORY_QUOTA", "1000000000", "must be 1 to 999,999,999, got 1000000000"),
        ("ARBOR_KNOWLEDGE_QUOTAS", "semantic=9, episodic=3", "NAME=NUMBER, separated by commas"),
        ("ARBOR_KNOWLEDGE_QUOTAS", f"semantic={'9' * 5_000}", "each number 1 to 999,999,999"),
        ("ARBOR_ARCHIVE_BELOW", "2", "must be 0 to 1, got 2"),
        ("ARBOR_HEALTH_LIMITS", "expired=soon", "NAME=WARN:CRITICAL"),
    ],
)
def test_invalid_maintenance_settings_are_refused_with_valid_values(
    name: str, value: str, reason: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match=re.escape(reason)):
        read_settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ARBOR_CLAIM_BATCH", "many", "must be a whole number, got 'many'"),
        ("ARBOR_CHAT_IDLE_S", "5m", "must be a number below 999,999,999, got '5m'"),
        ("ARBOR_CHAT_IDLE_S", "nan", "must be a number below 999,999,999, got 'nan'"),
        ("ARBOR_CHAT_IDLE_S", "1e300", "must be a number below 999,999,999, got '1e300'"),
        ("ARBOR_CHAT_IDLE_S", "$ARBOR_CHAT_IDLE_S", "must not name itself"),
        ("ARBOR_TLS", "enabled", "must be true or false, got 'enabled'"),
        ("ARBOR_EMBEDDING_URLS", "tei/bge", "must be NAME=VALUE, separated by commas"),
        ("ARBOR_LOG_LEVEL", "loud", "must be DEBUG, INFO, WARNING, ERROR or CRITICAL, got 'LOUD'"),
        ("ARBOR_LOG_FORMAT", "yaml", "must be console or json, got 'yaml'"),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=re.escape(f"{name} {reason}")):
        read_settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ARBOR_DISPATCH_PERIOD_S", "0", "0.05 to 3600 seconds, got 0"),
        ("ARBOR_OUTBOX_PERIOD_S", "-1", "0.05 to 3600 seconds, got -1"),
        ("ARBOR_QUEUE_LEASE_S", "0", "0.1 to 86400 seconds, got 0"),
        ("ARBOR_RUN_LEASE_S", "0", "0.1 to 86400 seconds, got 0"),
        ("ARBOR_MAX_ATTEMPTS", "0", "1 to 1000, got 0"),
        ("ARBOR_CLAIM_BATCH", "0", "1 to 100000, got 0"),
        ("ARBOR_MAX_IN_FLIGHT", "0", "1 to 1000000, got 0"),
        ("ARBOR_HEARTBEAT_INTERVAL_S", "0", "1 to 2592000, got 0"),
        ("ARBOR_TENANT_CLAIM_LIMIT", "0", "1 to 100000, got 0"),
        ("ARBOR_REFLECT_EVERY", "0", f"1 to {HEARTBEATS_WATCHED}, got 0"),
        ("ARBOR_REFLECT_EVERY", "25", f"1 to {HEARTBEATS_WATCHED}, got 25"),
        ("ARBOR_EMAIL_PORT", "65536", "0 to 65535, got 65536"),
        ("ARBOR_MCP_DEADLINE_S", "0", "0.1 to 86400 seconds, got 0"),
        ("ARBOR_MCP_RESULT_BYTES", "0", "1 to 1073741824, got 0"),
        ("ARBOR_MODEL_MAX_TOKENS", "0", "1 to 10000000, got 0"),
        ("ARBOR_MODEL_DEADLINE_S", "-1", "0.1 to 86400 seconds, got -1"),
        ("ARBOR_WEB_PAGE_BYTES", "-1", "1 to 1073741824, got -1"),
        ("ARBOR_WEB_DEADLINE_S", "0", "0.1 to 86400 seconds, got 0"),
        ("ARBOR_CLUSTER_PERIOD_S", "-60", "0 to 2592000, got -60"),
        ("ARBOR_DB_POOL_SIZE", "-1", "0 to 10000, got -1"),
        ("ARBOR_PROXIES", "-1", "0 to 100, got -1"),
    ],
)
def test_settings_have_ranges(name: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=re.escape(f"{name} must be {reason}")):
        read_settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ARBOR_DOCUMENT_MB", "0", "1 to 200, got 0"),
        ("ARBOR_DOCUMENT_PAGES", "0", "at least 1, got 0"),
        ("ARBOR_DOCUMENT_CHARACTERS", "0", "at least 1, got 0"),
        ("ARBOR_DOCUMENT_READ_S", "50", "at most 40 seconds, got 50"),
        ("ARBOR_DOCUMENT_READ_MB", "64", "at least 128, got 64"),
        ("ARBOR_PASSAGE_TOKENS", "10", "50 to 2,000 tokens, got 10"),
        ("ARBOR_PASSAGE_OVERLAP", "200", "half of their 300 tokens, got 200"),
    ],
)
def test_settings_of_documents_are_checked(name: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=re.escape(reason)):
        read_settings(**{name: value})


def test_an_allowed_domain_that_is_none_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigurationInvalid, match="an allowed domain is like"):
        read_settings(ARBOR_WEB_ALLOW="a.example, münchen.de")


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("ARBOR_SEARCH_URL", "http://a", "http://a"),
        ("ARBOR_MCP_DEADLINE_S", "2e1", 20.0),
        ("ARBOR_WEB_ALLOW", "a.example, b.example", ["a.example", "b.example"]),
        ("ARBOR_LOG_LEVEL", "debug", "DEBUG"),
    ],
)
def test_a_value_is_read_as_it_is_written(name: str, value: str, read: Any) -> None:
    assert read_settings(**{name: value})[name] == read


MAIL_SERVER: dict[str, Any] = {
    "host": "mail.example.org",
    "port": 0,
    "user": "",
    "password": "",
    "security": "starttls",
    "timeout_s": 15.0,
    "sender": "arbor@example.org",
}


def test_a_role_and_its_password_are_quoted_in_an_address() -> None:
    address = with_user("postgres://a:b@db:5432/arbor", "team/app", "p/w@#")
    assert address == "postgres://team%2Fapp:p%2Fw%40%23@db:5432/arbor"


def test_without_a_host_there_is_no_mail_server() -> None:
    assert mailers(**{**MAIL_SERVER, "host": "", "sender": ""}) == {}


@pytest.mark.parametrize(
    ("security", "options"), [("starttls", {"use_tls": True}), ("tls", {"use_ssl": True}), ("none", {})]
)
def test_a_mail_server_is_used_as_configured(security: str, options: dict[str, bool]) -> None:
    settings = mailers(**{**MAIL_SERVER, "security": security, "port": 2525, "user": "u", "password": "p"})
    assert settings["default"]["OPTIONS"] == {
        "host": "mail.example.org",
        "port": 2525,
        "timeout": 15.0,
        "username": "u",
        "password": "p",
        **options,
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"security": "ssl"}, "starttls, tls, none; got 'ssl'"),
        ({"timeout_s": 0.0}, "above 0 and at most 30, got 0"),
        ({"timeout_s": 31.0}, "above 0 and at most 30, got 31"),
        ({"sender": ""}, "must be an email address without a name, got ''"),
        ({"sender": "Arbor <arbor@example.org>"}, "without a name, got 'Arbor <arbor@example.org>'"),
        ({"user": "u", "password": "pässwörd"}, "ARBOR_EMAIL_PASSWORD must be ASCII"),
    ],
)
def test_an_invalid_mail_setting_is_refused_with_the_valid_form(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationInvalid) as refused:
        mailers(**{**MAIL_SERVER, **wrong})
    assert message in str(refused.value)
