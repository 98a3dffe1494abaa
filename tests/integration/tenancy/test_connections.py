"""Connections are reused; the tenant of a transaction ends with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import (
    IntegrityError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
    transaction,
)
from django.db.backends.postgresql.base import DatabaseWrapper

from apps.memories.models import Memory
from apps.tenants.scope import APP, TENANT_SETTING, USER_SETTING, tenant_transaction, user_transaction
from arbor.errors import TenantRequired
from config.servers.postgres import EmbeddedPostgres
from tests.factories.memories import MemoryFactory
from tests.integration.tenancy.conftest import Home


def visible() -> set[str]:
    """Return the rows that raw SQL reads on this thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT content FROM memories_memory")
        return {content for (content,) in cursor.fetchall()}


def settings() -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(current_setting(%s, true), ''), coalesce(current_setting(%s, true), '')",
            [TENANT_SETTING, USER_SETTING],
        )
        row: tuple[str, str] = cursor.fetchone()
        return row


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_a_transaction_leaves_nothing_on_its_connection(ours: Home) -> None:
    with tenant_transaction(ours.id):
        assert visible() == {"the secret of acme"}
        before = backend()
    assert backend() == before
    assert visible() == set()
    assert settings() == ("", "")


def test_a_rolled_back_transaction_leaves_nothing(ours: Home) -> None:
    with tenant_transaction(ours.id):
        Memory.objects.update(content="changed")
        transaction.set_rollback(True)
    assert visible() == set()
    assert settings() == ("", "")


def test_a_transaction_that_raised_leaves_nothing(ours: Home) -> None:
    with pytest.raises(ZeroDivisionError), tenant_transaction(ours.id):
        _ = 1 / 0
    assert visible() == set()
    with pytest.raises(TenantRequired):
        Memory.objects.count()


def test_a_transaction_whose_statement_failed_leaves_nothing(ours: Home, theirs: Home) -> None:
    with pytest.raises(IntegrityError), tenant_transaction(ours.id):
        MemoryFactory(agent_id=theirs.agent.id, agent=None)
    assert visible() == set()
    with tenant_transaction(theirs.id):
        assert visible() == {"the secret of globex"}


def test_an_ended_connection_is_unusable_and_replaced(postgres: EmbeddedPostgres, ours: Home) -> None:
    victim = backend()
    assert connection.is_usable()
    with psycopg.connect(postgres.superuser_url) as superuser:
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [victim])
    assert not connection.is_usable()
    close_old_connections()
    assert backend() != victim


def test_a_transaction_whose_connection_died_leaves_nothing(
    postgres: EmbeddedPostgres, ours: Home, theirs: Home
) -> None:
    def lose_the_connection() -> None:
        with tenant_transaction(ours.id):
            victim = backend()
            with psycopg.connect(postgres.superuser_url) as superuser:
                superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [victim])
            visible()

    with pytest.raises(OperationalError):
        lose_the_connection()
    connection.close()
    with pytest.raises(TenantRequired):
        Memory.objects.count()
    with tenant_transaction(theirs.id):
        assert visible() == {"the secret of globex"}


def test_one_connection_serves_two_tenants_in_turn(ours: Home, theirs: Home) -> None:
    for home in (ours, theirs, ours):
        with tenant_transaction(home.id):
            assert visible() == {f"the secret of {home.slug}"}


def test_a_tenant_opened_inside_a_plain_transaction_ends_before_it(ours: Home) -> None:
    with transaction.atomic():
        with tenant_transaction(ours.id):
            assert visible() == {"the secret of acme"}
        assert visible() == set()
        with pytest.raises(ZeroDivisionError), tenant_transaction(ours.id):
            _ = 1 / 0
        assert visible() == set()


def test_a_user_scope_inside_a_tenant_sees_only_the_users_own_rows(ours: Home) -> None:
    with tenant_transaction(ours.id):
        with user_transaction(7):
            assert settings() == ("", "7")
            assert visible() == set()
        assert settings() == (str(ours.id), "")
        assert visible() == {"the secret of acme"}


def test_a_new_thread_starts_without_a_tenant(ours: Home) -> None:
    tenants: list[object] = []

    def look() -> None:
        try:
            tenants.append(visible())
            Memory.objects.count()
        except TenantRequired as refusal:
            tenants.append(type(refusal))
        finally:
            connection.close()

    with tenant_transaction(ours.id):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert tenants == [set(), TenantRequired]


@pytest.fixture
def pooled(database: None) -> Iterator[None]:
    """Serve through a psycopg pool of two connections, as workers of the queue llm do."""
    settings = connections.settings[APP]
    before = {key: settings[key] for key in ("OPTIONS", "CONN_MAX_AGE", "CONN_HEALTH_CHECKS")}
    connections[APP].close()
    del connections[APP]
    pool = {"min_size": 1, "max_size": 2, "timeout": 10}
    settings.update(
        {"OPTIONS": {**before["OPTIONS"], "pool": pool}, "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False}
    )
    try:
        yield
    finally:
        connection = connections[APP]
        assert isinstance(connection, DatabaseWrapper)
        connection.close()
        connection.close_pool()
        del connections[APP]
        settings.update(before)


def test_a_pool_of_two_serves_many_threads_of_two_tenants(pooled: None, ours: Home, theirs: Home) -> None:
    backends: set[int] = set()

    def work(turn: int) -> None:
        home = (ours, theirs)[turn % 2]
        try:
            with tenant_transaction(home.id):
                assert visible() == {f"the secret of {home.slug}"}
                assert Memory.objects.get().tenant_id == home.id
                backends.add(backend())
                if turn % 5 == 0:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        finally:
            connection.close()
        assert visible() == set()
        connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(80)))
    # The connections were shared: eighty transactions, two connections.
    assert 1 <= len(backends) <= 2
