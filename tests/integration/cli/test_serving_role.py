"""Processes, which refuse to serve as a role that row-level security does not bind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import execute_from_command_line
from django.core.management.commands import migrate
from django.db import connections, transaction

from apps.agents.services.authority import ensure_system_authority, refuse_other_master_key
from apps.tenants.scope import OWNER
from config.cli.installation import prepare, serving_role
from config.keys import KeySource
from config.servers.ports import free_port
from config.servers.postgres import EmbeddedPostgres
from tests.integration.cli.conftest import Arbor

ROOT = Path(__file__).parents[3]
NO_BROKER = "redis://127.0.0.1:1/0"
STARTS = {
    "web": ("web", "--port", "0"),
    "worker": ("worker", "--queues", "cleanup", "--concurrency", "1"),
    "threads": ("worker", "--queues", "llm", "--pool", "threads", "--concurrency", "2"),
    "scheduler": ("scheduler",),
}


def run_arbor(*arguments: str, url: str, within_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "config.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, "ARBOR_APP_DATABASE_URL": url, "CELERY_BROKER_URL": NO_BROKER},
        capture_output=True,
        text=True,
        check=False,
        timeout=within_s,
    )


@pytest.mark.parametrize("arguments", STARTS.values(), ids=STARTS.keys())
def test_a_process_does_not_serve_as_a_superuser(
    arguments: tuple[str, ...], database: None, postgres: EmbeddedPostgres
) -> None:
    ended = run_arbor(*arguments, url=postgres.superuser_url, within_s=120)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1, ended.stderr
    (line,) = ended.stderr.strip().splitlines()
    assert "is a superuser" in line
    assert "ARBOR_APP_ROLE" in line


def test_a_console_without_its_database_starts_and_waits() -> None:
    url = f"postgres://arbor_app:secret@127.0.0.1:{free_port()}/arbor"
    with subprocess.Popen(
        [sys.executable, "-m", "config.cli", "web", "--port", "0"],
        cwd=ROOT,
        env={**os.environ, "ARBOR_APP_DATABASE_URL": url, "CELERY_BROKER_URL": NO_BROKER},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as web:
        assert web.stderr is not None
        output = ""
        # Read until the process waits; a process that ends instead closes its output.
        while "the database does not answer" not in output and (line := web.stderr.readline()):
            output += line
        with pytest.raises(subprocess.TimeoutExpired):
            web.wait(timeout=1)
        web.terminate()
        output += web.stderr.read()
    assert "the database does not answer" in output
    assert "Traceback" not in output


def test_a_database_is_not_prepared_for_an_unsafe_role(arbor: Arbor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_role, "find_role_faults", lambda: ["the serving role arbor owns tables"])
    monkeypatch.setattr(prepare, "_seed_templates", lambda: pytest.fail("the templates were seeded"))
    ran = arbor("prepare", "--no-demo")
    assert ran.code == 1
    assert "the serving role arbor owns tables" in ran.err


@pytest.fixture(params=["", "0123456789abcdef" * 4], ids=["none", "another"])
def other_master_key(
    database: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Replace the master key of this database by none or by another one, and let no migration begin."""
    ensure_system_authority()
    settings.ARBOR_MASTER_KEYS = KeySource(current_text=request.param)
    monkeypatch.setattr(migrate.Command, "handle", lambda *_, **__: pytest.fail("the database was migrated"))


@pytest.mark.parametrize("arguments", [("prepare", "--no-demo"), ("manage", "migrate")])
def test_without_its_master_key_no_database_is_changed(
    arbor: Arbor, other_master_key: None, arguments: tuple[str, ...]
) -> None:
    ran = arbor(*arguments)
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "ARBOR_MASTER_KEY" in ran.err


def test_djangos_command_line_checks_the_master_key_too(
    other_master_key: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        execute_from_command_line(["manage.py", "migrate"])
    assert ended.value.code == 1
    assert "ARBOR_MASTER_KEY" in capsys.readouterr().err


def test_a_master_key_is_checked_in_a_database_of_an_earlier_version(arbor: Arbor) -> None:
    ensure_system_authority()
    with transaction.atomic(using=OWNER):
        with connections[OWNER].cursor() as cursor:
            cursor.execute("ALTER TABLE agents_authoritykey RENAME created_at TO made_at")
        refuse_other_master_key()
        transaction.set_rollback(True, using=OWNER)
