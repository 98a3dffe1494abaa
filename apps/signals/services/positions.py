"""The positions of signals, which continue after a restore into a database that counts its transactions anew."""

from __future__ import annotations

from django.db import connections, transaction

from apps.tenants.scope import OPS, OWNER

#: Bits of a row's id below the number of its transaction.
_BELOW = 64

# `{base}` is added to the transaction's number. SQL functions of one expression are inlined by the planner.
_FUNCTIONS = """
CREATE OR REPLACE FUNCTION signals_row_id(tick bigint) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT (lpad(to_hex({base} + pg_current_xact_id()::text::bigint), 16, '0') || lpad(to_hex(tick), 16, '0'))::uuid
$$;
CREATE OR REPLACE FUNCTION signals_horizon() RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT (lpad(to_hex({base} + pg_snapshot_xmin(pg_current_snapshot())::text::bigint), 16, '0')
        || '0000000000000000')::uuid
$$;
"""


def functions_from(base: int) -> str:
    """Return the statements that create the two functions, with positions counted from a base."""
    return _FUNCTIONS.format(base=int(base))


# The latest of each tenant, by the primary key.
_LATEST = """
SELECT latest.id FROM tenants_tenant t
CROSS JOIN LATERAL (SELECT id FROM signals_signalbatch s WHERE s.tenant_id = t.id ORDER BY id DESC LIMIT 1) AS latest
ORDER BY latest.id DESC LIMIT 1
"""


def continue_positions() -> bool:
    """Continue the positions if stored signals lie ahead of the database's transactions, as after a restore.

    Returns whether they had to be. Runs as the owner of the functions.
    """
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('arbor.signals'))")
        last = _last_position()
        cursor.execute("SELECT signals_row_id(0)")
        (present,) = cursor.fetchone()
        if present.int > last:
            return False
        cursor.execute(functions_from((last >> _BELOW) + 1))
    return True


def _last_position() -> int:
    """Return the greatest stored position of all tenants, 0 without signals."""
    with transaction.atomic(using=OPS), connections[OPS].cursor() as cursor:
        cursor.execute(_LATEST)
        row = cursor.fetchone()
    return row[0].int if row else 0
