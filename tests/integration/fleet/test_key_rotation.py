"""Rotation of the master key while processes run: every kind of secret, killed, resumed, retired."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth import HASH_SESSION_KEY
from django.db import ProgrammingError, connections
from django.urls import reverse

from apps.agents.models import AgentKey
from apps.audit.models import PlatformEvent
from apps.fleet.key_rotation import key_uses, require_unused, rotate_keys, used_by
from apps.heartbeats.models import Process
from apps.heartbeats.services.processes import LivenessReport, write_liveness
from apps.tenants.keys import master_keys, role_passwords
from apps.tenants.models import ConsoleSession, Tenant
from apps.tenants.postgresql.passwords import RoleConnection
from apps.tenants.scope import APP, OPS, tenant_transaction
from apps.tenants.sessions import read_session, sign_session
from arbor.errors import TransitionIllegal
from arbor.sealing import MasterKeys
from config.keys import KeySource
from config.secrets import new_master_key
from config.servers.postgres import EmbeddedPostgres
from tests.support.sealed import AGENTS, SEALED, Secrets, key_file, make_agent_key, make_secrets

ROOT = Path(__file__).parents[3]


@pytest.fixture
def source(database: None, postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[KeySource]:
    """Return the source of the master key, which is a file of this test."""
    with key_file(tmp_path, postgres) as source:
        yield source


@pytest.fixture
def secrets(source: KeySource, tenant: Tenant) -> Secrets:
    """Store a secret of each kind, and return them."""
    return make_secrets(tenant)


def uses_of(key: str | None) -> dict[str, int]:
    return used_by(key, key_uses(master_keys()))


def rotate(keys: MasterKeys, **options: Any) -> Any:
    return rotate_keys(keys=keys, actor="cli:tests", **options)


def test_all_secrets_are_sealed_anew(secrets: Secrets, source: KeySource) -> None:
    old = master_keys().current_id
    assert uses_of(old) == SEALED
    keys = source.begin_rotation()
    steps: list[tuple[int, int | None]] = []
    rotation = rotate(keys, batch=4, progress=lambda done, total: steps.append((done, total)))
    assert rotation.changed == SEALED
    assert rotation.is_complete(keys)
    assert steps == [(done, 19) for done in (1, 5, 9, 13, *range(13, 20))]
    assert (uses_of(keys.current_id), uses_of(old)) == (SEALED, {})
    secrets.assert_readable()
    assert require_unused(keys) == old
    source.drop_other()
    secrets.assert_readable()


def test_a_rotation_is_a_platform_event(secrets: Secrets, source: KeySource) -> None:
    keys = source.begin_rotation()
    rotate(keys)
    began, ended = PlatformEvent.objects.using(OPS).filter(actor="cli:tests").order_by("id")
    assert began.message == f"began to seal secrets under the master key {keys.current_id}"
    assert ended.detail == {"current": keys.current_id, "other": keys.other_id, "changed": SEALED}


def test_a_process_without_the_master_key_reads_new_passwords(
    secrets: Secrets, source: KeySource, settings: Any, tmp_path: Path
) -> None:
    settings.ARBOR_ROTATED_PASSWORDS = tmp_path / "roles"
    parameters = connections[APP].get_connection_params()
    role = str(parameters["user"])
    given = role_passwords(role)[0]
    rotate(source.begin_rotation())
    settings.ARBOR_DERIVED_ROLES = {}
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(**{**parameters, "password": given})
    RoleConnection.connect(**{**parameters, "password": given}).close()
    assert stat.S_IMODE((tmp_path / "roles" / role).stat().st_mode) == 0o600


def test_a_key_that_seals_something_cannot_be_retired(secrets: Secrets, source: KeySource) -> None:
    with pytest.raises(TransitionIllegal, match="only one master key is open"):
        require_unused(master_keys())
    keys = source.begin_rotation()
    with pytest.raises(
        TransitionIllegal, match=rf"{keys.other_id} still seals .*{2 * AGENTS} agent keys, 1 webhook"
    ):
        require_unused(keys)


def test_records_without_a_key_id_are_sealed_anew(secrets: Secrets, source: KeySource) -> None:
    with tenant_transaction(secrets.tenant.id):
        for key in AgentKey.objects.all():
            key.sealed_private_key.pop("k")
            key.save(update_fields=["sealed_private_key"])
    assert uses_of(master_keys().current_id) == SEALED
    keys = source.begin_rotation()
    assert rotate(keys).is_complete(keys)
    secrets.assert_readable()


def test_secrets_of_another_key_are_reported_and_left(secrets: Secrets, source: KeySource) -> None:
    with tenant_transaction(secrets.tenant.id):
        foreign = make_agent_key()
        record = dict(foreign.sealed_private_key, k="0badf00d")
        AgentKey.objects.filter(id=foreign.id).update(sealed_private_key=record)
    keys = source.begin_rotation()
    rotation = rotate(keys)
    assert not rotation.is_complete(keys)
    (use,) = (use for use in rotation.uses if use.kind == "agent keys")
    assert (use.sealed, use.unreadable) == ({keys.current_id: 2 * AGENTS + 1}, 1)
    assert "it is sealed under the master key 0badf00d, and here is" in use.errors[0]
    with tenant_transaction(secrets.tenant.id):
        assert AgentKey.objects.get(id=foreign.id).sealed_private_key == record


def test_a_session_that_a_password_ended_stays_ended(secrets: Secrets, source: KeySource) -> None:
    row = ConsoleSession.objects.get()
    session, _ = read_session(row.session_data)
    session[HASH_SESSION_KEY] = "0" * 64
    ConsoleSession.objects.update(session_data=sign_session(session))
    rotate(source.begin_rotation())
    assert read_session(ConsoleSession.objects.get().session_data)[0][HASH_SESSION_KEY] == "0" * 64
    assert secrets.client.get(reverse("admin:own-sessions")).status_code == 302


def test_a_session_that_no_key_opens_has_ended(secrets: Secrets, source: KeySource) -> None:
    ConsoleSession.objects.update(session_data="e30:1abcde:forged")
    keys = source.begin_rotation()
    rotation = rotate(keys)
    assert rotation.is_complete(keys)
    (use,) = (use for use in rotation.uses if use.kind == "sessions")
    assert (use.sealed, use.unreadable) == ({}, 1)
    assert secrets.client.get(reverse("admin:own-sessions")).status_code == 302


def test_sessions_of_their_own_secret_key_are_left(
    secrets: Secrets, source: KeySource, settings: Any
) -> None:
    settings.ARBOR_SESSIONS_DERIVED = False
    keys = source.begin_rotation()
    assert "sessions" not in rotate(keys).changed
    assert secrets.client.get(reverse("admin:own-sessions")).status_code == 200


def test_a_pool_connects_while_passwords_change(secrets: Secrets, source: KeySource) -> None:
    wrapper: Any = connections[APP].copy()
    wrapper.settings_dict = {
        **wrapper.settings_dict,
        "CONN_MAX_AGE": 0,
        "OPTIONS": {**wrapper.settings_dict["OPTIONS"], "pool": {"min_size": 0, "max_size": 2, "timeout": 5}},
    }
    wrapper.alias = "pooled"
    try:
        assert is_connected(wrapper)
        rotate(source.begin_rotation())
        # The pool was made with the password of the old key.
        wrapper.pool.drain()
        assert is_connected(wrapper)
    finally:
        wrapper.close_pool()


def test_a_process_reports_itself_under_the_new_password(secrets: Secrets, source: KeySource) -> None:
    rotate(source.begin_rotation())
    source.drop_other()
    write_liveness(
        LivenessReport(
            name="host:1",
            kind="worker",
            queues="llm",
            pool="threads",
            concurrency=1,
            started_at=datetime.now(UTC),
        )
    )
    assert Process.objects.using(OPS).get().name == "host:1"


def is_connected(wrapper: Any) -> bool:
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT current_user")
        (user,) = cursor.fetchone()
    wrapper.close()
    return bool(user == wrapper.settings_dict["USER"])


def test_a_wrong_key_is_refused_by_the_database(secrets: Secrets, source: KeySource) -> None:
    keys = source.begin_rotation()
    rotate(keys)
    source.drop_other()
    process = start_arbor(source, ("keys", "status"), ARBOR_MASTER_KEY=new_master_key())
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "its password is derived from the master key: is ARBOR_MASTER_KEY the one" in err


def start_arbor(source: KeySource, arguments: tuple[str, ...], **more: str) -> subprocess.Popen[str]:
    """Start `arbor` in a process of its own, which finds the key in its file and signs in as the roles do."""
    assert source.file is not None
    owner = connections["owner"].settings_dict
    url = f"postgres://{owner['USER']}:{owner['PASSWORD']}@{owner['HOST']}:{owner['PORT']}/{owner['NAME']}"
    # Without a pool, whose time limit would hide the reason of the database.
    left_out = {"ARBOR_MASTER_KEY", "ARBOR_DB_POOL_SIZE"}
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"ARBOR_DATA_DIR": str(source.file.parents[1]), "DATABASE_URL": url, **more}
    return subprocess.Popen(
        [sys.executable, "-m", "config.cli", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def waits_for_lock(observer: psycopg.Connection[Any]) -> bool:
    row = observer.execute(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%agents_agentkey%')"
    ).fetchone()
    return row is not None and bool(row[0])


def test_a_killed_rotation_is_resumed(
    secrets: Secrets, source: KeySource, postgres: EmbeddedPostgres
) -> None:
    with (
        psycopg.connect(postgres.superuser_url) as blocker,
        psycopg.connect(postgres.superuser_url, autocommit=True) as observer,
    ):
        # A run with batches of one row stops at the fourth key, which is locked.
        blocker.execute(
            "SELECT 1 FROM agents_agentkey WHERE id ="
            " (SELECT id FROM agents_agentkey ORDER BY id OFFSET 3 LIMIT 1) FOR UPDATE"
        )
        killed = start_arbor(source, ("keys", "rotate", "--batch", "1"))
        ends = time.monotonic() + 120
        while not waits_for_lock(observer) and killed.poll() is None and time.monotonic() < ends:
            observer.execute("SELECT pg_sleep(0.05)")
        assert waits_for_lock(observer), killed.communicate()
        secrets.assert_readable()
        killed.kill()
        killed.communicate()
    keys = master_keys()
    assert keys.other_id is not None
    # `assert_readable` has opened a page, which signed its session anew.
    assert uses_of(keys.current_id) == {
        "role passwords": 3,
        "keys of the System Authority": 1,
        "agent keys": 3,
        "sessions": 1,
    }
    assert uses_of(keys.other_id) == {
        "agent keys": 2 * AGENTS - 3,
        "webhook secrets": 1,
        "signal webhook secrets": 1,
        "hook secrets": 1,
        "tool server secrets": 1,
        "provider keys": 1,
    }
    secrets.assert_readable()
    resumed = start_arbor(source, ("keys", "rotate", "--json"))
    out, err = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, err
    assert '"complete": true' in out
    assert master_keys() == keys, "it is the same rotation"
    assert uses_of(keys.current_id) == SEALED
    secrets.assert_readable()


def test_the_serving_role_changes_nothing_else_of_a_key(secrets: Secrets) -> None:
    with tenant_transaction(secrets.tenant.id), pytest.raises(ProgrammingError, match="permission denied"):
        AgentKey.objects.update(public_key=b"other")
