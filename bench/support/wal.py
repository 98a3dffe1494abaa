"""The write-ahead log of a measurement by table or index, and by kind of record."""

from __future__ import annotations

from typing import Any

import psycopg

from bench.support.database import fetch_value

# A record belongs to the relation of its first block, or to none without blocks. TOAST tables are named after their table.
_BY_RELATION = """
WITH records AS (
    SELECT r.start_lsn, r.resource_manager || '/' || r.record_type AS kind, r.record_length, r.fpi_length
    FROM pg_get_wal_records_info(%(since)s, %(until)s) r
), relations AS (
    SELECT DISTINCT ON (start_lsn) start_lsn, reltablespace, relfilenode
    FROM pg_get_wal_block_info(%(since)s, %(until)s, false) ORDER BY start_lsn, block_id
)
SELECT coalesce(
        (SELECT owner.relname || ' (toast)' FROM pg_class owner WHERE owner.reltoastrelid = c.oid), c.relname, ''
    ) AS relation,
    r.kind, count(*), sum(r.record_length), sum(r.fpi_length)
FROM records r LEFT JOIN relations w USING (start_lsn)
LEFT JOIN pg_class c ON c.oid = pg_filenode_relation(0, w.relfilenode)
GROUP BY 1, 2 ORDER BY 4 DESC
"""
_ROWS_SHOWN = 200

_OWN = """
SELECT coalesce(sum(s.wal_bytes), 0)::bigint FROM pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid
WHERE r.rolname = current_user AND s.toplevel
"""


def own_wal_bytes(connection: psycopg.Connection[Any]) -> int:
    """Return the bytes that the benchmark's own statements wrote to the log since the counters of statements were reset."""
    return int(fetch_value(connection, _OWN))


def current_lsn(connection: psycopg.Connection[Any]) -> str:
    """Return the current end of the write-ahead log, as a log sequence number (LSN)."""
    return str(fetch_value(connection, "SELECT pg_current_wal_insert_lsn()::text"))


def wal_by_relation(
    connection: psycopg.Connection[Any], *, since_lsn: str, heartbeats: int
) -> list[dict[str, Any]]:
    """Return the records of each relation since an LSN, by their kind, per heartbeat, the largest first."""
    connection.execute("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
    rows = connection.execute(_BY_RELATION, {"since": since_lsn, "until": current_lsn(connection)}).fetchall()
    return [
        {
            "relation": relation,
            "kind": kind,
            "records": round(count / heartbeats, 2),
            "bytes": round(size / heartbeats),
            "page_image_bytes": round(images / heartbeats),
        }
        for relation, kind, count, size, images in rows[:_ROWS_SHOWN]
    ]
