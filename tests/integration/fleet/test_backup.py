"""Dump and restore with the commands of the documentation, into a cluster whose roles have other names and passwords."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from apps.tenants.models import Tenant
from config.servers import EmbeddedPostgres
from config.servers.postgres import SUPERUSER, postgres_home
from tests.support.sealed import SEALED, Secrets, make_secrets

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "how-to" / "operate.md"
OWNER, OWNER_PASSWORD = "other_owner", "other-password-of-the-owner"
APP_ROLE, OPS_ROLE, ACCOUNTS_ROLE = "other_app", "other_ops", "other_accounts"


def documented_commands(word: str) -> str:
    """Return the commands of the block of the guide that contains a word."""
    (block,) = (
        block for block in re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL) if word in block
    )
    return str(block)


@pytest.fixture
def secrets(tenant: Tenant) -> Secrets:
    """Store a secret of each kind, and return them."""
    return make_secrets(tenant)


@pytest.fixture
def target() -> Iterator[EmbeddedPostgres]:
    """Return another server with an owner and an empty database, and none of the first server's serving roles."""
    with EmbeddedPostgres.temporary() as server:
        with psycopg.connect(server.superuser_url, autocommit=True) as session:
            session.execute(
                sql.SQL("CREATE ROLE {} LOGIN CREATEROLE PASSWORD {}").format(
                    sql.Identifier(OWNER), sql.Literal(OWNER_PASSWORD)
                )
            )
            session.execute(sql.SQL("CREATE DATABASE restored OWNER {}").format(sql.Identifier(OWNER)))
        yield server


class Shell:
    """Runs commands with a password file, and records the arguments of every program they start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.arguments = folder / "arguments"
        self._programs = folder / "bin"
        self._programs.mkdir()
        for name in ("pg_dump", "pg_restore"):
            program = postgres_home() / "bin" / name
            script = f'#!/bin/sh\necho "{name} $*" >> "{self.arguments}"\nexec "{program}" "$@"\n'
            (self._programs / name).write_text(script)
            (self._programs / name).chmod(0o755)
        (self._programs / "arbor").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m config.cli "$@"\n')
        (self._programs / "arbor").chmod(0o755)

    def run(self, commands: str, server: EmbeddedPostgres, user: str, password: str, **more: str) -> None:
        """Run commands as a role of a server; the addresses of the guide are replaced by the server's."""
        passwords = self.folder / "pgpass"
        passwords.touch(mode=0o600)
        passwords.write_text(f"127.0.0.1:{server.port}:*:{user}:{password}\n")
        connection = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": user, **more}
        unexported = re.sub(r"^export .*$", "", commands, flags=re.MULTILINE)
        result = subprocess.run(
            ["sh", "-euc", "umask 022\n" + unexported.replace("arbor.dump", str(self.folder / "arbor.dump"))],
            cwd=ROOT,
            env=environment(
                PATH=f"{self._programs}{os.pathsep}{os.environ['PATH']}",
                PGPASSFILE=str(passwords),
                **connection,
            ),
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}


def count_rows(server: EmbeddedPostgres, database: str) -> dict[str, int]:
    with psycopg.connect(server.url(user=SUPERUSER, database=database)) as session:
        tables = session.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        return {name: _count(session, name) for (name,) in tables.fetchall()}


def _count(session: psycopg.Connection[Any], table: str) -> int:
    row = session.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
    assert row is not None
    return int(row[0])


def arbor(url: str, folder: Path, *arguments: str) -> Any:
    result = subprocess.run(
        [sys.executable, "-m", "config.cli", *arguments, "--json"],
        cwd=ROOT,
        env=environment(**installation(url, folder)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout, result.stderr
    return json.loads(result.stdout)


def installation(url: str, folder: Path) -> dict[str, str]:
    """Return the environment of the restored installation: other roles, and the master key of the first one."""
    return {
        "DATABASE_URL": url,
        "ARBOR_APP_ROLE": APP_ROLE,
        "ARBOR_OPS_ROLE": OPS_ROLE,
        "ARBOR_ACCOUNTS_ROLE": ACCOUNTS_ROLE,
        "ARBOR_MASTER_KEY": settings.ARBOR_MASTER_KEYS.current_text,
        "ARBOR_OPERATOR_PASSWORD": "ford-at-the-bend",
        "ARBOR_DATA_DIR": str(folder / "data"),
    }


def test_a_dump_is_private_and_shows_no_password(
    secrets: Secrets, postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    commands = documented_commands("pg_dump")
    assert "DATABASE_URL" not in commands
    shell = Shell(tmp_path)
    shell.run(commands, postgres, SUPERUSER, postgres.password, PGDATABASE="arbor")
    assert stat.S_IMODE((tmp_path / "arbor.dump").stat().st_mode) == 0o600
    assert postgres.password not in shell.arguments.read_text().split()
    assert shell.arguments.read_text().startswith("pg_dump --format=custom")


def test_a_dump_is_restored_under_other_roles(
    secrets: Secrets, postgres: EmbeddedPostgres, target: EmbeddedPostgres, tmp_path: Path
) -> None:
    shell = Shell(tmp_path)
    shell.run(documented_commands("pg_dump"), postgres, SUPERUSER, postgres.password, PGDATABASE="arbor")
    url = target.url(user=OWNER, password=OWNER_PASSWORD, database="restored")
    shell.run(
        documented_commands("pg_restore"),
        target,
        OWNER,
        OWNER_PASSWORD,
        PGDATABASE="restored",
        **installation(url, tmp_path),
    )
    before, after = count_rows(postgres, "arbor"), count_rows(target, "restored")
    changed = {table: after[table] - count for table, count in before.items() if after[table] != count}
    # `arbor prepare` adds the templates and skills of this version, and the first operator.
    assert changed.keys() <= {
        "agents_builtintemplate",
        "knowledge_globalskill",
        "knowledge_globalskillversion",
        "tenants_user",
        "audit_platformevent",
    }
    assert before["agents_agentkey"] == 12
    with psycopg.connect(target.superuser_url) as session:
        known = {name for (name,) in session.execute("SELECT rolname FROM pg_roles").fetchall()}
        policies = {role for (role,) in session.execute("SELECT unnest(roles) FROM pg_policies").fetchall()}
    assert {APP_ROLE, OPS_ROLE, ACCOUNTS_ROLE} <= known
    assert not {"arbor_app", "arbor_ops", "arbor_accounts"} & known
    assert policies <= {APP_ROLE, OPS_ROLE, ACCOUNTS_ROLE}
    uses = {
        row["kind"]: sum(row["sealed"].values()) for row in arbor(url, tmp_path, "keys", "status")["secrets"]
    }
    assert uses == SEALED
    checks = {row["check"]: row["verdict"] for row in arbor(url, tmp_path, "doctor")["checks"]}
    assert {checks[name] for name in ("database", "roles and policies", "migrations", "agents' keys")} == {
        "ok"
    }
