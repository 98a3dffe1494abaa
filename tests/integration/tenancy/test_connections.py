"""Reuse of connections: the tenant of a transaction ends with it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

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

from apps.memories.models import Memory
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, TENANT_SETTING, USER_SETTING, tenant_transaction, user_transaction
from arbor.errors import TenantRequired
from config.servers.postgres import EmbeddedPostgres
from tests.factories.memories import MemoryFactory
from tests.integration.tenancy.conftest import TenantRows, fetch_raw
from tests.support.database import connection_pool
from tests.support.threads import in_own_connection


def visible_contents() -> set[str]:
    """Return the contents of memories that raw SQL reads on this thread's connection."""
    return {content for (content,) in fetch_raw("SELECT content FROM memories_memory")}


def scope_settings() -> tuple[str, str]:
    """Return the settings of the tenant and of the user."""
    ((tenant, user),) = fetch_raw(
        "SELECT coalesce(current_setting(%s, true), ''), coalesce(current_setting(%s, true), '')",
        TENANT_SETTING,
        USER_SETTING,
    )
    return tenant, user


def backend_pid() -> int:
    ((pid,),) = fetch_raw("SELECT pg_backend_pid()")
    return int(pid)


def test_a_transaction_leaves_nothing_on_its_connection(ours: TenantRows) -> None:
    with tenant_transaction(ours.id):
        assert visible_contents() == {"the secret of acme"}
        before = backend_pid()
    assert backend_pid() == before
    assert visible_contents() == set()
    assert scope_settings() == ("", "")


def test_a_rolled_back_transaction_leaves_nothing(ours: TenantRows) -> None:
    with tenant_transaction(ours.id):
        Memory.objects.update(content="changed")
        transaction.set_rollback(True)
    assert visible_contents() == set()
    assert scope_settings() == ("", "")


def test_a_transaction_that_raises_leaves_nothing(ours: TenantRows) -> None:
    with pytest.raises(ZeroDivisionError), tenant_transaction(ours.id):
        _ = 1 / 0
    assert visible_contents() == set()
    with pytest.raises(TenantRequired):
        Memory.objects.count()


def test_a_transaction_with_a_failed_statement_leaves_nothing(ours: TenantRows, theirs: TenantRows) -> None:
    with pytest.raises(IntegrityError), tenant_transaction(ours.id):
        MemoryFactory(agent_id=theirs.agent.id, agent=None)
    assert visible_contents() == set()
    with tenant_transaction(theirs.id):
        assert visible_contents() == {"the secret of globex"}


def test_a_constraint_that_is_checked_at_the_commit_names_itself(ours: TenantRows) -> None:
    table = "CREATE TEMP TABLE once (n int UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP"
    with (
        pytest.raises(IntegrityError, match="once_n_key"),
        tenant_transaction(ours.id),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"{table}; INSERT INTO once VALUES (1), (1)")
    assert visible_contents() == set()


def test_an_ended_connection_is_unusable_and_replaced(postgres: EmbeddedPostgres, ours: TenantRows) -> None:
    pid = backend_pid()
    assert connection.is_usable()
    with psycopg.connect(postgres.superuser_url) as superuser:
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    assert not connection.is_usable()
    close_old_connections()
    assert backend_pid() != pid


def test_a_transaction_that_lost_its_connection_leaves_nothing(
    postgres: EmbeddedPostgres, ours: TenantRows, theirs: TenantRows
) -> None:
    def lose_the_connection() -> None:
        with tenant_transaction(ours.id):
            pid = backend_pid()
            with psycopg.connect(postgres.superuser_url) as superuser:
                superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            visible_contents()

    with pytest.raises(OperationalError):
        lose_the_connection()
    connection.close()
    with pytest.raises(TenantRequired):
        Memory.objects.count()
    with tenant_transaction(theirs.id):
        assert visible_contents() == {"the secret of globex"}


def test_one_connection_serves_two_tenants_in_turn(ours: TenantRows, theirs: TenantRows) -> None:
    for rows in (ours, theirs, ours):
        with tenant_transaction(rows.id):
            assert visible_contents() == {f"the secret of {rows.slug}"}


def test_a_tenant_inside_a_plain_transaction_ends_before_it(ours: TenantRows) -> None:
    with transaction.atomic():
        with tenant_transaction(ours.id):
            assert visible_contents() == {"the secret of acme"}
        assert visible_contents() == set()
        with pytest.raises(ZeroDivisionError), tenant_transaction(ours.id):
            _ = 1 / 0
        assert visible_contents() == set()


def test_a_tenant_inside_a_plain_transaction_keeps_its_options(ours: TenantRows) -> None:
    def options() -> list[tuple[str, str]]:
        named = "SELECT name, setting FROM pg_settings WHERE name IN ('enable_seqscan', 'statement_timeout')"
        return fetch_raw(named + " ORDER BY name")

    with transaction.atomic():
        before = options()
        with tenant_transaction(ours.id, generic_plans=True, statement_timeout=timedelta(milliseconds=7)):
            assert options() == before
        assert options() == before
    with tenant_transaction(ours.id, generic_plans=True, statement_timeout=timedelta(seconds=7)):
        assert options() == [("enable_seqscan", "off"), ("statement_timeout", "7000")]


def test_a_user_scope_inside_a_tenant_reads_only_its_own_rows(ours: TenantRows) -> None:
    with tenant_transaction(ours.id):
        with user_transaction(7):
            assert scope_settings() == ("", "7")
            assert visible_contents() == set()
        assert scope_settings() == (str(ours.id), "")
        assert visible_contents() == {"the secret of acme"}


def test_a_new_thread_starts_without_a_tenant(ours: TenantRows) -> None:
    def read() -> None:
        assert visible_contents() == set()
        with pytest.raises(TenantRequired):
            Memory.objects.count()

    with tenant_transaction(ours.id):
        in_own_connection(read).join(20)


@pytest.fixture
def pooled(database: None) -> Iterator[None]:
    """Serve through a psycopg pool of two connections, as workers of the queue llm do."""
    with connection_pool(2):
        yield


def test_a_pool_of_two_serves_many_threads_of_two_tenants(
    pooled: None, ours: TenantRows, theirs: TenantRows
) -> None:
    pids: set[int] = set()

    def work(turn: int) -> None:
        rows = (ours, theirs)[turn % 2]
        try:
            with tenant_transaction(rows.id):
                assert visible_contents() == {f"the secret of {rows.slug}"}
                assert Memory.objects.get().tenant_id == rows.id
                pids.add(backend_pid())
                if turn % 5 == 0:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        finally:
            connection.close()
        assert visible_contents() == set()
        connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(80)))
    # The connections were shared: eighty transactions, two connections.
    assert 1 <= len(pids) <= 2


def test_statements_are_unprepared_here_and_in_the_console(tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        assert connections[APP].fixed_statements() is None  # type: ignore[attr-defined]
