"""The positions of audit records, which continue after a restore into a database that counts its transactions anew."""

from __future__ import annotations

from django.db import connections, transaction

from apps.tenants.scope import APP, OPS, OWNER

# `{base}` is added to the transaction's number.
_FUNCTIONS = """
CREATE OR REPLACE FUNCTION audit_position() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT {base} + pg_current_xact_id()::text::bigint
$$;
CREATE OR REPLACE FUNCTION audit_horizon() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT {base} + pg_snapshot_xmin(pg_current_snapshot())::text::bigint
$$;
"""
# The latest of each tenant and of the installation, by the indexes; and of their seals, which outlive the records.
_LATEST = """
SELECT coalesce(max(position), 0) FROM (
    (SELECT position FROM audit_platformevent ORDER BY position DESC LIMIT 1)
    UNION ALL
    SELECT latest.position FROM tenants_tenant t CROSS JOIN LATERAL (
        SELECT position FROM audit_auditevent e WHERE e.tenant_id = t.id ORDER BY position DESC LIMIT 1
    ) AS latest
    UNION ALL
    SELECT max(last_position) FROM audit_auditseal
    UNION ALL
    SELECT max(last_position) FROM audit_platformseal
) AS latest
"""


def functions_from(base: int) -> str:
    """Return the statements that create the two functions, with positions counted from a base."""
    return _FUNCTIONS.format(base=int(base))


def audit_horizon() -> int:
    """Return the position before which no running transaction can add an audit record."""
    with connections[APP].cursor() as cursor:
        cursor.execute("SELECT audit_horizon()")
        return int(cursor.fetchone()[0])


def continue_audit_positions() -> bool:
    """Continue the positions if stored records lie ahead of the database's transactions, as after a restore.

    Returns whether they had to be. Runs as the owner of the functions.
    """
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('arbor.audit'))")
        last = _last_position()
        cursor.execute("SELECT audit_position()")
        (present,) = cursor.fetchone()
        if present > last:
            return False
        cursor.execute(functions_from(last + 1))
    return True


def _last_position() -> int:
    with transaction.atomic(using=OPS), connections[OPS].cursor() as cursor:
        cursor.execute(_LATEST)
        return int(cursor.fetchone()[0])
