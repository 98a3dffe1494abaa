"""Settings as a process reads them from its environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.settings import read_settings

ROOT = Path(__file__).parents[3]


def databases(**environment: str) -> dict[str, Any]:
    found: dict[str, Any] = read_settings(**environment)["DATABASES"]
    return found


def test_without_servers_nobody_elses_are_asked(tmp_path: Path) -> None:
    found = read_settings(ARBOR_DATA_DIR=str(tmp_path))
    for database in found["DATABASES"].values():
        assert database["HOST"] == str(tmp_path / "run" / "not-running")
    assert found["CELERY_BROKER_URL"].startswith(f"redis+socket://{tmp_path}/")
    assert found["ARBOR_HAS_DATABASE"] is False


def test_the_servers_of_a_running_installation_are_asked(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    urls = {
        "database_url": "postgres://arbor:x@127.0.0.1:7001/arbor",
        "broker_url": "redis://:x@127.0.0.1:7002/0",
    }
    (tmp_path / "run" / "servers.json").write_text(json.dumps(urls))
    found = read_settings(ARBOR_DATA_DIR=str(tmp_path))
    addresses = {(database["HOST"], database["PORT"]) for database in found["DATABASES"].values()}
    assert addresses == {("127.0.0.1", 7001)}
    assert found["CELERY_BROKER_URL"] == urls["broker_url"]


def test_a_database_at_the_socket_of_this_machine_can_be_named() -> None:
    found = databases(DATABASE_URL="postgres:///arbor?host=/run/postgresql")["default"]
    assert (found["HOST"], found["OPTIONS"]["host"]) == ("", "/run/postgresql")


@pytest.mark.parametrize("command", [("tenant", "list"), ("inbox", "list")])
def test_a_command_says_that_arbor_is_not_running(command: tuple[str, ...], tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "config.cli", *command],
        cwd=ROOT,
        env={**os.environ, "ARBOR_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("arbor: Arbor is not running here: start it with `arbor up`")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("embedded", [False, True])
def test_where_arbor_runs_with_a_database_that_is_named_elsewhere_it_is_said(
    embedded: bool, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "servers.json").write_text(json.dumps({"web_url": "http://127.0.0.1:7003/"}))
    program = "from config.runtime import open_runtime; open_runtime(tenant='acme')"
    ran = subprocess.run(
        [sys.executable, *(["-c", program] if embedded else ["-m", "config.cli", "tenant", "list"])],
        cwd=ROOT,
        env={**os.environ, "ARBOR_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].endswith(
        "Arbor runs here with an external database, which is not named: set DATABASE_URL here too"
    )


@pytest.mark.parametrize(("alias", "at_most"), [("default", 20), ("ops", 2)])
def test_the_threads_of_one_process_share_its_connections(alias: str, at_most: int) -> None:
    found = databases(ARBOR_DB_POOL_SIZE="20")[alias]
    assert found["OPTIONS"]["pool"]["max_size"] == at_most
    assert found["OPTIONS"]["pool"].get("min_size", 4) <= at_most
    assert found["CONN_MAX_AGE"] == 0


def test_the_roles_sign_in_at_an_address_that_names_no_user() -> None:
    found = databases(DATABASE_URL="postgres://db.example:5432/arbor")
    assert {alias: found[alias]["USER"] for alias in ("default", "ops")} == {
        "default": "arbor_app",
        "ops": "arbor_ops",
    }
    for each in found.values():
        assert (each["HOST"], each["PORT"], each["NAME"]) == ("db.example", 5432, "arbor")
    assert found["default"]["PASSWORD"] != found["ops"]["PASSWORD"] != ""
    assert (found["owner"]["USER"], found["owner"]["PASSWORD"]) == ("", "")


@pytest.mark.parametrize("alias", ["default", "ops"])
def test_a_process_without_threads_keeps_its_connection(alias: str) -> None:
    found = databases(ARBOR_DB_POOL_SIZE="0")[alias]
    assert "pool" not in found["OPTIONS"]
    assert found["CONN_MAX_AGE"] is None


def test_the_doctor_says_that_arbor_is_not_running(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "config.cli", "doctor", "--json"],
        cwd=ROOT,
        env={**os.environ, "ARBOR_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = {each["check"]: each["detail"] for each in json.loads(ran.stdout)["checks"]}
    assert found["database"].startswith("Arbor is not running here")
    assert "not-running does not answer" in found["broker"]
