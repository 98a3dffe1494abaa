"""Check the database: roles, policies, migrations, vectors and clock."""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from apps.tenants.checks import find_role_faults, find_table_faults
from apps.tenants.scope import APP, SERVING
from config.cli.checks.finding import Finding, fail, name_first, ok, warn
from config.database_errors import explain_missing_database, first_line

#: Run under each role, which also shows that the role can sign in.
SERVER_VERSION = "SELECT current_setting('server_version')"
VECTOR_VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
#: The current time of the server, not that of the transaction, for the comparison with this machine's.
SERVER_CLOCK = "SELECT clock_timestamp()"

#: The oldest supported version: older ones have bugs that damage indexes or overrun buffers.
OLDEST_VECTOR = (0, 8, 4)
_CLOCKS_WITHIN_S = 5.0


def check_database() -> Finding:
    """Check that the serving roles can sign in."""
    for alias in SERVING:
        try:
            with connections[alias].cursor() as cursor:
                cursor.execute(SERVER_VERSION)
                version = cursor.fetchone()[0]
        except DatabaseError as error:
            if not settings.ARBOR_HAS_DATABASE:
                return fail("database", *explain_missing_database(runs_here=settings.ARBOR_RUNS_HERE))
            where = settings.DATABASES[alias]
            return fail(
                "database",
                f"{where['USER']} cannot sign in at {where['HOST']}:{where['PORT']}: {first_line(error)}",
                "start it (`arbor up`), or correct DATABASE_URL and run `arbor prepare`",
            )
    return ok("database", f"PostgreSQL {version}")


def check_role() -> Finding:
    """Check that row-level security binds the serving role."""
    faults = [*find_role_faults(), *find_table_faults()]
    if faults:
        return fail("roles and policies", name_first(faults, most=3), "run `arbor prepare`")
    return ok("roles and policies", "row-level security binds the serving role on every tenant's table")


def check_migrations() -> Finding:
    """Check that every migration is applied."""
    executor = MigrationExecutor(connections[APP])
    waiting = [str(step) for step, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]
    if waiting:
        return fail(
            "migrations", f"{len(waiting)} not applied: {name_first(waiting, most=3)}", "run `arbor prepare`"
        )
    return ok("migrations", "all applied")


def check_vectors() -> Finding:
    """Check that the extension pgvector is installed and new enough."""
    with connections[APP].cursor() as cursor:
        cursor.execute(VECTOR_VERSION)
        row = cursor.fetchone()
    if row is None:
        return fail("vectors", "the extension is missing", "run `CREATE EXTENSION vector` as a superuser")
    version = str(row[0])
    if tuple(map(int, version.split("."))) < OLDEST_VECTOR:
        return fail("vectors", f"pgvector {version} damages indexes", "update it to 0.8.4 or later")
    return ok("vectors", f"pgvector {version}")


def check_clock() -> Finding:
    """Check that the clocks of this machine and the database agree, because due times are compared with both."""
    with connections[APP].cursor() as cursor:
        cursor.execute(SERVER_CLOCK)
        difference_s = abs((datetime.now(UTC) - cursor.fetchone()[0]).total_seconds())
    if difference_s > _CLOCKS_WITHIN_S:
        return warn("clock", f"{difference_s:.0f} s apart from the database", "run NTP on both machines")
    return ok("clock", "agrees with the database")
